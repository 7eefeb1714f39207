"""The rewritten graph against the traced one: both executed in float64, on perturbed parameters and redrawn inputs.

Both are then functions on the reals: no conversion between floating types rounds (reference.py), so that a rewrite may
drop or move one. What is left between them is round-off of fp64, and what a rewrite may be off by design.

BOUND on the relative RMS difference of a result: a sum of n terms is off by about sqrt(n) 2^-53, at most n 2^-53: 1e-14 to
2e-12 for n = 14336; a graph of many such sums, badly conditioned by a factor of 100, stays below 1e-9. A spelling that is
recognized by its values (src/rewrite/row_function.cpp) agrees with its op within 1e-9 of max(1, |y|), of which there may be
several in a row: hence 4e-9.

Where fp64 does not fit into memory, fp32 is tried with IEEE products (2^-24 in place of 2^-53: 1e-4 finds what is plainly
wrong); where that does not either, nothing is checked, and the result says so.
"""

from __future__ import annotations

import time
from collections import ChainMap

import torch

from tessera.common.errors import Error, fail
from tessera.common.reference import Executor
from tessera.judging.deviation import Reference, reference_errors
from tessera.judging.perturbed import AMPLITUDE, Perturbed, perturbed_inputs
from tessera.judging.problem import arithmetic
from tessera.tracing.held import Held, cuda_devices, inputs_of

BOUND = {torch.float64: 4e-9, torch.float32: 1e-4}
_flips = 1e-5  # of integer results: a rounding or a comparison may fall the other way at a tie
_forms = {torch.float64: "fp64", torch.float32: "fp32"}


def check_rewrites(held: Held, graph: dict, seed: int = 1) -> dict:
    """`graph`, of the same inputs and outputs, against the held one (docs/protocol.md, `check_rewrites`). `ok` is None when
    nothing could be checked."""
    begin = time.perf_counter()
    same_inputs(held, graph)
    reply, out_of_memory = {"ok": None, "form": "skipped", "reason": ""}, ""
    args, kwargs = inputs_of(held, seed)
    given = perturbed_inputs(held.traced.flatten(args, kwargs), held.graph, seed)
    for dtype in BOUND:
        try:
            reply = _check_in(held, graph, given, seed, dtype)
            break
        except torch.OutOfMemoryError as e:
            out_of_memory = f"{_forms[dtype]} does not fit into memory: {str(e).splitlines()[0][:200]}"
        _free(held.device)
    if out_of_memory and not reply["reason"]:
        reply["reason"] = out_of_memory
    return {**reply, "seconds": time.perf_counter() - begin}


def _check_in(held: Held, graph: dict, given: dict, seed: int, dtype: torch.dtype) -> dict:
    amplitude = AMPLITUDE
    in_own_types: set[str] = set()
    wanted = _run(held, held.graph, given, seed, dtype, amplitude, in_own_types)
    if not _mostly_finite(wanted):  # what grows with every layer may leave the range; closer to the module it does not
        amplitude /= 1000
        wanted = _run(held, held.graph, given, seed, dtype, amplitude, in_own_types)
    reply = {"ok": True, "form": _forms[dtype], "bound": BOUND[dtype], "rms_error": 0.0, "reason": ""}
    reply["in_own_types"] = sorted(in_own_types)
    try:
        made = _run(held, graph, given, seed, dtype, amplitude, in_own_types)
    except torch.OutOfMemoryError:
        raise
    except (Error, RuntimeError, TypeError, ValueError, IndexError) as e:  # ATen's ways to refuse a call
        return reply | {"ok": False, "reason": f"the rewritten graph cannot be executed: {e}"[:400]}
    if len(made) != len(wanted):
        return reply | {"ok": False, "reason": f"{len(made)} results; the traced graph gives {len(wanted)}"}
    for i, (new, old) in enumerate(zip(made, wanted, strict=True)):
        error, reason = _difference(new, old, BOUND[dtype])
        reply["rms_error"] = max(reply["rms_error"], error)
        if reason and reply["ok"]:
            reply |= {"ok": False, "reason": f"result {i} of the rewritten graph: {reason}"}
    if reply["ok"] and not _mostly_finite(wanted):
        return reply | {"ok": None, "reason": "the traced graph itself gives no finite results on redrawn inputs"}
    return reply


def _run(
    held: Held, graph: dict, given: dict, seed: int, dtype: torch.dtype, amplitude: float, in_own_types: set[str]
) -> list[torch.Tensor]:
    """Outputs, then what mutations leave in buffers, by the buffers' names. Adds the ops that do not know `dtype`."""
    state = Perturbed(held.traced.state(), held.graph, seed, amplitude)
    with torch.no_grad(), torch.random.fork_rng(devices=cuda_devices()), arithmetic("fp32"):
        torch.manual_seed(seed)
        executor = Executor(graph, held.device)
        made = executor.run_all(ChainMap(given, state), dtype)
    in_own_types |= executor.in_own_types
    changed = sorted(graph.get("mutations", ()), key=lambda m: m["target"])
    return [made[name] for name in (*graph["outputs"], *(m["value"] for m in changed))]


def _difference(new: torch.Tensor, old: torch.Tensor, bound: float) -> tuple[float, str]:
    """The relative RMS difference, and a reason where it is more than may be."""
    if new.shape != old.shape or new.dtype != old.dtype:
        return 0.0, f"{new.dtype} {list(new.shape)}; the traced graph's is {old.dtype} {list(old.shape)}"
    if old.numel() == 0:
        return 0.0, ""
    if not old.is_floating_point():
        wrong = int((new != old).sum())
        return 0.0, f"{wrong} of {old.numel()} elements differ" if wrong > _flips * old.numel() else ""
    finite = old.isfinite()
    whole = bool(finite.all())
    reference = Reference(old) if whole else Reference(old, finite, ~finite)
    e = reference_errors(new, reference)
    if e["non_finite"] or e["missing_non_finite"]:
        return e[
            "rms"
        ], f"{e['non_finite'] + e['missing_non_finite']} elements are finite in one of the two graphs only"
    if not e["rms"] <= bound:
        return e["rms"], f"it differs by {e['rms']:.3g} (relative RMS) from the traced graph's; {bound:.1g} allowed"
    return e["rms"], ""


def _mostly_finite(results: list[torch.Tensor]) -> bool:
    floating = [t for t in results if t.is_floating_point() and t.numel()]
    return all(2 * int(t.isfinite().sum()) >= t.numel() for t in floating)


def _free(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()


def same_inputs(held: Held, graph: dict) -> None:
    """Error TS0502 when the graph takes what the held one does not."""
    have = {v["name"]: (v["dtype"], list(v["shape"])) for v in held.graph["values"]}
    for v in graph["values"]:
        if v["name"] in graph["inputs"] and have.get(v["name"]) != (v["dtype"], list(v["shape"])):
            raise fail(
                "TS0502",
                "verify.trace_differs",
                f"the plan's graph takes `{v['name']}`, which the traced one has not in this form",
                expected=str(have.get(v["name"])),
                found=str((v["dtype"], list(v["shape"]))),
                helps=["the plan is of another module: optimize this one"],
            )
