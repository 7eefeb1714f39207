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
:root { color-scheme:light dark; --ink:#1c2430; --soft:#5b6776; --line:#e3e7ec; --back:#f7f8fa; --card:#fff; --good:#1a7f4b;
--bad:#b3372c; --accent:#2b5fb3; --warn:#8a6100 }
@media (prefers-color-scheme:dark) { :root { --ink:#e4e8ee; --soft:#9aa6b5; --line:#323b47; --back:#12161c; --card:#1a2028;
--good:#4cc38a; --bad:#f2796b; --accent:#7fb0ff; --warn:#e0b34c } }
* { box-sizing:border-box }
body { margin:0; background:var(--back); color:var(--ink); font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif }
main { max-width:1100px; margin:0 auto; padding:32px 20px 80px }
h1 { font-size:28px; margin:0; overflow-wrap:anywhere } h2 { font-size:19px; margin:0 0 4px } h3 { font-size:15px; margin:22px 0 4px }
p.lead { color:var(--soft); margin:2px 0 14px }
section { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:20px 22px; margin:18px 0 }
.figures { display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:14px; margin:20px 0 0 }
.figures div { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:12px 18px }
.figures b { display:block; font-size:24px; white-space:nowrap } .figures span { color:var(--soft); font-size:13px }
.figures b span { font-size:24px; color:inherit } .figures b .good { color:var(--good) } .figures b .bad { color:var(--bad) }
.figures b .warn { color:var(--warn) }
.wide { overflow-x:auto } table { border-collapse:collapse; width:100%; font-size:14px }
th { text-align:left; color:var(--soft); font-weight:600; border-bottom:2px solid var(--line); padding:6px 12px 6px 0; white-space:nowrap }
td { border-bottom:1px solid var(--line); padding:6px 12px 6px 0; vertical-align:top; overflow-wrap:anywhere }
td.w { min-width:10em }
td.n,th.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap } td.k,th.k { white-space:nowrap } td.t { min-width:16em }
code { font:13px ui-monospace,Menlo,Consolas,monospace; overflow-wrap:anywhere }
.good { color:var(--good) } .bad { color:var(--bad) } .soft { color:var(--soft) } .warn { color:var(--warn) }
details summary { cursor:pointer; color:var(--accent) } details.more { margin:6px 0 }
nav { display:flex; flex-wrap:wrap; gap:4px 14px; margin-top:18px } nav a { color:var(--accent); text-decoration:none }
@media (max-width:600px) { main { padding:16px 8px 40px } section { padding:14px 12px } h1 { font-size:22px } }
"""

# Plots are drawn by script, so the page's colours are put on them there, again when the system's scheme changes.
_theme = """
(function () {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  function paint() {
    const css = getComputedStyle(document.documentElement), c = (name) => css.getPropertyValue(name).trim();
    const axes = {};
    for (const a of ['xaxis', 'yaxis']) { axes[a + '.gridcolor'] = c('--line'); axes[a + '.zerolinecolor'] = c('--soft'); axes[a + '.linecolor'] = c('--line'); }
    document.querySelectorAll('.js-plotly-plot').forEach((p) => Plotly.relayout(p, {'font.color': c('--ink'), ...axes}));
  }
  window.addEventListener('load', paint);
  dark.addEventListener('change', paint);
})();
"""

_green, _blue, _red, _pale, _grey = (
    "#2a9d63",
    "#4a7fd1",
    "#d0584b",
    "#8ea8cf",
    "#8793a3",
)  # readable on white and on black


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
        for name in ("xaxis", "yaxis"):
            layout[name] = {"automargin": True, **layout.get(name, {})}
        figure = self.go.Figure(traces)
        figure.update_layout(
            template="none",
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            height=height,
            margin={"l": 10, "r": 40, "t": 20, "b": 10},
            font={"family": "system-ui, sans-serif", "size": 13},
            legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            **layout,
        )
        config = {"displayModeBar": False, "responsive": True}
        text = self.pio.to_html(figure, full_html=False, include_plotlyjs=self._script, config=config)
        self._script = False
        return text

    def text(self, title: str, head: str) -> str:
        links = "".join(f'<a href="#{key}">{_e(name)}</a>' for key, name in self.sections)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_e(title)}</title>'
            f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_style}</style></head><body><main>{head}'
            f"<nav>{links}</nav>{''.join(self.parts)}</main><script>{'' if self._script else _theme}</script></body></html>"
        )


def _e(value) -> str:
    return html.escape(str(value))


def _ms(value) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) and value > 0 else ""


def _table(
    columns: Iterable[str], rows: Iterable[Iterable], numeric: set[str] = frozenset(), short: set[str] = frozenset()
) -> str:
    """`numeric` columns are right-aligned, `short` ones never broken; the last column of words gets the room."""
    columns = list(columns)
    words = [c for c in columns if c not in numeric and c not in short]
    kinds = ["n" if c in numeric else "k" if c in short else "t" if words and c == words[-1] else "w" for c in columns]
    head = "".join(f'<th class="{k}">{_e(c)}</th>' for c, k in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{k}">{v if isinstance(v, _Html) else _e(v)}</td>' for v, k in zip(row, kinds, strict=True)
        )
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
        figures += [
            (f"{t['ms'] / ours:.2f}×", f"the speed of {name}") for name, t in times.items() if name != "tessera"
        ]
    patterns = r.get("patterns", [])
    figures.append((f"{sum(bool(p.get('active')) for p in patterns)} of {len(patterns)}", "patterns active"))
    check = r.get("verification") or {}
    if "ok" in check:
        word = '<span class="good">right</span>' if check["ok"] else '<span class="bad">wrong</span>'
        figures.append((_Html(word), "against fp64"))
    cards = "".join(f"<div><b>{v if isinstance(v, _Html) else _e(v)}</b><span>{_e(t)}</span></div>" for v, t in figures)
    if r.get("stopped"):
        figures.append((_Html('<span class="warn">stopped</span>'), "before the end; run again to go on"))
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
                    marker_color=[_green if name == "tessera" else _pale for name, _ in ordered],
                    text=[f"  {_ms(t['ms'])}" for _, t in ordered],
                    cliponaxis=False,
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
                decreasing={"marker": {"color": _green}},
                increasing={"marker": {"color": _red}},
                totals={"marker": {"color": _blue}},
                connector={"line": {"color": _grey}},
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
                marker_color=[_green if a["name"] == "all" else _pale for a in rows],
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


def _kernel(best: dict) -> str:
    if not best.get("config"):
        return _e(best.get("label", ""))
    facts = {"config": best["config"], "launch": best.get("knobs") or {}, "resources": best.get("resources") or {}}
    text = "<br>".join(f"{name} {_e(json.dumps(value))}" for name, value in facts.items() if value)
    return f"<details><summary>{_e(best.get('label', 'config'))}</summary><code>{text}</code></details>"


def _patterns(page: _Page, r: dict) -> None:
    active, others = [], []
    for p in r.get("patterns", []):
        best = _best(p)
        e = best.get("evidence", {})
        ms, eager, floor = e.get("ms", 0), p.get("eager_ms", 0), p.get("floor_ms", 0)
        figures = [_ms(ms), _ms(eager), f"{eager / ms:.2f}×" if ms and eager else "", _ms(floor)]
        name = [p.get("id", ""), p.get("rule", "")]
        if p.get("active"):
            of_floor = f"{100 * floor / ms:.0f} %" if ms and floor else ""
            errors = f"{e['rms_error']:.2g} / {e.get('baseline_rms_error', 0):.2g}" if e.get("rms_error") else ""
            what = _Html(f"{_e(p.get('summary', ''))}<br>{_kernel(best)}")
            active.append([*name, what, best.get("kind", ""), *figures, of_floor, errors])
        else:
            others.append([*name, p.get("summary", ""), p.get("inactive_because", "not active"), *figures])
    body = ""
    numeric = {"ms", "eager ms", "gain", "floor ms", "of floor", "rms error / eager"}
    if active:
        columns = ["id", "rule", "what, and by which kernel", "kind", "ms", "eager ms", "gain", "floor ms", "of floor"]
        body += _table([*columns, "rms error / eager"], active, numeric, {"id", "rule", "kind"})
    if others:
        columns = ["id", "rule", "what", "why it is not active", "ms", "eager ms", "gain", "floor ms"]
        body += "<h3>Found and not used</h3>" + _table(columns, others, numeric, {"id", "rule"})
    if body:
        page.section(
            "patterns",
            "What was found",
            "Each pattern with the kernel that won, beside eager's time and the least that the roofline allows; errors "
            "against fp64 beside eager's own.",
            body,
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
            line={"color": _grey},
            hoverinfo="skip",
        )
    ]
    for kind, color in (("synthesized", _green), ("library", _blue)):
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
            line={"color": _green, "shape": "hv"},
        )
    )
    if p.get("eager_ms"):
        traces.append(
            go.Scatter(
                x=[0, len(trials) - 1],
                y=[p["eager_ms"]] * 2,
                mode="lines",
                name="eager",
                line={"color": _red, "dash": "dot"},
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
    if not rows:
        return note
    table = _table(["not measured", "count", "reason"], rows, {"count"}, {"not measured"})
    count = sum(kinds.values())
    words = f"{count} that failed, and what was never built" if count else "what was never built, and why"
    return f"{note}<details class='more'><summary>{words}</summary>{table}</details>"


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
    body = why + _table(["error", "optimized", "original"], rows, {"optimized", "original"})
    if check.get("resizes"):
        body += "<h3>Optimized again at other sizes</h3>" + _resizes(check["resizes"])
    page.section("errors", "Errors", "Of the whole module against its meaning in fp64, the worst of all inputs.", body)


def _resizes(resizes: list[dict]) -> str:
    words = {True: _Html('<span class="good">right</span>'), False: _Html('<span class="bad">wrong</span>')}
    rows = []
    for x in resizes:
        known = x.get("ok") is not None
        rows.append(
            [
                x.get("size", ""),
                words.get(x.get("ok"), _Html('<span class="warn">not verified</span>')),
                f"{x.get('kernels', 0)} of {x.get('of', 0)}" if known else "",
                f"{x['rms_error']:.2g}" if isinstance(x.get("rms_error"), float) else "",
                f"{x['baseline_rms_error']:.2g}" if isinstance(x.get("baseline_rms_error"), float) else "",
                x.get("reason", ""),
            ]
        )
    columns = ["size", "module", "kernels", "rms error", "original's", "because"]
    return _table(columns, rows, {"rms error", "original's"}, {"module", "kernels"})


def _toolchain(page: _Page, r: dict) -> None:
    rows = [(k, v if isinstance(v, str) else json.dumps(v)) for k, v in (r.get("toolchain") or {}).items()]
    rows += [("torch", r["torch"])] if r.get("torch") else []
    rows += [(f"seconds: {k}", f"{v:.2f}") for k, v in (r.get("stage_seconds") or {}).items()]
    if rows:
        page.section(
            "toolchain",
            "Toolchain and time spent",
            "What built and ran it.",
            _table(["what", "value"], rows, short={"what"}),
        )


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
