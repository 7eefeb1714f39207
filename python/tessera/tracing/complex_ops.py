"""Complex tensors of a traced module as real ones with a last dim of 2 (real, imaginary part).

Rotary embeddings are often written with complex numbers, and layers filter what they see by Fourier transforms. The graph has
no complex element types: what `view_as_real` would give stands for a complex value, and every op on one becomes the real ops
that it means, a transform an operator of ours (`common/transforms.py`). `view_as_complex` and `view_as_real` themselves vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tessera.common import transforms

aten = torch.ops.aten

_real_of = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}


@dataclass
class Real:
    """A value of the graph by name, with the fake tensor that says its shape, strides and type."""

    name: str
    fake: torch.Tensor


def is_complex(val) -> bool:
    return isinstance(val, torch.Tensor) and val.is_complex()


def involved(node: torch.fx.Node) -> bool:
    """Whether the node reads or makes a complex tensor."""
    return is_complex(node.meta.get("val")) or any(is_complex(n.meta.get("val")) for n in node.all_input_nodes)


def _handler(node: torch.fx.Node) -> str:
    return "_" + node.target._schema.name.removeprefix("aten::").removeprefix("_")


class Unsupported(Exception):
    """The op has no form on real and imaginary parts here; the text says why."""


class Lowering:
    """One node. `emit(op, *args)` adds a call on Reals, numbers and lists to the graph and returns its Real; `of(node)` is
    the Real behind an argument."""

    def __init__(self, emit, of):
        self.emit, self.of = emit, of

    def __call__(self, node: torch.fx.Node) -> Real:
        if not self.has(node):
            name = node.target._schema.name.removeprefix("aten::")
            raise Unsupported(f"`{name}` of complex tensors is not expressed by real ops")
        return getattr(self, _handler(node))(node, *node.args, **node.kwargs)

    @classmethod
    def has(cls, node: torch.fx.Node) -> bool:
        return hasattr(cls, _handler(node))

    # Parts and pairs

    def part(self, z: Real, i: int) -> Real:
        return self.emit(aten.select.int, z, -1, i)

    def pair(self, re: Real, im: Real) -> Real:
        return self.emit(aten.stack.default, [re, im], -1)

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

    def _polar(self, node, size, angle):
        r, a = self.of(size), self.of(angle)
        return self.pair(
            self.emit(aten.mul.Tensor, r, self.emit(aten.cos.default, a)),
            self.emit(aten.mul.Tensor, r, self.emit(aten.sin.default, a)),
        )

    def _conj(self, node, z):
        z = self.of(z)
        return self.pair(self.part(z, 0), self.emit(aten.neg.default, self.part(z, 1)))

    _conj_physical = _conj

    def _angle(self, node, z):
        z = self.of(z)
        return self.emit(aten.atan2.default, self.part(z, 1), self.part(z, 0))

    def _abs(self, node, z):
        z = self.of(z)
        return self.emit(aten.sqrt.default, self.emit(aten.sum.dim_IntList, self.emit(aten.mul.Tensor, z, z), [-1]))

    # Transforms

    def _fft_c2c(self, node, z, dim, normalization, forward):
        return self.emit(transforms.fft_c2c, self.of(z), _dims(z, dim), normalization, forward)

    def _fft_r2c(self, node, x, dim, normalization, onesided):
        return self.emit(transforms.fft_r2c, self.of(x), _dims(x, dim), normalization, onesided)

    def _fft_c2r(self, node, z, dim, normalization, last_dim_size):
        return self.emit(transforms.fft_c2r, self.of(z), _dims(z, dim), normalization, last_dim_size)

    # Arithmetic

    def _factor(self, x):
        """A real factor that broadcasts over the parts."""
        if isinstance(x, torch.fx.Node):
            return self.emit(aten.unsqueeze.default, self.of(x), -1)
        if isinstance(x, complex):
            raise Unsupported("a complex number as an operand")
        return x

    def _mul(self, node, z, w):
        if not is_complex(getattr(z, "meta", {}).get("val")):
            z, w = w, z
        if not (isinstance(w, torch.fx.Node) and is_complex(w.meta["val"])):
            return self.emit(aten.mul.Tensor, self.of(z), self._factor(w))
        return self._product_of(lambda x, y: self.emit(aten.mul.Tensor, x, y), z, w)

    def _product_of(self, product, z, w):
        """By four real products; by two where a factor is real."""
        z, w = (
            [self.part(self.of(x), i) for i in range(2)] if is_complex(x.meta["val"]) else [self.of(x)] for x in (z, w)
        )
        if len(z) == 1 or len(w) == 1:
            return self.pair(product(z[0], w[0]), product(z[-1], w[-1]))
        return self.pair(
            self.emit(aten.sub.Tensor, product(z[0], w[0]), product(z[1], w[1])),
            self.emit(aten.add.Tensor, product(z[0], w[1]), product(z[1], w[0])),
        )

    def _mm(self, node, z, w):
        return self._product_of(lambda x, y: self.emit(node.target, x, y), z, w)

    _bmm = _mm

    def _div(self, node, z, w):
        if isinstance(w, torch.fx.Node) and is_complex(w.meta["val"]):
            raise Unsupported("a division by complex numbers")
        return self.emit(aten.div.Tensor, self.of(z), self._factor(w))

    def _sum_of(self, op, z, w):
        if not all(isinstance(x, torch.fx.Node) and is_complex(x.meta["val"]) for x in (z, w)):
            raise Unsupported("a sum of a complex and a real operand")
        return self.emit(op, self.of(z), self.of(w))

    def _add(self, node, z, w):
        return self._sum_of(aten.add.Tensor, z, w)

    def _sum(self, node, z, dim=None, keepdim=False, **kwargs):
        if kwargs.get("dtype") is not None:
            raise Unsupported("a sum in another type")
        every = list(range(z.meta["val"].dim()))
        return self.emit(_over_dims[node.target._schema.name], self.of(z), _dims(z, dim) if dim else every, keepdim)

    _mean = _sum

    def _sub(self, node, z, w):
        return self._sum_of(aten.sub.Tensor, z, w)

    def _neg(self, node, z):
        return self.emit(aten.neg.default, self.of(z))

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

    _select = _slice = _unsqueeze = _squeeze = _at_dim

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

    def _permute(self, node, z, dims):
        rank = len(dims)
        return self.emit(node.target, self.of(z), [*(d % rank for d in dims), rank])

    def _joined(self, node, tensors, dim=0):
        return self.emit(node.target, [self.of(t) for t in tensors], dim if dim >= 0 else dim - 1)

    _cat = _stack = _joined

    # New tensors

    def _zeros(self, node, size, *, dtype=None, **kwargs):
        return self.emit(aten.zeros.default, [*size, 2], dtype=_real_of[dtype], **kwargs)

    def _new_zeros(self, node, x, size, *, dtype=None, **kwargs):
        return self.emit(aten.new_zeros.default, self.of(x), [*size, 2], dtype=_real_of.get(dtype), **kwargs)

    def _zeros_like(self, node, z, *, dtype=None, **kwargs):
        if not is_complex(z.meta["val"]) or not is_complex(node.meta["val"]):
            raise Unsupported("zeros of another kind than what they are like")
        return self.emit(aten.zeros_like.default, self.of(z), dtype=_real_of.get(dtype), **kwargs)


_over_dims = {"aten::sum": aten.sum.dim_IntList, "aten::mean": aten.mean.dim}


def _dims(x: torch.fx.Node, dims) -> list[int]:
    """Counted from 0, so that the dim of the parts does not shift them."""
    return [d % x.meta["val"].dim() for d in dims]
