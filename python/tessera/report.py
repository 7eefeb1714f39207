"""A report (schema tessera.report/1, docs/report.md) as one HTML file that needs nothing else.

python -m tessera.report report.json out.html
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tessera.errors import Error, fail

_style = """
:root { --ink:#1c2430; --soft:#5b6776; --line:#e3e7ec; --back:#f7f8fa; --card:#fff; --good:#1a7f4b; --bad:#b3372c; --accent:#2b5fb3 }
* { box-sizing:border-box }
body { margin:0; background:var(--back); color:var(--ink); font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif }
main { max-width:1100px; margin:0 auto; padding:32px 20px 80px }
h1 { font-size:28px; margin:0 } h2 { font-size:19px; margin:0 0 4px } p.lead { color:var(--soft); margin:2px 0 14px }
section { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:20px 22px; margin:18px 0 }
.figures { display:flex; flex-wrap:wrap; gap:14px; margin:20px 0 0 } .figures div { background:var(--card); border:1px solid
var(--line); border-radius:10px; padding:12px 18px; min-width:150px } .figures b { display:block; font-size:24px }
.figures span { color:var(--soft); font-size:13px }
.wide { overflow-x:auto } table { border-collapse:collapse; width:100%; font-size:14px }
th { text-align:left; color:var(--soft); font-weight:600; border-bottom:2px solid var(--line); padding:6px 10px 6px 0; white-space:nowrap }
td { border-bottom:1px solid var(--line); padding:6px 10px 6px 0; vertical-align:top } td.n,th.n { text-align:right; font-variant-numeric:tabular-nums }
code { font:13px ui-monospace,Menlo,Consolas,monospace } .good { color:var(--good) } .bad { color:var(--bad) } .soft { color:var(--soft) }
details summary { cursor:pointer; color:var(--accent) } nav a { color:var(--accent); text-decoration:none; margin-right:14px }
"""


def _graph_objects():
    try:
        import plotly.graph_objects as go
        import plotly.io as pio
    except ImportError as e:
        raise fail(
            "TS0709",
            "report.no_plotly",
            "the HTML report needs the package plotly, which is not installed",
            helps=[
                "pip install plotly (or the extra: pip install 'tessera[report]')",
                "`tessera report` without --html prints the report as text",
            ],
        ) from e
    return go, pio


class _Page:
    """Collects sections; the plotting library's script is inlined once."""

    def __init__(self):
        self.go, self.pio = _graph_objects()
        self.parts: list[str] = []
        self.sections: list[tuple[str, str]] = []
        self._script = True

    def section(self, key: str, title: str, lead: str, body: str) -> None:
        self.sections.append((key, title))
        self.parts.append(f'<section id="{key}"><h2>{_e(title)}</h2><p class="lead">{_e(lead)}</p>{body}</section>')

    def plot(self, traces, height: int = 340, **layout) -> str:
        axis = {"gridcolor": "#e3e7ec", "zerolinecolor": "#c9d0d8"}
        for name in ("xaxis", "yaxis"):
            layout[name] = {**axis, **layout.get(name, {})}
        figure = self.go.Figure(traces)
        figure.update_layout(
            template="plotly_white",
            height=height,
            margin={"l": 60, "r": 20, "t": 20, "b": 50},
            font={"family": "system-ui, sans-serif", "size": 13, "color": "#1c2430"},
            legend={"orientation": "h", "y": 1.12},
            **layout,
        )
        text = self.pio.to_html(figure, full_html=False, include_plotlyjs=self._script, config={"displaylogo": False})
        self._script = False
        return text

    def text(self, title: str, head: str) -> str:
        links = "".join(f'<a href="#{key}">{_e(name)}</a>' for key, name in self.sections)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_e(title)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{_style}</style></head><body><main>{head}'
            f'<nav style="margin-top:18px">{links}</nav>{"".join(self.parts)}</main></body></html>'
        )


def _e(value) -> str:
    return html.escape(str(value))


def _ms(value) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) and value > 0 else ""


def _table(columns: Iterable[str], rows: Iterable[Iterable], numeric: set[str] = frozenset()) -> str:
    columns = list(columns)
    cell = ['class="n"' if c in numeric else "" for c in columns]
    head = "".join(f"<th {k}>{_e(c)}</th>" for c, k in zip(columns, cell, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td {k}>{v if isinstance(v, _Html) else _e(v)}</td>" for v, k in zip(row, cell, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


class _Html(str):
    """Text that is markup already."""


def _best(pattern: dict) -> dict:
    return (pattern.get("winners") or [{}])[0]


def _times(report: dict) -> dict[str, dict]:
    return (report.get("module") or {}).get("times") or {}


# --- sections ------------------------------------------------------------------------------------------------------


def _head(r: dict) -> str:
    times = _times(r)
    figures = []
    if "tessera" in times:
        ours = times["tessera"]["ms"]
        figures.append((f"{ours:.4g} ms", "optimized module"))
        figures += [(f"{t['ms'] / ours:.2f}×", f"faster than {name}") for name, t in times.items() if name != "tessera"]
    patterns = r.get("patterns", [])
    figures.append((f"{sum(bool(p.get('active')) for p in patterns)} of {len(patterns)}", "patterns active"))
    check = r.get("verification") or {}
    if "ok" in check:
        word = '<span class="good">right</span>' if check["ok"] else '<span class="bad">wrong</span>'
        figures.append((_Html(word), "against fp64"))
    cards = "".join(f"<div><b>{v if isinstance(v, _Html) else _e(v)}</b><span>{_e(t)}</span></div>" for v, t in figures)
    about = " · ".join(_e(r[k]) for k in ("device", "arch", "precision", "effort") if r.get(k))
    return f'<h1>{_e(r.get("name", "module"))}</h1><p class="lead">{about}</p><div class="figures">{cards}</div>'


def _backends(page: _Page, r: dict) -> None:
    times, absent = _times(r), (r.get("module") or {}).get("absent") or {}
    if not times and not absent:
        return
    ordered = sorted(times.items(), key=lambda item: item[1]["ms"])
    body = ""
    if ordered:
        go = page.go
        body = page.plot(
            [
                go.Bar(
                    y=[name for name, _ in ordered],
                    x=[t["ms"] for _, t in ordered],
                    orientation="h",
                    error_x={"type": "data", "array": [t.get("ci95", 0) for _, t in ordered]},
                    marker_color=["#1a7f4b" if name == "tessera" else "#9db3d3" for name, _ in ordered],
                    text=[_ms(t["ms"]) for _, t in ordered],
                    textposition="outside",
                )
            ],
            height=110 + 46 * len(ordered),
            xaxis={"title": "ms, median and 95 % interval", "rangemode": "tozero"},
        )
    if absent:
        body += _table(["not measured", "because"], absent.items())
    page.section("backends", "Backends side by side", "One process, interleaved, equal precision, cold caches.", body)


def _ladder(page: _Page, r: dict) -> None:
    """What each placed pattern takes off the eager sum, one after the other."""
    active = [p for p in r.get("patterns", []) if p.get("active") and _best(p).get("evidence", {}).get("ms")]
    gains = sorted(((p.get("eager_ms", 0) - _best(p)["evidence"]["ms"], p) for p in active), key=lambda g: -g[0])
    if not gains:
        return
    total = sum(p.get("eager_ms", 0) for _, p in gains)
    go = page.go
    body = page.plot(
        [
            go.Waterfall(
                x=["eager", *[f"{p['id']} {p['rule']}" for _, p in gains], "kernels"],
                measure=["absolute", *["relative"] * len(gains), "total"],
                y=[total, *[-g for g, _ in gains], 0],
                decreasing={"marker": {"color": "#1a7f4b"}},
                increasing={"marker": {"color": "#b3372c"}},
                totals={"marker": {"color": "#2b5fb3"}},
                connector={"line": {"color": "#c9d0d8"}},
                hovertext=[""] + [_best(p).get("label", "") for _, p in gains] + [""],
            )
        ],
        yaxis={"title": "ms of the placed patterns", "rangemode": "tozero"},
    )
    page.section(
        "ladder",
        "Ladder of gains",
        "From eager's time of the placed patterns to their kernels', each measured alone.",
        body,
    )


def _ablation(page: _Page, r: dict) -> None:
    rows = (r.get("module") or {}).get("ablation") or []
    if not rows:
        return
    rows = sorted(rows, key=lambda a: a.get("speedup", 0))
    go = page.go
    body = page.plot(
        [
            go.Bar(
                y=[a["name"] for a in rows],
                x=[a.get("speedup", 0) for a in rows],
                orientation="h",
                marker_color=["#1a7f4b" if a["name"] == "all" else "#9db3d3" for a in rows],
                text=[f"{a.get('speedup', 0):.2f}×  {_ms(a.get('ms'))} ms" for a in rows],
                textposition="outside",
            )
        ],
        height=110 + 34 * len(rows),
        xaxis={"title": "speed-up over eager, end to end", "rangemode": "tozero"},
        yaxis={"automargin": True},
    )
    page.section(
        "ablation", "Ablation", "The whole module with each group of patterns alone, and with all but it.", body
    )


def _patterns(page: _Page, r: dict) -> None:
    rows = []
    for p in r.get("patterns", []):
        best = _best(p)
        e = best.get("evidence", {})
        ms, eager = e.get("ms", 0), p.get("eager_ms", 0)
        config = ""
        if best.get("config"):
            config = f"<details><summary>{_e(best.get('label', 'config'))}</summary><code>{_e(json.dumps(best['config']))}</code></details>"
        rows.append(
            [
                p.get("id", ""),
                p.get("rule", ""),
                p.get("summary", ""),
                _Html(
                    '<span class="good">active</span>'
                    if p.get("active")
                    else f'<span class="soft">{_e(p.get("inactive_because", "not active"))}</span>'
                ),
                _Html(config) if config else best.get("label", ""),
                best.get("kind", ""),
                _ms(ms),
                _ms(eager),
                f"{eager / ms:.2f}×" if ms and eager else "",
                _ms(p.get("floor_ms")),
                f"{e['rms_error']:.2g} / {e.get('baseline_rms_error', 0):.2g}" if e.get("rms_error") else "",
            ]
        )
    if rows:
        page.section(
            "patterns",
            "What was found",
            "Each pattern, the kernel that won, and its error against fp64 beside eager's.",
            _table(
                [
                    "id",
                    "rule",
                    "what",
                    "state",
                    "kernel",
                    "kind",
                    "ms",
                    "eager ms",
                    "gain",
                    "floor ms",
                    "rms error / eager",
                ],
                rows,
                {"ms", "eager ms", "gain", "floor ms", "rms error / eager"},
            ),
        )


def _roofline(page: _Page, r: dict) -> None:
    peaks = r.get("peaks") or {}
    tflops, bandwidth = peaks.get("tflops"), peaks.get("achievable_bandwidth_gbs") or peaks.get("bandwidth_gbs")
    points = [
        (p, _best(p)["evidence"]["ms"])
        for p in r.get("patterns", [])
        if p.get("flops") and p.get("min_bytes") and _best(p).get("evidence", {}).get("ms")
    ]
    if not points or not tflops or not bandwidth:
        return
    go = page.go
    intensity = [p["flops"] / p["min_bytes"] for p, _ in points]
    low, high = min(*intensity, 1) / 4, max(*intensity, tflops * 1e3 / bandwidth) * 4
    xs = [low * (high / low) ** (i / 200) for i in range(201)]
    traces = [
        go.Scatter(
            x=xs,
            y=[min(tflops, x * bandwidth / 1e3) for x in xs],
            mode="lines",
            name="roofline",
            line={"color": "#5b6776"},
            hoverinfo="skip",
        )
    ]
    for kind, color in (("synthesized", "#1a7f4b"), ("library", "#2b5fb3")):
        mine = [(p, ms) for p, ms in points if _best(p).get("kind") == kind]
        if mine:
            traces.append(
                go.Scatter(
                    x=[p["flops"] / p["min_bytes"] for p, _ in mine],
                    y=[p["flops"] / ms / 1e9 for p, ms in mine],
                    mode="markers+text",
                    name=kind,
                    text=[p["id"] for p, _ in mine],
                    textposition="top center",
                    marker={"size": 11, "color": color},
                    hovertext=[f"{p['rule']}: {_best(p).get('label', '')}, {ms:.4g} ms" for p, ms in mine],
                )
            )
    body = page.plot(
        traces,
        height=400,
        xaxis={"title": "flop per byte of least traffic", "type": "log"},
        yaxis={"title": "Tflop/s", "type": "log"},
    )
    page.section("roofline", "Roofline", f"Peak {tflops:.4g} Tflop/s, {bandwidth:.4g} GB/s.", body)


def _tuning(page: _Page, r: dict) -> None:
    parts = []
    for p in r.get("patterns", []):
        tuning = p.get("tuning") or {}
        trials = tuning.get("trials") or []
        if not trials:
            continue
        parts.append(f"<h3>{_e(p['id'])} {_e(p['rule'])} <span class='soft'>{_e(p.get('summary', ''))}</span></h3>")
        parts.append(_scatter(page, trials, p))
        parts.append(_failures(trials, tuning))
    if parts:
        page.section(
            "tuning", "Tuning", "Every configuration that was tried, in order; failures by kind.", "".join(parts)
        )


def _scatter(page: _Page, trials: list[dict], p: dict) -> str:
    go = page.go
    done = [(i, t) for i, t in enumerate(trials) if t.get("ms")]
    if not done:
        return "<p class='soft'>nothing was measured</p>"
    best, steps = float("inf"), []
    for i, t in done:
        best = min(best, t["ms"])
        steps.append((i, best))
    families = sorted({t["label"].split()[0] for _, t in done})
    traces = []
    for family in families:
        mine = [(i, t) for i, t in done if t["label"].split()[0] == family]
        traces.append(
            go.Scatter(
                x=[i for i, _ in mine],
                y=[t["ms"] for _, t in mine],
                mode="markers",
                name=family,
                text=[f"{t['label']} (launch {t.get('launch', 0)})" for _, t in mine],
                opacity=0.8,
            )
        )
    traces.append(
        go.Scatter(
            x=[i for i, _ in steps],
            y=[b for _, b in steps],
            mode="lines",
            name="best so far",
            line={"color": "#1a7f4b", "shape": "hv"},
        )
    )
    if p.get("eager_ms"):
        traces.append(
            go.Scatter(
                x=[0, len(trials) - 1],
                y=[p["eager_ms"]] * 2,
                mode="lines",
                name="eager",
                line={"color": "#b3372c", "dash": "dot"},
            )
        )
    return page.plot(traces, xaxis={"title": "trial"}, yaxis={"title": "ms", "type": "log"})


def _failures(trials: list[dict], tuning: dict) -> str:
    kinds: dict[tuple[str, str], int] = {}
    for t in trials:
        if not t.get("ms"):
            key = (
                t.get("outcome", "failed"),
                str(t.get("reason", "")).splitlines()[0][:160] if t.get("reason") else "",
            )
            kinds[key] = kinds.get(key, 0) + 1
    rows = [(outcome, n, reason) for (outcome, reason), n in sorted(kinds.items(), key=lambda k: -k[1])]
    rows += [("pruned", x["count"], x["reason"]) for x in tuning.get("pruned", ())]
    rows += [("unsupported", "", f"{x['realizer']}: {x['reason']}") for x in tuning.get("unsupported", ())]
    note = f"<p class='soft'>stopped: {_e(tuning['stopped_because'])}</p>" if tuning.get("stopped_because") else ""
    return note + (_table(["not measured", "count", "reason"], rows, {"count"}) if rows else "")


def _rest(page: _Page, r: dict) -> None:
    if r.get("leftover"):
        page.section(
            "leftover",
            "Left to PyTorch",
            f"Run by {r.get('leftover_runner', 'eager')}.",
            _table(["op", "node", "because"], [(x["op"], x["node"], x["reason"]) for x in r["leftover"]]),
        )
    if r.get("rejections"):
        page.section(
            "rejections",
            "Not taken",
            "Places where a rule matched in part, and why it could not be taken.",
            _table(
                ["rule", "nodes", "reason"], [(x["rule"], ", ".join(x["nodes"]), x["reason"]) for x in r["rejections"]]
            ),
        )
    if r.get("rewrites"):
        page.section(
            "rewrites",
            "Recognized spellings",
            "Composed spellings taken for the one op that they mean.",
            _table(
                ["what", "result", "stands for"],
                [(x["what"], x["result"], ", ".join(x["nodes"])) for x in r["rewrites"]],
            ),
        )
    _errors(page, r)
    _toolchain(page, r)


def _errors(page: _Page, r: dict) -> None:
    check = r.get("verification") or {}
    if "ok" not in check:
        return
    rows = [
        ("relative RMS", f"{check.get('rms_error', 0):.3g}", f"{check.get('baseline_rms_error', 0):.3g}"),
        (
            "maximum over mean magnitude",
            f"{check.get('max_error', 0):.3g}",
            f"{check.get('baseline_max_error', 0):.3g}",
        ),
    ]
    why = f"<p class='bad'>{_e(check['reason'])}</p>" if check.get("reason") else ""
    page.section(
        "errors",
        "Errors",
        "Of the whole module against its meaning in fp64, the worst of all inputs.",
        why + _table(["error", "optimized", "original"], rows, {"optimized", "original"}),
    )


def _toolchain(page: _Page, r: dict) -> None:
    rows = [(k, v if isinstance(v, str) else json.dumps(v)) for k, v in (r.get("toolchain") or {}).items()]
    rows += [("torch", r["torch"])] if r.get("torch") else []
    rows += [(f"seconds: {k}", f"{v:.2f}") for k, v in (r.get("stage_seconds") or {}).items()]
    if rows:
        page.section("toolchain", "Toolchain and time spent", "What built and ran it.", _table(["what", "value"], rows))


def render(report: dict) -> str:
    """The whole page. Errors: TS0708 (no report), TS0709 (plotly is missing)."""
    if report.get("schema") != "tessera.report/1":
        raise fail(
            "TS0708",
            "report.schema",
            "this is no report",
            expected="schema tessera.report/1",
            found=str(report.get("schema")),
        )
    page = _Page()
    for part in (_backends, _ladder, _ablation, _patterns, _roofline, _tuning, _rest):
        part(page, report)
    return page.text(f"tessera: {report.get('name', 'module')}", _head(report))


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m tessera.report report.json out.html", file=sys.stderr)
        return 3
    try:
        report = json.loads(Path(arguments[0]).read_text())
        Path(arguments[1]).write_text(render(report))
    except (OSError, ValueError) as e:
        print(f"error[TS0708]: {arguments[0]}: {e}", file=sys.stderr)
        return 3
    except Error as e:
        print(e, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
