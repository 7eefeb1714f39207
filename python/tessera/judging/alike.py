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


def reason(held: Held, composed: ComposedModule, far: float, seed: int = 0) -> str:
    """What differs from the original in such a call by more than `far` (relative RMS); "" where nothing does, or no argument is
    written to."""
    for i, j, how in _calls(held):
        ours, theirs = (_leaves(held, seed, i, j, how) for _ in range(2))
        names = held.traced.user_inputs
        when = f"with the inputs `{names[i]}` and `{names[j]}` {how}"
        try:
            wanted = _run(held, held.module, theirs, seed)
        except Exception:  # noqa: BLE001 - PyTorch, or the module, refuses such a call
            continue
        try:
            got = _run(held, composed, ours, seed)
        except Exception as e:  # noqa: BLE001 - whatever it raises is told
            return f"{when} it raises {type(e).__name__}, the original does not: {e}"[:400]
        for name, t in wanted.items():
            if name not in got or not _near(got[name], t, far):
                return f"{when}, {name} differs from the original's"
    return ""


def _calls(held: Held) -> list[tuple[int, int, str]]:
    written = held.written_inputs()
    leaves = pytree.tree_leaves((held.args, held.kwargs))
    own = {id(t) for t in held.own_tensors()}
    # Whole numbers may be places in other tensors, and would point behind their ends.
    free = [
        k
        for k, t in enumerate(leaves)
        if isinstance(t, torch.Tensor) and t.is_floating_point() and t.is_contiguous() and id(t) not in own
    ]
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


def _run(held: Held, module, leaves: list, seed: int) -> dict[str, torch.Tensor]:
    """Copies of the results, of the arguments as they are left, and of what is written to the module's own tensors."""
    args, kwargs = pytree.tree_unflatten(leaves, pytree.tree_structure((held.args, held.kwargs)))
    with held.kept():
        results = run_module(module, args, kwargs, seed)
        named = {f"result {i}": t for i, t in enumerate(results)}
        named |= {f"the input `{n}`": t for n, t in held.traced.flatten(args, kwargs).items()}
        named |= {
            f"`{n}`": t
            for n, t in zip((m["target"] for m in held.graph["mutations"]), effects(held, args, kwargs), strict=True)
        }
        return {name: t.detach().clone() for name, t in named.items()}


def _near(one: torch.Tensor, other: torch.Tensor, far: float) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    a, b = one.double().nan_to_num(), other.double().nan_to_num()
    return bool((a - b).norm() <= far * b.norm() + 1e-12) and torch.equal(one.isnan(), other.isnan())
