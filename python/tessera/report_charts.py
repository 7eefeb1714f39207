"""The sections of a report that are plots: backends, gains, ablation, roofline, tuning."""

from __future__ import annotations

from tessera.report_page import Page, blue, escaped, green, grey, ms_text, pale, red, table


def best_of(pattern: dict) -> dict:
    return (pattern.get("winners") or [{}])[0]


def times_of(report: dict) -> dict[str, dict]:
    return (report.get("module") or {}).get("times") or {}


def backends(page: Page, r: dict) -> None:
    times, absent = times_of(r), (r.get("module") or {}).get("absent") or {}
    if not times and not absent:
        return
    ordered = sorted(times.items(), key=lambda item: item[1]["ms"])
    body = ""
    if ordered:
        body = page.plot(
            [
                dict(
                    type="bar",
                    y=[name for name, _ in ordered],
                    x=[t["ms"] for _, t in ordered],
                    orientation="h",
                    error_x={"type": "data", "array": [t.get("ci95", 0) for _, t in ordered]},
                    marker={"color": [green if name == "tessera" else pale for name, _ in ordered]},
                    text=[f"  {ms_text(t['ms'])}" for _, t in ordered],
                    cliponaxis=False,
                    textposition="outside",
                )
            ],
            height=110 + 46 * len(ordered),
            xaxis={"title": "ms, median and 95 % interval", "rangemode": "tozero"},
        )
    if noisy := [name for name, t in ordered if not t.get("reliable", True)]:
        names = escaped(", ".join(noisy))
        body += f"<p class='bad'>not reliable: {names}: other work ran on this machine while they were timed</p>"
    if absent:
        body += table(["not measured", "because"], absent.items())
    page.section("backends", "Backends side by side", "One process, interleaved, equal precision, cold caches.", body)


def ladder(page: Page, r: dict) -> None:
    """What each placed pattern takes off the eager sum, one after the other."""
    active = [p for p in r.get("patterns", []) if p.get("active") and best_of(p).get("evidence", {}).get("ms")]
    gains = sorted(((p.get("eager_ms", 0) - best_of(p)["evidence"]["ms"], p) for p in active), key=lambda g: -g[0])
    if not gains:
        return
    total = sum(p.get("eager_ms", 0) for _, p in gains)
    body = page.plot(
        [
            dict(
                type="waterfall",
                x=["eager", *[f"{p['id']} {p['rule']}" for _, p in gains], "kernels"],
                measure=["absolute", *["relative"] * len(gains), "total"],
                y=[total, *[-g for g, _ in gains], 0],
                decreasing={"marker": {"color": green}},
                increasing={"marker": {"color": red}},
                totals={"marker": {"color": blue}},
                connector={"line": {"color": grey}},
                hovertext=[""] + [best_of(p).get("label", "") for _, p in gains] + [""],
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


def _speedup(part: dict) -> str:
    return f"{part.get('speedup', 0):.2f}×" if part.get("comparable", True) else "not reliable"


def ablation(page: Page, r: dict) -> None:
    rows = (r.get("module") or {}).get("ablation") or []
    if not rows:
        return
    rows = sorted(rows, key=lambda a: a.get("speedup", 0))
    body = page.plot(
        [
            dict(
                type="bar",
                y=[a["name"] for a in rows],
                x=[a.get("speedup", 0) for a in rows],
                orientation="h",
                marker={"color": [green if a["name"] == "all" else pale for a in rows]},
                text=[f"{_speedup(a)}  {ms_text(a.get('ms'))} ms" for a in rows],
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


def roofline(page: Page, r: dict) -> None:
    peaks = r.get("peaks") or {}
    tflops, bandwidth = peaks.get("tflops"), peaks.get("achievable_bandwidth_gbs") or peaks.get("bandwidth_gbs")
    points = [
        (p, best_of(p)["evidence"]["ms"])
        for p in r.get("patterns", [])
        if p.get("flops") and p.get("min_bytes") and best_of(p).get("evidence", {}).get("ms")
    ]
    if not points or not tflops or not bandwidth:
        return
    intensity = [p["flops"] / p["min_bytes"] for p, _ in points]
    low, high = min(*intensity, 1) / 4, max(*intensity, tflops * 1e3 / bandwidth) * 4
    xs = [low * (high / low) ** (i / 200) for i in range(201)]
    traces = [
        dict(
            type="scatter",
            x=xs,
            y=[min(tflops, x * bandwidth / 1e3) for x in xs],
            mode="lines",
            name="roofline",
            line={"color": grey},
            hoverinfo="skip",
        )
    ]
    for kind, color in (("synthesized", green), ("library", blue)):
        mine = [(p, ms) for p, ms in points if best_of(p).get("kind") == kind]
        if mine:
            traces.append(
                dict(
                    type="scatter",
                    x=[p["flops"] / p["min_bytes"] for p, _ in mine],
                    y=[p["flops"] / ms / 1e9 for p, ms in mine],
                    mode="markers+text",
                    name=kind,
                    text=[p["id"] for p, _ in mine],
                    textposition="top center",
                    marker={"size": 11, "color": color},
                    hovertext=[f"{p['rule']}: {best_of(p).get('label', '')}, {ms:.4g} ms" for p, ms in mine],
                )
            )
    body = page.plot(
        traces,
        height=400,
        xaxis={"title": "flop per byte of least traffic", "type": "log"},
        yaxis={"title": "Tflop/s", "type": "log"},
    )
    page.section("roofline", "Roofline", f"Peak {tflops:.4g} Tflop/s, {bandwidth:.4g} GB/s.", body)


def tuning(page: Page, r: dict) -> None:
    parts = []
    for p in r.get("patterns", []):
        search = p.get("tuning") or {}
        trials = search.get("trials") or []
        if not trials:
            continue
        parts.append(
            f"<h3>{escaped(p['id'])} {escaped(p['rule'])} <span class='soft'>{escaped(p.get('summary', ''))}</span></h3>"
        )
        parts.append(_scatter(page, trials, p))
        parts.append(_failures(trials, search))
    if parts:
        page.section(
            "tuning", "Tuning", "Every configuration that was tried, in order; failures by kind.", "".join(parts)
        )


def _scatter(page: Page, trials: list[dict], p: dict) -> str:
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
            dict(
                type="scatter",
                x=[i for i, _ in mine],
                y=[t["ms"] for _, t in mine],
                mode="markers",
                name=family,
                text=[f"{t['label']} (launch {t.get('launch', 0)})" for _, t in mine],
                opacity=0.8,
            )
        )
    traces.append(
        dict(
            type="scatter",
            x=[i for i, _ in steps],
            y=[b for _, b in steps],
            mode="lines",
            name="best so far",
            line={"color": green, "shape": "hv"},
        )
    )
    if p.get("eager_ms"):
        traces.append(
            dict(
                type="scatter",
                x=[0, len(trials) - 1],
                y=[p["eager_ms"]] * 2,
                mode="lines",
                name="eager",
                line={"color": red, "dash": "dot"},
            )
        )
    return page.plot(traces, xaxis={"title": "trial"}, yaxis={"title": "ms", "type": "log"})


def _failures(trials: list[dict], search: dict) -> str:
    kinds: dict[tuple[str, str], int] = {}
    for t in trials:
        if not t.get("ms"):
            key = (
                t.get("outcome", "failed"),
                str(t.get("reason", "")).splitlines()[0][:160] if t.get("reason") else "",
            )
            kinds[key] = kinds.get(key, 0) + 1
    rows = [(outcome, n, reason) for (outcome, reason), n in sorted(kinds.items(), key=lambda k: -k[1])]
    rows += [("pruned", x["count"], x["reason"]) for x in search.get("pruned", ())]
    rows += [("unsupported", "", f"{x['realizer']}: {x['reason']}") for x in search.get("unsupported", ())]
    note = f"<p class='soft'>stopped: {escaped(search['stopped_because'])}</p>" if search.get("stopped_because") else ""
    if not rows:
        return note
    listed = table(["not measured", "count", "reason"], rows, {"count"}, {"not measured"})
    count = sum(kinds.values())
    words = f"{count} that failed, and what was never built" if count else "what was never built, and why"
    return f"{note}<details class='more'><summary>{words}</summary>{listed}</details>"
