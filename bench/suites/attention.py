"""Forward attention, our kernels alone, beside torch's by cuDNN and flash, and FlexAttention where there is a mask or a cap.

All ways to compute a case are timed in turns in one process. On CUDA the row's times are of CUDA graphs, back to back: what
the kernels take; `modes` has the others.
"""

from __future__ import annotations

import math
import time

import rows as table
from cases import attention as cases

from suites import tables
from suites.tables import asked_seconds, line, unit

__all__ = ["CASES", "HOME", "asked_seconds", "build", "line", "measure", "precisions", "summary", "unit"]

CASES = list(cases.CASES)
HOME = "shared"
GOALS = {"cudnn": (1.05, 0.95), "flex": (1.3, 0.0)}  # geometric mean, least


def precisions(case: str) -> list[str]:
    return ["bf16"]


def build(case: str, precision: str, device: str):
    import torch

    module, draw = cases.make(cases.CASES[case], device, tables.dtype_of(precision))
    torch.manual_seed(1)
    return module, draw()


def measure(case: str, precision: str, options) -> list[dict]:
    import device as devices

    return measure_case(cases.CASES[case], precision, options, devices.default())


def measure_case(case: cases.Case, precision: str, options, device: str) -> list[dict]:
    """One row a peer."""
    import beside
    import device as devices
    import tessera
    import torch

    module, draw = cases.make(case, device, tables.dtype_of(precision))
    sets = devices.draw_sets(draw)
    begin = time.monotonic()
    fast = tessera.optimize(
        module,
        sets[0],
        precision=precision,
        measure=["eager"],
        ablation=False,
        resizes=not options.no_resizes,
        only="synthesized",
        place_all=True,
        **tables.asked(options),
    )
    seconds = time.monotonic() - begin
    ways, absent = {"tessera": fast}, {}
    for name in peers_of(case):
        try:
            ways[name] = peer(name, case, device)
            ways[name](*sets[0])
        except Exception as e:  # a backend that does not take the case
            ways.pop(name, None)
            absent[name] = beside.first_line(e)
    figures = beside.times(ways, sets, device)
    mode = "graph_back_to_back" if "tessera" in figures.get("graph_back_to_back", {}) else "back_to_back"
    about = table.about(devices.name_of(device), fast.report, torch.__version__)
    about |= {"search_seconds": tables.search_seconds(fast.report, options.seconds)}
    about |= {"seconds_to_optimize": round(seconds, 1), "mode": mode}
    return [row | about for row in _rows(case, precision, fast.report, figures, mode, absent)]


def peers_of(case: cases.Case) -> list[str]:
    return ["cudnn", "flash"] if case.plain else ["flex"] if case.softcap else ["cudnn", "flex"]


def peer(name: str, case: cases.Case, device: str):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if name == "flex":
        return cases.flex(case, device)
    backend = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[name]
    module = cases.Attention(case)

    def call(*inputs):
        with sdpa_kernel(backend):
            return module(*inputs)

    return call


def _rows(case: cases.Case, precision: str, report: dict, figures: dict, mode: str, absent: dict) -> list[dict]:
    check = report.get("verification", {})
    kernels = tables.kernels_of(report, "synthesized")
    ours = figures[mode]["tessera"]
    made = []
    for name in peers_of(case):
        row = {"case": case.name, "precision": precision, "kind": report.get("kind", "none"), "peer": name}
        row |= {"impl": kernels[0]["label"] if kernels else "none", "ms": ours.ms, "ci95": ours.ci95}
        theirs = figures[mode].get(name)
        row |= {"peer_ms": theirs.ms if theirs else None, "peer_ci95": theirs.ci95 if theirs else None}
        row["ratio"] = theirs.ms / ours.ms if theirs and kernels else None
        row |= {"rms_error": check.get("rms_error"), "peer_rms_error": check.get("baseline_rms_error")}
        row["modes"] = {m: {n: f.ms for n, f in figures[m].items()} for m in figures if m != "absent"}
        row["kernels"] = kernels
        if theirs is None:
            row["absent"] = absent.get(name) or figures["absent"].get(name, "not measured")
        if why := tables.why_none(report, "synthesized"):
            row["why"] = why
        made.append(row)
    return made


def summary(rows: list[dict]) -> list[str]:
    out = []
    for name, (mean, least) in GOALS.items():
        of_goal = [r for r in rows if name == "flex" or (r["case"] in cases.CASES and cases.CASES[r["case"]].plain)]
        found = [r["ratio"] for r in of_goal if r.get("peer") == name and r.get("ratio")]
        if found:
            geomean = math.exp(sum(map(math.log, found)) / len(found))
            text = f"{name}: {len(found)} cases, geometric mean {geomean:.3f}x (goal {mean}x), least {min(found):.3f}x"
            out.append(text + (f" (goal {least}x)" if least else ""))
    return out
