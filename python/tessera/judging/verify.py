"""Whether a candidate computes its pattern: against fp64, within a budget set by eager's own error.

The budget is stated here and nowhere else (docs/measuring.md explains it): a candidate may be off by `factor` times
what eager is off on the same inputs (or the precision class itself, where that is more), plus a floor of a few roundings
of its result type.
"""

from __future__ import annotations

import torch

from tessera.judging import as_if, constants, influence, misses
from tessera.judging.deviation import reference_errors
from tessera.judging.guarded import Guarded
from tessera.judging.problem import FULL, QUICK, Dataset, Problem

# precision: (factor on the relative RMS error, factor on the largest error, floor in half ulps of the result type)
BUDGET = {
    "fp32": (3.0, 4.0, 8.0),
    "tf32": (1.5, 2.5, 8.0),
    "bf16": (1.5, 2.5, 1.0),
    "fp16": (1.5, 2.5, 1.0),
    "fp8": (1.5, 2.5, 1.0),
}


# Relations that say enough; and what is rounded moves in steps.
_TELL_ALL = (
    *("zero", "constant", "shifted", "transposed", "other_type", "rounded", "rounded_input"),
    *("nearly_scaled", "nearly_scaled_rows", "wrong_constant"),
)
# Those behind which a mistake of the inputs may stand that says more.
_OPEN = ("", "scaled", "rounded", "one_way", "nearly_scaled", "nearly_scaled_rows")
# Those that only say how large the errors are.
_VAGUE = ("", "rounded", "one_way")


def half_ulp(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def budget(precision: str, dtype: torch.dtype, baseline: dict) -> dict:
    """The errors that a candidate may have where eager, or the class, has `baseline`."""
    if not dtype.is_floating_point:
        return {"rms": 0.0, "max": 0.0}
    rms_factor, max_factor, ulps = BUDGET[precision]
    floor = ulps * half_ulp(dtype)
    # Rounding a result of magnitude r is off by half an ulp of r, so the tail's floor grows with the largest result.
    return {
        "rms": rms_factor * baseline["rms"] + floor,
        "max": max_factor * baseline["max"] + 2 * floor * baseline["peak"],
    }


def compare(problem: Problem, data: Dataset, outputs: list[torch.Tensor]) -> tuple[list[dict], dict | None]:
    """The errors of every output, and the first breach: {"kind", "reason"}, with where it is wrong
    (misses.describe) as "wrong" where single elements are."""
    errors, breach = [], None
    for value, out, reference, base, permitted in zip(
        problem.outputs, outputs, data.references, data.baseline, data.permitted, strict=True
    ):
        e = reference_errors(out, reference)
        allowed = budget(problem.precision, out.dtype, permitted)
        errors.append({**e, "baseline": base, "budget": allowed})
        where = f"output {value['name']}, {data.name}"
        if breach:
            continue
        if e["wrong"]:
            breach = {"kind": "wrong_result", "reason": f"{e['wrong']} of {out.numel()} elements differ ({where})"}
        elif e["non_finite"]:
            breach = {
                "kind": "non_finite",
                "reason": f"{e['non_finite']} elements are not finite where eager is finite ({where})",
            }
        elif e["missing_non_finite"]:
            breach = {
                "kind": "non_finite",
                "reason": f"{e['missing_non_finite']} elements are finite where eager has inf or NaN ({where})",
            }
        elif not e["rms"] <= allowed["rms"]:
            breach = {
                "kind": "wrong_result",
                "reason": f"relative RMS error {e['rms']:.3g}, at most {allowed['rms']:.3g}"
                f" allowed, eager has {base['rms']:.3g} ({where})",
            }
        elif not e["max"] <= allowed["max"]:
            breach = {
                "kind": "wrong_result",
                "reason": f"largest error {e['max']:.3g} of the mean magnitude, at most "
                f"{allowed['max']:.3g} allowed, eager has {base['max']:.3g} "
                f"({where})",
            }
        if breach and (wrong := misses.describe(value, out, reference, allowed, data.name)):
            breach["wrong"] = wrong
    return errors, breach


def check_memory(problem: Problem, data: Dataset, outputs: list[Guarded]) -> dict | None:
    """Breaches of memory discipline after a run: stray writes, changed inputs, elements left unwritten."""
    for value, g, reference in zip(problem.outputs, outputs, data.references, strict=True):
        if stray := g.stray_writes():
            found = {"kind": "out_of_bounds", "reason": f"{stray} bytes beside output {value['name']} were overwritten"}
            wrong = misses.written_beside(value, g.tensor, reference, data.name)
            return found | ({"wrong": wrong} if wrong else {})
    for value, g in zip(problem.inputs, data.inputs, strict=True):
        if stray := g.stray_writes():
            return {"kind": "out_of_bounds", "reason": f"{stray} bytes beside input {value['name']} were overwritten"}
        if g.changed():
            return {"kind": "input_modified", "reason": f"input {value['name']} was modified"}
    for value, g, reference in zip(problem.outputs, outputs, data.references, strict=True):
        if not g.tensor.is_floating_point():
            continue  # the poison is a valid integer; a missing one differs from the reference
        left = g.unwritten()
        if reference.finite is not None:
            left = left & reference.finite
        if count := int(left.sum()):
            return {
                "kind": "incomplete",
                "reason": f"{count} of {left.numel()} elements of output {value['name']} were never written",
                "wrong": misses.unwritten(value, g.tensor, left, reference, data.name),
            }
    return None


def check_run(problem: Problem, data: Dataset, runner) -> tuple[list[dict], dict | None]:
    """Runs once on poisoned outputs and checks everything."""
    return run_and_check(problem, data, runner)[1:]


def run_and_check(problem: Problem, data: Dataset, runner) -> tuple[list[torch.Tensor], list[dict], dict | None]:
    """`check_run`, and what came out."""
    outputs = problem.new_outputs()
    results = runner.prepare(data.tensors, [g.tensor for g in outputs])()
    if problem.device.type == "cuda":
        torch.cuda.synchronize()
    if results is None:
        breach = check_memory(problem, data, outputs)
        tensors = [g.tensor for g in outputs]
    else:
        tensors, breach = results, check_form(problem, results)
        for value, g in zip(problem.inputs, data.inputs, strict=True):
            if g.changed():
                breach = {"kind": "input_modified", "reason": f"input {value['name']} was modified"}
    if breach:
        return tensors, [], breach
    return tensors, *compare(problem, data, tensors)


def check_form(problem: Problem, results: list[torch.Tensor]) -> dict | None:
    """Whether a library's results have the shapes, types and layouts that the graph wants."""
    for value, t in zip(problem.outputs, results, strict=True):
        strides = [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1]
        wanted = [s for n, s in zip(value["shape"], value["strides"], strict=True) if n > 1]
        if list(t.shape) != list(value["shape"]) or str(t.dtype) != f"torch.{value['dtype']}" or strides != wanted:
            return {
                "kind": "wrong_result",
                "reason": f"output {value['name']} is {t.dtype} {tuple(t.shape)} with strides "
                f"{t.stride()}, wanted {value['dtype']} {value['shape']} "
                f"{value['strides']}",
            }
    return None


def explain(
    problem: Problem, data: Dataset, runner, outputs: list[torch.Tensor], errors: list[dict], wrong: dict
) -> None:
    """Adds to where a result is wrong: the mistake that it looks like, and on which inputs it depends otherwise than it
    must. Both run the meaning again, often, so they are for small tensors alone."""
    at = next(i for i, v in enumerate(problem.outputs) if v["name"] == wrong["output"])
    out, allowed, reference = outputs[at], errors[at]["budget"], data.references[at]
    word, about = "", ""
    if wrong["relation"] in _OPEN:
        word, about = as_if.relation_of(problem, data.tensors, out, at, allowed)
    if not word and wrong["relation"] in _VAGUE and out.is_floating_point():
        expected = reference.value.reshape(out.shape)
        bad = misses.wrong_elements(out, expected, reference, allowed)
        word, about = constants.relation_of(problem, data.tensors, out, expected, bad)
    if word:
        wrong |= {"relation": word, "relation_details": about}
    if wrong["relation"] not in _TELL_ALL:
        wrong["depends"] = influence.depends(problem, data, runner, at, outputs[at])


def verify(problem: Problem, runner, level: str) -> dict:
    """The reply of `verify`: errors are those of the zero-mean inputs of seed 0, the worst output of them."""
    reply: dict = {"ok": True, "reason": "", "kind": ""}
    worst = 0.0
    for kind, seed in FULL if level == "full" else QUICK:
        data = problem.dataset(kind, seed)
        outputs, errors, breach = run_and_check(problem, data, runner)
        if level == "full" and errors and breach and "wrong" in breach:
            explain(problem, data, runner, outputs, errors, breach["wrong"])
        if (kind, seed) == ("normal", 0) and errors:
            e = max(errors, key=lambda e: e["rms"])
            reply |= {
                "max_error": e["max"],
                "rms_error": e["rms"],
                "baseline_max_error": e["baseline"]["max"],
                "baseline_rms_error": e["baseline"]["rms"],
                "budget": e["budget"],
            }
        for e in errors:
            worst = max(worst, e["rms"] / e["budget"]["rms"] if e["budget"]["rms"] else 0.0)
        if breach:
            reply |= {"ok": False, **breach}
            problem.forget()  # the run may have damaged inputs that others would be given
            break
    reply["share_of_budget"] = worst
    return reply
