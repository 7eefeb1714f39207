"""Complex tensors of a traced module as real ones with a last dim of 2 (real, imaginary part).

Rotary embeddings are often written with complex numbers, and layers filter what they see by Fourier transforms. The graph has
no complex element types: what `view_as_real` would give stands for a complex value, and every op on one becomes the real ops
that it means, a transform an operator of ours (`common/transforms.py`). `view_as_complex` and `view_as_real` themselves vanish.
"""

from __future__ import annotations

import inspect
import itertools

import torch

from tessera.common import transforms
from tessera.tracing.complex_arithmetic import Arithmetic, Real, Unsupported, is_complex, of_complex

aten = torch.ops.aten

_real_of = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}


def involved(node: torch.fx.Node) -> bool:
    """Whether the node reads or makes a complex tensor."""
    return is_complex(node.meta.get("val")) or any(is_complex(n.meta.get("val")) for n in node.all_input_nodes)


def _handler(node: torch.fx.Node) -> str:
    return "_" + node.target._schema.name.removeprefix("aten::").removeprefix("_")


class Lowering(Arithmetic):
    """One node; an op of several results gives a list."""

    def __call__(self, node: torch.fx.Node) -> Real | list[Real]:
        if not self.has(node):
            name = node.target._schema.name.removeprefix("aten::")
            raise Unsupported(f"`{name}` of complex tensors is not expressed by real ops")
        handler = getattr(self, _handler(node))
        try:
            bound = inspect.signature(handler).bind(node, *node.args, **node.kwargs)
        except TypeError as why:
            raise Unsupported(f"`{node.target}` is taken with fewer arguments than here: {why}") from why
        return handler(*bound.args, **bound.kwargs)

    @classmethod
    def has(cls, node: torch.fx.Node) -> bool:
        return hasattr(cls, _handler(node))

    # Parts and pairs

    def _view_as_complex(self, node, x):
        return self.of(x)

    def _view_as_real(self, node, z):
        return self.of(z)

    def _real(self, node, z):
        return self.part(self.of(z), 0)

    def _imag(self, node, z):
        return self.part(self.of(z), 1)

    def _complex(self, node, re, im):
        return self.pair(self.of(re), self.of(im))

    def _conj(self, node, z):
        z = self.of(z)
        return self.pair(self.part(z, 0), self.emit(aten.neg.default, self.part(z, 1)))

    _conj_physical = _conj

    # Transforms

    def _fft_c2c(self, node, z, dim, normalization, forward):
        return self.emit(transforms.fft_c2c, self.of(z), _dims(z, dim), normalization, forward)

    def _fft_r2c(self, node, x, dim, normalization, onesided):
        return self.emit(transforms.fft_r2c, self.of(x), _dims(x, dim), normalization, onesided)

    def _fft_c2r(self, node, z, dim, normalization, last_dim_size):
        return self.emit(transforms.fft_c2r, self.of(z), _dims(z, dim), normalization, last_dim_size)

    # Views and copies: the parts are one more dim at the end.

    def _same(self, node, z, *args, **kwargs):
        return self.emit(node.target, self.of(z), *args, **kwargs)

    _clone = _alias = _detach = _contiguous = _same

    def _to_copy(self, node, z, *, dtype=None, **kwargs):
        if dtype is not None and dtype not in _real_of:
            raise Unsupported("a conversion to a real type")
        if not is_complex(z.meta["val"]):
            x = self.emit(aten._to_copy.default, self.of(z), dtype=_real_of[dtype], **kwargs)
            return self.pair(x, self.emit(aten.zeros_like.default, x))
        return self.emit(aten._to_copy.default, self.of(z), dtype=_real_of.get(dtype), **kwargs)

    def _sized(self, node, z, size, **kwargs):
        return self.emit(node.target, self.of(z), [*size, 2], **kwargs)

    _view = _reshape = _expand = _unsafe_view = _sized

    def _at_dim(self, node, z, dim=0, *args, **kwargs):
        return self.emit(node.target, self.of(z), dim if dim >= 0 else dim - 1, *args, **kwargs)

    _select = _slice = _unsqueeze = _cumsum = _at_dim

    def _squeeze(self, node, z, dim=None):
        if dim is None:
            return self.emit(node.target, self.of(z))
        return self.emit(node.target, self.of(z), _dims(z, dim) if isinstance(dim, (list, tuple)) else dim % _rank(z))

    def _split(self, node, z, sizes, dim=0):
        dim %= _rank(z)
        extent = z.meta["val"].shape[dim]
        if isinstance(sizes, int):
            sizes = [min(sizes, extent - start) for start in range(0, extent, sizes)]
        ends = list(itertools.accumulate(sizes))
        return [self.emit(aten.slice.Tensor, self.of(z), dim, end - n, end) for n, end in zip(sizes, ends, strict=True)]

    _split_with_sizes = _split

    def _chunk(self, node, z, chunks, dim=0):
        return self._split(node, z, max(1, -(-z.meta["val"].shape[dim] // chunks)), dim)

    def _unbind(self, node, z, dim=0):
        dim %= _rank(z)
        return [self.emit(aten.select.int, self.of(z), dim, i) for i in range(z.meta["val"].shape[dim])]

    def _unfold(self, node, z, dim, size, step):
        windows = self.emit(aten.unfold.default, self.of(z), dim % _rank(z), size, step)
        return self.emit(aten.transpose.int, windows, -1, -2)

    def _constant_pad_nd(self, node, z, pad, value=0):
        if value != 0:
            raise Unsupported("padding with other than zero")
        return self.emit(node.target, self.of(z), [0, 0, *pad], 0)

    def _repeat(self, node, z, counts):
        return self.emit(node.target, self.of(z), [*counts, 1])

    def _index(self, node, z, indices):
        return self.emit(node.target, self.of(z), [None if i is None else self.of(i) for i in indices])

    def _index_select(self, node, z, dim, index):
        return self.emit(node.target, self.of(z), dim % _rank(z), self.of(index))

    def _gather(self, node, z, dim, index, **kwargs):
        every = self.emit(aten.expand.default, self.factor(index), [*index.meta["val"].shape, 2])
        return self.emit(node.target, self.of(z), dim % _rank(z), every)

    def _where(self, node, condition, z, w):
        if not all(of_complex(x) or _is_zero(x) for x in (z, w)):
            raise Unsupported("a choice between complex and real numbers")
        return self.emit(node.target, self.factor(condition), *(x if _is_zero(x) else self.of(x) for x in (z, w)))

    def _masked_fill(self, node, z, mask, value):
        if not _is_zero(value):
            raise Unsupported("filling with other than zero")
        return self.emit(node.target, self.of(z), self.factor(mask), 0)

    def _fill(self, node, z, value):
        if isinstance(value, torch.fx.Node):
            given = self.of(value)
            if not of_complex(value):
                given = self.pair(given, self.emit(aten.zeros_like.default, given))
            return self.emit(aten.copy.default, self.of(z), given)
        return self._full(node, node.meta["val"].shape, value, device=node.meta["val"].device)

    def _slice_scatter(self, node, z, source, dim=0, *args, **kwargs):
        if not is_complex(source.meta["val"]):
            raise Unsupported("real numbers written into a complex tensor")
        dim = dim if dim >= 0 else dim - 1
        return self.emit(node.target, self.of(z), self.of(source), dim, *args, **kwargs)

    _select_scatter = _slice_scatter

    def _copy(self, node, z, source, *args):
        if not (is_complex(z.meta["val"]) and is_complex(source.meta["val"])):
            raise Unsupported("a copy between complex and real tensors")
        return self.emit(node.target, self.of(z), self.of(source), *args)

    def _roll(self, node, z, shifts, dims=()):
        if not dims:
            raise Unsupported("a roll of all elements")
        return self.emit(node.target, self.of(z), shifts, _dims(z, dims))

    def _flip(self, node, z, dims):
        return self.emit(node.target, self.of(z), _dims(z, dims))

    def _transpose(self, node, z, a, b):
        return self.emit(node.target, self.of(z), *(d if d >= 0 else d - 1 for d in (a, b)))

    def _t(self, node, z):
        return self.emit(aten.transpose.int, self.of(z), 0, 1) if _rank(z) == 2 else self.of(z)

    def _permute(self, node, z, dims):
        rank = len(dims)
        return self.emit(node.target, self.of(z), [*(d % rank for d in dims), rank])

    def _joined(self, node, tensors, dim=0):
        return self.emit(node.target, [self.of(t) for t in tensors], dim if dim >= 0 else dim - 1)

    _cat = _stack = _joined

    # New tensors

    def _full(self, node, size, value, *, dtype=None, **kwargs):
        kwargs["dtype"] = _real_of[node.meta["val"].dtype]
        value = complex(value)
        return self.pair(*(self.emit(aten.full.default, size, part, **kwargs) for part in (value.real, value.imag)))

    def _ones(self, node, size, **kwargs):
        return self._full(node, size, 1, **kwargs)

    def _zeros(self, node, size, *, dtype=None, **kwargs):
        return self.emit(aten.zeros.default, [*size, 2], dtype=_real_of[dtype], **kwargs)

    def _new_zeros(self, node, x, size, *, dtype=None, **kwargs):
        return self.emit(aten.new_zeros.default, self.of(x), [*size, 2], dtype=_real_of.get(dtype), **kwargs)

    def _zeros_like(self, node, z, *, dtype=None, **kwargs):
        if not is_complex(z.meta["val"]) or not is_complex(node.meta["val"]):
            raise Unsupported("zeros of another kind than what they are like")
        return self.emit(aten.zeros_like.default, self.of(z), dtype=_real_of.get(dtype), **kwargs)


def _is_zero(x) -> bool:
    return not isinstance(x, torch.fx.Node) and x == 0


def _rank(x: torch.fx.Node) -> int:
    return x.meta["val"].dim()


def _dims(x: torch.fx.Node, dims) -> list[int]:
    """Counted from 0, so that the dim of the parts does not shift them."""
    return [d % _rank(x) for d in dims]
