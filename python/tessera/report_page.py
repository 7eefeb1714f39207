"""The parts that a report's page is put together from: the page with its style, tables, numbers as text."""

from __future__ import annotations

import html
import importlib.util
import sys
from collections.abc import Iterable

from tessera.common.errors import Error, diagnostic

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

green, blue, red, pale, grey = (
    "#2a9d63",
    "#4a7fd1",
    "#d0584b",
    "#8ea8cf",
    "#8793a3",
)  # readable on white and on black


def missing_plots() -> Error | None:
    """That plots are not drawn, and how to get them; None where plotly is installed."""
    if importlib.util.find_spec("plotly"):
        return None
    said = diagnostic(
        "TS0709",
        "report.no_plotly",
        "the HTML report has tables in place of plots",
        expected=f"the package plotly in {sys.executable}",
        helps=[
            f"{sys.executable} -m pip install plotly, then render it again: tessera report FOLDER --html FILE",
            "TESSERA_PYTHON names another Python",
        ],
        level="warning",
    )
    return Error(said)


class Page:
    """Collects sections. plotly draws the plots where it is installed; its script is inlined once."""

    def __init__(self):
        self.parts: list[str] = []
        self.sections: list[tuple[str, str]] = []
        self._script = True

    def section(self, key: str, title: str, lead: str, body: str) -> None:
        self.sections.append((key, title))
        self.parts.append(
            f'<section id="{key}"><h2>{escaped(title)}</h2><p class="lead">{escaped(lead)}</p>{body}</section>'
        )

    def plot(self, traces: list[dict], height: int = 340, **layout) -> str:
        """`traces` as plotly's JSON has them; without plotly their figures in a table."""
        if missing_plots():
            return _figures(traces, *(layout.get(axis, {}).get("title", "") for axis in ("xaxis", "yaxis")))
        import plotly.graph_objects as go
        import plotly.io as pio

        for name in ("xaxis", "yaxis"):
            layout[name] = {"automargin": True, **layout.get(name, {})}
        figure = go.Figure(traces)
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
        text = pio.to_html(figure, full_html=False, include_plotlyjs=self._script, config=config)
        self._script = False
        return text

    def text(self, title: str, head: str) -> str:
        links = "".join(f'<a href="#{key}">{escaped(name)}</a>' for key, name in self.sections)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>'
            f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_style}</style></head><body><main>{head}'
            f"<nav>{links}</nav>{''.join(self.parts)}</main><script>{'' if self._script else _theme}</script></body></html>"
        )


def _figures(traces: list[dict], x: str, y: str) -> str:
    """The figures of a plot; lines that only guide the eye are left out."""

    def text(value) -> str:
        return f"{value:.4g}" if isinstance(value, int | float) else str(value)

    rows = [
        (trace.get("name", ""), text(a), text(b))
        for trace in traces
        if trace.get("mode") != "lines"
        for a, b in zip(trace["x"], trace["y"], strict=True)
    ]
    listed = table(["series", x or "of", y or "of"], rows)
    return f"<details class='more'><summary>{len(rows)} figures</summary>{listed}</details>"


def escaped(value) -> str:
    return html.escape(str(value))


def ms_text(value) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) and value > 0 else ""


def table(
    columns: Iterable[str], rows: Iterable[Iterable], numeric: set[str] = frozenset(), short: set[str] = frozenset()
) -> str:
    """`numeric` columns are right-aligned, `short` ones never broken; the last column of words gets the room."""
    columns = list(columns)
    words = [c for c in columns if c not in numeric and c not in short]
    kinds = ["n" if c in numeric else "k" if c in short else "t" if words and c == words[-1] else "w" for c in columns]
    head = "".join(f'<th class="{k}">{escaped(c)}</th>' for c, k in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{k}">{v if isinstance(v, Html) else escaped(v)}</td>' for v, k in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


class Html(str):
    """Text that is markup already."""
