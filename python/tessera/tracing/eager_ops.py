"""Ops that export takes otherwise than eager PyTorch does (torch 2.11), put right while it traces.

Of some, fake tensors have another shape or other strides than the kernels' results: what is decided on the way, as whether
`reshape` is a view, depends on these. Others are taken apart into ops that round more than once, and lose the sign of zeros.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten


def _elementwise(fake: FakeTensorMode, func, a, b, **kwargs):
    """Laid out as a sum of the operands."""
    with fake:
        made = aten.add.Tensor(a, b)
        if func in _of_bools:
            return made.to(torch.bool)
        whole = func is aten.floor_divide.default or kwargs.get("rounding_mode") is not None
        return made if whole or made.is_floating_point() else made.to(torch.get_default_dtype())


def _like(fake: FakeTensorMode, func, x):
    with fake:
        return torch.empty_like(x)


def _norm(fake: FakeTensorMode, func, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """Also of an extent of 1, which the fake result keeps."""
    with fake:
        made = x if dtype is None else x.to(dtype)
        return torch.sum(made, list(range(x.dim())) if dim is None else dim, keepdim).abs()


def _batch_norm(fake: FakeTensorMode, func, x, weight, bias, mean, var, *how):
    """Running statistics keep their type, whatever the norm computes in."""
    with fake:
        state = torch.empty_like(mean), torch.empty_like(var)
        return (*aten._native_batch_norm_legit.default(x, weight, bias, *state, *how), *state)


def _scatter(fake: FakeTensorMode, func, x, *_args, **_kwargs):
    """As a view of a copy of the memory, but for what is expanded: that is copied by elements (ATen's clone_preserve_strides)."""
    with fake:
        if any(n > 1 and stride == 0 for n, stride in zip(x.shape, x.stride(), strict=True)):
            return torch.empty(x.shape, dtype=x.dtype, device=x.device)
        whole = torch.empty(x.untyped_storage().nbytes() // x.itemsize, dtype=x.dtype, device=x.device)
        return whole.as_strided(x.shape, x.stride(), x.storage_offset())


_of_bools = {aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default}
_of_numbers = (
    *(aten.floor_divide.default, aten.div.Tensor_mode, aten.copysign.Tensor),
    *(aten.logaddexp.default, aten.logaddexp2.default),
)
_right = {
    **dict.fromkeys((*_of_bools, *_of_numbers), _elementwise),
    aten.zero.default: _like,
    **dict.fromkeys((aten.select_scatter.default, aten.slice_scatter.default), _scatter),
    **dict.fromkeys((aten.diagonal_scatter.default, aten.as_strided_scatter.default), _scatter),
    aten.linalg_vector_norm.default: _norm,
    aten._native_batch_norm_legit_functional.default: _batch_norm,
}


_whole = (aten.softshrink.default, aten.hardshrink.default)


def _expand(x: torch.Tensor, size: list[int], *, implicit: bool = False) -> torch.Tensor:
    """What grows no extent is another view: functionalization brings a write through `expand` back by adding what it changed, which
    rounds, overflows and loses the sign of zeros."""
    new = len(size) - x.dim()
    if all(n == 1 for n in size[:new]) and all(n in (-1, m) for n, m in zip(size[new:], x.shape, strict=True)):
        for _ in range(new):
            x = x.unsqueeze(0)
        return x if new else aten.alias.default(x)
    with torch._C._AutoDispatchBelowAutograd():
        return aten.expand.default(x, size, implicit=implicit)


def _channel_shuffle(x: torch.Tensor, groups: int) -> torch.Tensor:
    """A copy of one group too, which the decomposition gives as a view."""
    if groups == 1:
        return aten.clone.default(x)
    with torch._C._AutoDispatchBelowAutograd():
        return aten.channel_shuffle.default(x, groups)


_otherwise = {aten.expand.default: _expand, aten.channel_shuffle.default: _channel_shuffle}


@contextlib.contextmanager
def put_right() -> Iterator[None]:
    table = fake_impls.op_implementations_dict
    theirs = {op: table[op] for op in _right if op in table}
    decomposed = {op: decomposition_table.pop(op) for op in _right if op in decomposition_table}
    apart = {op: op.py_kernels.pop(DispatchKey.Autograd) for op in _whole if DispatchKey.Autograd in op.py_kernels}
    for op, kernel in _otherwise.items():
        op.py_kernels[DispatchKey.Autograd] = kernel
    _forget(apart)
    table.update(_right)
    try:
        yield
    finally:
        for op in _right:
            del table[op]
        table.update(theirs)
        decomposition_table.update(decomposed)
        for op, taken_apart in apart.items():
            op.py_kernels[DispatchKey.Autograd] = taken_apart
        for op in _otherwise:
            del op.py_kernels[DispatchKey.Autograd]
        _forget(apart)


def _forget(ops: Iterable[torch._ops.OpOverload]) -> None:
    """What was answered before."""
    FakeTensorMode.cache_clear()
    for op in (*ops, *_otherwise):
        op._dispatch_cache.clear()
