"""What an output must be, and how far a result is off it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tessera.common.precision import readable

_CHUNK = 1 << 24


@dataclass
class Reference:
    """What one output must be, in logical row-major order. `finite` and `non_finite` are None when all is finite;
    else they mask the elements that must be so: those where fp64 and the baseline agree."""

    value: torch.Tensor  # float64, or the output's own integer type
    finite: torch.Tensor | None = None
    non_finite: torch.Tensor | None = None


def reference_of(exact: torch.Tensor, eager: torch.Tensor) -> Reference:
    if not eager.is_floating_point():
        # Integers and booleans (comparisons, indices) are discrete: the baseline's own answer is what counts.
        return Reference(eager.contiguous())
    exact = exact.to(eager.device).double().contiguous()
    exact_finite = readable(exact.to(eager.dtype)).isfinite()  # fp64 does not overflow where the storage type does
    eager_finite = readable(eager).isfinite()
    if bool((exact_finite & eager_finite).all()):
        return Reference(exact)
    return Reference(exact, exact_finite & eager_finite, ~exact_finite & ~eager_finite)


def reference_errors(out: torch.Tensor, reference: Reference) -> dict:
    """Relative RMS ||d - r|| / ||r|| and max|d - r| / mean|r| over the elements that must be finite, how many break a
    rule, and max|r| / mean|r| (`peak`). Works in pieces, to need little memory beside the operands."""
    if not reference.value.is_floating_point():
        wrong = int((out != reference.value).sum())
        return {"rms": 0.0, "max": 0.0, "peak": 1.0, "wrong": wrong, "non_finite": 0, "missing_non_finite": 0}
    flat, value = out.reshape(-1), reference.value.reshape(-1)
    finite = None if reference.finite is None else reference.finite.reshape(-1)
    non_finite = None if reference.non_finite is None else reference.non_finite.reshape(-1)
    zero = torch.zeros((), dtype=torch.float64, device=out.device)
    sums = {key: zero.clone() for key in ("d2", "r2", "d", "r", "max_r", "n", "bad", "missing")}
    for begin in range(0, flat.numel(), _CHUNK):
        end = begin + _CHUNK
        o, r = flat[begin:end].double(), value[begin:end]
        good = o.isfinite()
        counted = good if finite is None else good & finite[begin:end]
        sums["bad"] += (~good if finite is None else ~good & finite[begin:end]).sum()
        if non_finite is not None:
            sums["missing"] += (good & non_finite[begin:end]).sum()
        d = torch.where(counted, o - r, 0.0)
        r = torch.where(counted, r, 0.0)
        sums["d2"] += d.square().sum()
        sums["r2"] += r.square().sum()
        sums["d"] = torch.maximum(sums["d"], d.abs().amax())
        sums["r"] += r.abs().sum()
        sums["max_r"] = torch.maximum(sums["max_r"], r.abs().amax())
        sums["n"] += counted.sum()
    s = {key: float(v) for key, v in sums.items()}
    mean = s["r"] / s["n"] if s["n"] else 0.0
    # An all-zero reference has no scale: errors are then absolute.
    return {
        "rms": (s["d2"] / s["r2"]) ** 0.5 if s["r2"] else s["d2"] ** 0.5,
        "max": s["d"] / mean if mean else s["d"],
        "peak": s["max_r"] / mean if mean else 1.0,
        "wrong": 0,
        "non_finite": int(s["bad"]),
        "missing_non_finite": int(s["missing"]),
    }


def larger_errors(one: list[dict], other: list[dict]) -> list[dict]:
    """For each output, the larger relative RMS and the larger largest error; `one` where there is no other."""
    if not other:
        return one
    return [
        {**a, "rms": max(a["rms"], b["rms"]), "max": max(a["max"], b["max"])} for a, b in zip(one, other, strict=True)
    ]
