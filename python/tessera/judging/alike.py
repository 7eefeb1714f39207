"""A module that writes to its arguments, called with two of them as one tensor, and with two that share a part of their memory: calls
that it was not traced with. Guards send them to the original; a plan that takes one has to be right all the same."""

from __future__ import annotations

from itertools import product

import torch
from torch.utils import _pytree as pytree

from tessera.judging.rewind import effects
from tessera.running.compose import ComposedModule
from tessera.tracing.held import Held, inputs_of, run_module

_MOST = 3  # pairs of arguments
_FAR = {"fp32": 1e-5, "tf32": 5e-3, "bf16": 5e-2, "fp16": 1e-2, "fp8": 5e-2}  # relative RMS: two runs of one module


def reason(held: Held, composed: ComposedModule, seed: int = 0) -> str:
    """What differs from the original in such a call; "" where nothing does, or no argument is written to."""
    for i, j, how in _calls(held):
        ours, theirs = (_leaves(held, seed, i, j, how) for _ in range(2))
        try:
            wanted = _run(held, held.module, theirs, seed)
        except RuntimeError:  # PyTorch refuses some writes to memory that tensors share
            continue
        got = _run(held, composed, ours, seed)
        off = [k for k, (a, b) in enumerate(zip(got, wanted, strict=False)) if not _near(a, b, _FAR[held.precision])]
        off += [len(got)] * (len(got) != len(wanted))
        if off:
            names = held.traced.user_inputs
            return f"with the inputs `{names[i]}` and `{names[j]}` {how}, result {off[0]} differs from the original's"
    return ""


def _calls(held: Held) -> list[tuple[int, int, str]]:
    written = held.written_inputs()
    leaves = pytree.tree_leaves((held.args, held.kwargs))
    own = {id(t) for t in held.own_tensors()}
    free = [k for k, t in enumerate(leaves) if isinstance(t, torch.Tensor) and id(t) not in own and t.is_contiguous()]
    pairs = [
        (i, j)
        for i, j in product(free, free)
        if i != j and held.traced.user_inputs[i] in written and _form(leaves[i]) == _form(leaves[j])
    ]
    return [(*pair, how) for pair in pairs[:_MOST] for how in ("one tensor", "overlapping")]


def _form(t: torch.Tensor) -> tuple:
    return t.shape, t.dtype, t.device


def _leaves(held: Held, seed: int, i: int, j: int, how: str) -> list:
    args, kwargs = held.copies(*inputs_of(held, seed))
    leaves = pytree.tree_leaves((args, kwargs))
    if how == "one tensor":
        leaves[j] = leaves[i]
    else:
        one, n = leaves[i], leaves[i].numel()
        both = torch.cat([one.reshape(-1), leaves[j].reshape(-1)])
        leaves[i], leaves[j] = (both[at : at + n].view(one.shape) for at in (0, (n + 1) // 2))
    return leaves


def _run(held: Held, module, leaves: list, seed: int) -> list[torch.Tensor]:
    """Copies of the results, of the arguments as they are left, and of what is written to the module's own tensors."""
    args, kwargs = pytree.tree_unflatten(leaves, pytree.tree_structure((held.args, held.kwargs)))
    with held.kept():
        results = run_module(module, args, kwargs, seed)
        left = [t for t in leaves if isinstance(t, torch.Tensor)]
        return [t.detach().clone() for t in (*results, *left, *effects(held, args, kwargs))]


def _near(one: torch.Tensor, other: torch.Tensor, far: float) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    a, b = one.double().nan_to_num(), other.double().nan_to_num()
    return bool((a - b).norm() <= far * b.norm() + 1e-12) and torch.equal(one.isnan(), other.isnan())
