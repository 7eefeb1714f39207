"""A report (schema tessera.report/1, docs/report.md) as one HTML file that needs nothing else.

python -m tessera.report report.json out.html
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tessera.common.errors import Error, fail
from tessera.report_charts import ablation, backends, best_of, ladder, roofline, times_of, tuning
from tessera.report_page import Html, Page, escaped, missing_plots, ms_text, table
from tessera.report_words import words


def _head(r: dict) -> str:
    times = times_of(r)
    figures = []
    if "tessera" in times:
        ours = times["tessera"]["ms"]
        figures.append((f"{ours:.4g} ms", "optimized module"))
        figures += [
            (f"{t['ms'] / ours:.2f}×", f"the speed of {name}")
            if t.get("comparable", True)
            else (Html('<span class="warn">not reliable</span>'), f"beside {name}: other work ran on this machine")
            for name, t in times.items()
            if name != "tessera"
        ]
    patterns = r.get("patterns", [])
    figures.append((f"{sum(bool(p.get('active')) for p in patterns)} of {len(patterns)}", "patterns active"))
    check = r.get("verification") or {}
    runs_none = str(check.get("form", "")).startswith("none")
    if runs_none:
        runner = "Inductor" if r.get("runner") == "inductor" else "PyTorch"
        figures.append((Html('<span class="warn">no kernel placed</span>'), f"{runner} runs the module"))
    elif "ok" in check:
        word = '<span class="good">right</span>' if check["ok"] else '<span class="bad">wrong</span>'
        figures.append((Html(word), "against fp64"))
    if r.get("stopped"):
        figures.append((Html('<span class="warn">stopped</span>'), "before the end; run again to go on"))
    cards = "".join(
        f"<div><b>{v if isinstance(v, Html) else escaped(v)}</b><span>{escaped(t)}</span></div>" for v, t in figures
    )
    about = " · ".join(escaped(r[k]) for k in ("device", "arch", "precision", "effort") if r.get(k))
    return f'<h1>{escaped(r.get("name", "module"))}</h1><p class="lead">{about}</p><div class="figures">{cards}</div>'


def _kernel(best: dict) -> str:
    if not best.get("config"):
        return escaped(best.get("label", ""))
    facts = {"config": best["config"], "launch": best.get("knobs") or {}, "resources": best.get("resources") or {}}
    text = "<br>".join(f"{name} {escaped(json.dumps(value))}" for name, value in facts.items() if value)
    return f"<details><summary>{escaped(best.get('label', 'config'))}</summary><code>{text}</code></details>"


def _patterns(page: Page, r: dict) -> None:
    active, others = [], []
    for p in r.get("patterns", []):
        best = best_of(p)
        e = best.get("evidence", {})
        ms, eager, floor = e.get("ms", 0), p.get("eager_ms", 0), p.get("floor_ms", 0)
        gain = f"{eager / ms:.2f}×" if ms and eager else ""
        gain = gain if p.get("comparable", True) else "noisy"
        figures = [ms_text(ms), ms_text(eager), gain, ms_text(floor)]
        name = [p.get("id", ""), p.get("rule", "")]
        over = "; ".join(
            f"stored before and passed over: {x['label']}: {x['reason']}" for x in p.get("passed_over", ())
        )
        if p.get("active"):
            of_floor = f"{100 * floor / ms:.0f} %" if ms and floor else ""
            errors = f"{e['rms_error']:.2g} / {e.get('baseline_rms_error', 0):.2g}" if e.get("rms_error") else ""
            what = Html("<br>".join(filter(None, (escaped(p.get("summary", "")), _kernel(best), escaped(over)))))
            active.append([*name, what, best.get("kind", ""), *figures, of_floor, errors])
        else:
            why = "; ".join(filter(None, (p.get("inactive_because", "not active"), over)))
            others.append([*name, p.get("summary", ""), why, *figures])
    body = ""
    numeric = {"ms", "eager ms", "gain", "floor ms", "of floor", "rms error / eager"}
    if active:
        columns = ["id", "rule", "what, and by which kernel", "kind", "ms", "eager ms", "gain", "floor ms", "of floor"]
        body += table([*columns, "rms error / eager"], active, numeric, {"id", "rule", "kind"})
    if others:
        columns = ["id", "rule", "what", "why it is not active", "ms", "eager ms", "gain", "floor ms"]
        body += "<h3>Found and not used</h3>" + table(columns, others, numeric, {"id", "rule"})
    if body:
        page.section(
            "patterns",
            "What was found",
            "Each pattern with the kernel that won, beside eager's time and the least that the roofline allows; errors "
            "against fp64 beside eager's own.",
            body,
        )


def _rest(page: Page, r: dict) -> None:
    if r.get("refinements"):
        page.section(
            "refinements",
            "Exchanged in the module",
            "Kernels that were not the fastest alone and are in the module's own run.",
            table(
                ["pattern", "kernel", "in place of", "module ms", "before", "back to back", "before"],
                [
                    (
                        *(x[key] for key in ("pattern", "to", "from")),
                        *(ms_text(x[key]) for key in ("ms", "than")),
                        *(ms_text(x[key]) if key in x else "" for key in ("sustained_ms", "than_sustained")),
                    )
                    for x in r["refinements"]
                ],
                {"module ms", "before", "back to back"},
                {"pattern"},
            ),
        )
    if r.get("leftover"):
        page.section(
            "leftover",
            "Left to PyTorch",
            f"Run by {r.get('leftover_runner', 'eager')}.",
            table(["op", "node", "because"], [(x["op"], x["node"], x["reason"]) for x in r["leftover"]]),
        )
    if r.get("rejections"):
        page.section(
            "rejections",
            "Not taken",
            "Places where a rule matched in part, and why it could not be taken.",
            table(
                ["rule", "nodes", "reason"], [(x["rule"], ", ".join(x["nodes"]), x["reason"]) for x in r["rejections"]]
            ),
        )
    if r.get("rewrites"):
        page.section(
            "rewrites",
            "Recognized spellings",
            "Composed spellings taken for the one op that they mean.",
            table(
                ["what", "result", "stands for"],
                [(x["what"], x["result"], ", ".join(x["nodes"])) for x in r["rewrites"]],
            ),
        )
    _errors(page, r)
    _toolchain(page, r)


def _errors(page: Page, r: dict) -> None:
    check = r.get("verification") or {}
    if "ok" not in check or str(check.get("form", "")).startswith("none"):
        return
    rows = [
        ("relative RMS", f"{check.get('rms_error', 0):.3g}", f"{check.get('baseline_rms_error', 0):.3g}"),
        (
            "maximum over mean magnitude",
            f"{check.get('max_error', 0):.3g}",
            f"{check.get('baseline_max_error', 0):.3g}",
        ),
    ]
    why = f"<p class='bad'>{escaped(check['reason'])}</p>" if check.get("reason") else ""
    body = why + table(["error", "optimized", "original"], rows, {"optimized", "original"})
    if check.get("resizes"):
        body += "<h3>Optimized again at other sizes</h3>" + _resizes(check["resizes"])
    page.section("errors", "Errors", "Of the whole module against its meaning in fp64, the worst of all inputs.", body)


def _resizes(resizes: list[dict]) -> str:
    words = {True: Html('<span class="good">right</span>'), False: Html('<span class="bad">wrong</span>')}
    rows = []
    for x in resizes:
        known = x.get("ok") is not None
        rows.append(
            [
                x.get("size", ""),
                words.get(x.get("ok"), Html('<span class="warn">not verified</span>')),
                f"{x.get('kernels', 0)} of {x.get('of', 0)}" if known else "",
                f"{x['rms_error']:.2g}" if isinstance(x.get("rms_error"), float) else "",
                f"{x['baseline_rms_error']:.2g}" if isinstance(x.get("baseline_rms_error"), float) else "",
                x.get("reason", ""),
            ]
        )
    columns = ["size", "module", "kernels", "rms error", "original's", "because"]
    return table(columns, rows, {"rms error", "original's"}, {"module", "kernels"})


def _toolchain(page: Page, r: dict) -> None:
    rows = [(k, v if isinstance(v, str) else json.dumps(v)) for k, v in (r.get("toolchain") or {}).items()]
    rows += [("torch", r["torch"])] if r.get("torch") else []
    rows += [(f"seconds: {k}", f"{v:.2f}") for k, v in (r.get("stage_seconds") or {}).items()]
    if rows:
        page.section(
            "toolchain",
            "Toolchain and time spent",
            "What built and ran it.",
            table(["what", "value"], rows, short={"what"}),
        )


def render(report: dict) -> str:
    """The whole page. Without plotly it has tables in place of plots, and says so. Error: TS0708 (no report)."""
    if report.get("schema") != "tessera.report/1":
        raise fail(
            "TS0708",
            "report.schema",
            "this is no report",
            expected="schema tessera.report/1",
            found=str(report.get("schema")),
        )
    page = Page()
    for part in (backends, ladder, ablation, _patterns, roofline, tuning, _rest):
        part(page, report)
    words(page)
    return page.text(f"tessera: {report.get('name', 'module')}", _head(report) + _unplotted())


def _unplotted() -> str:
    missing = missing_plots()
    if missing is None:
        return ""
    said = [missing.diagnostic["message"], *missing.diagnostic["helps"]]
    return "".join(f"<p class='warn'>{escaped(text)}</p>" for text in said)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m tessera.report report.json out.html", file=sys.stderr)
        return 3
    try:
        report = json.loads(Path(arguments[0]).read_text())
        Path(arguments[1]).write_text(render(report))
        if missing := missing_plots():
            print(missing, file=sys.stderr)
    except (OSError, ValueError) as e:
        print(f"error[TS0708]: {arguments[0]}: {e}", file=sys.stderr)
        return 3
    except Error as e:
        print(e, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
