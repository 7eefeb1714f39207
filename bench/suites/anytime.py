"""How good the best so far is at any moment of a search: one whole search of a module, whose plans of 15, 30, 60, 120 and
240 s and of the end are measured together, and beside them the plan of a search that was stopped at 30 s indeed, in a
process of its own. Every search starts from nothing."""

from __future__ import annotations

import json
import os
import time

import rows as table

CASES = ["minigpt", "llama-1x2048-written", "bert-layer", "resnet-bottleneck", "resnet-bottleneck-channels-last"]
HOME = "empty"
CHECKPOINTS = [15, 30, 60, 120, 240]
STOP = 30
# search_seconds -> case ("" for all) -> least ratio; "end": of the whole search.
GOALS = {
    30: {"": 0.98},
    120: {"llama-1x2048-written": 1.15, "minigpt": 1.5},
    "end": {"llama-1x2048-written": 1.20, "minigpt": 1.80},
}
WHOLE_SECONDS = 300
PEERS = ("eager", "inductor", "inductor-max-autotune")
MODES = ("synchronized", "back_to_back", "graph_synchronized", "graph_back_to_back")


class NoCheckpoints(Exception):
    """The product cannot tell the plans of earlier moments."""


def precisions(case: str) -> list[str]:
    return ["bf16"]


def unit(row: dict) -> tuple:
    return row["case"], row["precision"]


def asked_seconds(options) -> float | None:
    return options.seconds or None


def make(case: str, device: str):
    import torch
    from cases import anytime

    torch.manual_seed(0)
    return anytime.make(case, device)


def build(case: str, precision: str, device: str):
    module, draw = make(case, device)
    return module, draw()


NO_CHECKPOINTS = (
    "this version of tessera has no plans of earlier moments, without which `anytime` cannot be measured: the option "
    '`checkpoints=[seconds, ...]` of tessera.optimize is to leave a list of {"seconds", "plan"} in report["checkpoints"]'
)


def checkpoints_of(report: dict) -> list[dict]:
    """[{"seconds", "plan"}] of a search. A version without the option may take it and say nothing."""
    found = report.get("checkpoints")
    if not isinstance(found, list) or any("seconds" not in c or "plan" not in c for c in found):
        raise NoCheckpoints(NO_CHECKPOINTS)
    return found


def stopped_search(case: str, precision: str, ask: dict, environment: dict[str, str]) -> dict:
    """What fresh.run says of a search that is stopped at STOP seconds. It has a checkpoint too, so that it shows in time
    whether the product knows them."""
    import fresh

    ask = ask | {"seconds": STOP, "checkpoints": [STOP / 2]}
    try:
        found = fresh.run({"suite": "anytime", "case": case, "precision": precision, "optimize": ask}, environment)
    except fresh.Failed as e:
        if "checkpoints" in str(e):
            raise NoCheckpoints(f"{NO_CHECKPOINTS} ({e})") from e
        raise
    checkpoints_of(found["report"])
    return found


def measure(case: str, precision: str, options) -> list[dict]:
    import device as devices
    import homes

    from suites import tables

    ask = tables.asked(options)
    with homes.empty() as home:
        stopped = stopped_search(case, precision, ask, dict(os.environ) | home)
        device = devices.default()
        module, draw = make(case, device)
        return measure_module(case, precision, module, draw, ask, stopped, device)


def measure_module(case: str, precision: str, module, draw, ask: dict, stopped: dict, device: str) -> list[dict]:
    """`stopped`: what fresh.run says of the search that was stopped."""
    import beside
    import device as devices
    import torch

    sets = devices.draw_sets(draw)
    fast, seconds = _search(module, sets[0], ask)
    moments = [("checkpoint", c["seconds"], c["plan"]) for c in checkpoints_of(fast.report)]
    moments.append(("end", _search_seconds(fast.report, seconds), fast.plan))
    moments.append(("real", STOP, stopped["plan"]))
    ways, way_of = _compose(module, sets[0], [plan for *_, plan in moments])
    absent: dict[str, str] = {}
    ways |= _peers(module, sets[0], device, absent)
    errors = beside.errors(module, ways, sets[0])
    figures = beside.times(ways, sets, device)

    about = table.about(devices.name_of(device), fast.report, torch.__version__)
    about |= {"precision": precision, "absent": absent | figures["absent"]}
    took = {"checkpoint": seconds, "end": seconds, "real": stopped["seconds_to_optimize"]}
    made = []
    for (stop, at, _), way in zip(moments, way_of, strict=True):
        row = {"case": case, "stop": stop, "search_seconds": at, "seconds_to_optimize": round(took[stop], 1), **about}
        row |= _placed(ways[way]) | {
            "errors": _errors_of(errors, way),
            "same_plan_as": _first_with(moments, way_of, way),
        }
        for mode in MODES:
            row[mode] = _compared(figures[mode], way) if mode in figures else None
        made.append(row | {"ratio": row["synchronized"]["ratio"]})
    return made


def _search(module, inputs: tuple, ask: dict):
    """The whole search of a copy; what came of it, and its seconds."""
    import device as devices
    import tessera

    begin = time.monotonic()
    fast = tessera.optimize(devices.copy_of(module), inputs, checkpoints=CHECKPOINTS, **ask)
    return fast, time.monotonic() - begin


def _search_seconds(report: dict, seconds: float) -> float:
    return round(report.get("stage_seconds", {}).get("evaluate", seconds), 1)


def _compose(module, inputs: tuple, plans: list[dict]) -> tuple[dict, list[str]]:
    """A copy of the module under every plan, by way; a way stands for all moments with the same plan. The way of each
    moment."""
    import device as devices
    from tessera.tracing.held import hold

    ways, by_plan, way_of = {}, {}, []
    for plan in plans:
        text = json.dumps(plan, sort_keys=True)
        if text not in by_plan:
            by_plan[text] = f"plan {len(by_plan)}"
            held = hold(devices.copy_of(module), inputs, {})
            ways[by_plan[text]] = held.compose(plan, plan.get("leftover_runner", "eager"))
        way_of.append(by_plan[text])
    return ways, way_of


def _first_with(moments: list, way_of: list[str], way: str) -> float:
    return moments[way_of.index(way)][1]


def _peers(module, inputs: tuple, device: str, absent: dict[str, str]) -> dict:
    import beside
    import device as devices

    import doors

    ways = {"eager": module}
    for name, mode in (("inductor", None), ("inductor-max-autotune", "max-autotune-no-cudagraphs")):
        try:
            ways[name] = doors.inductor(devices.copy_of(module), inputs, device, mode).way
        except Exception as e:
            absent[name] = beside.first_line(e)
    return ways


def _placed(composed) -> dict:
    import doors

    state = doors.state_of(doors.of_composed(composed))
    return {name: state[name] for name in ("runner", "leftover", "kernels", "fallbacks")}


def _errors_of(errors: dict, way: str) -> dict:
    if "absent" in errors:
        return errors
    return {"tessera": errors[way], **{name: errors[name] for name in PEERS if name in errors}}


def _compared(figures: dict, way: str) -> dict | None:
    """`ratio`: of the better of eager and plain torch.compile; `ratio_best_inductor`: of the best Inductor."""
    import beside

    part = beside.compared(figures, way, PEERS)
    if part is None:
        return None
    plain = beside.compared(figures, way)
    part |= {"best": plain["best"], "ratio": plain["ratio"]}
    inductors = [part[name]["ms"] for name in PEERS[1:] if name in part]
    part["ratio_best_inductor"] = min(inductors) / part["tessera"]["ms"] if inductors else None
    return part


def line(row: dict) -> str:
    if "failed" in row:
        return f"{row['case']:32} FAILED: {row['failed']}"
    parts = [f"{row['case']:32} {row['stop']:10} {row['search_seconds']:6.1f} s"]
    for mode, short in zip(MODES, ("sync", "b2b", "graph sync", "graph b2b"), strict=True):
        if row[mode]:
            part = row[mode]
            inductor = part["ratio_best_inductor"]
            parts.append(
                f"{short} {part['tessera']['ms']:.4f} ms {part['ratio']:.3f}x"
                + (f" (best Inductor {inductor:.3f}x)" if inductor else "")
            )
    return (
        "; ".join(parts)
        + f"; {row['runner']}, rest {row['leftover'] or 'none'}, {row['kernels']}; {row['seconds_to_optimize']} s"
    )


def summary(rows: list[dict]) -> list[str]:
    out = []
    right = [r for r in rows if "failed" not in r]
    for moment, goals in GOALS.items():
        for row in right:
            at = row["stop"] if moment == "end" else row["search_seconds"]
            goal = goals.get(row["case"], goals.get(""))
            if at != moment or goal is None:
                continue
            # 0.98 is against the better of eager and torch.compile, the rest against the best Inductor.
            ratios = [row[mode]["ratio" if goal < 1 else "ratio_best_inductor"] for mode in MODES[:2]]
            least = min((x for x in ratios if x), default=None)
            if least is not None:
                verdict = "reached" if least >= goal else "MISSED"
                out.append(f"{row['case']} at {moment} ({row['stop']}): {least:.3f}, goal {goal}: {verdict}")
    whole = {r["case"]: r["seconds_to_optimize"] for r in right if r["stop"] == "end"}
    return out + [f"{case}: whole in {s} s, goal {WHOLE_SECONDS}" for case, s in whole.items()]
