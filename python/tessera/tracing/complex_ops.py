"""Complex tensors of a traced module as real ones with a last dim of 2 (real, imaginary part).

Rotary embeddings are often written with complex numbers. The graph has no complex element types: what `view_as_real` would
give stands for a complex value, and every op on one becomes the real ops that it means. `view_as_complex` and
`view_as_real` themselves vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

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


class Unsupported(Exception):
    """The op has no form on real and imaginary parts here; the text says why."""


class Lowering:
    """One node. `emit(op, *args)` adds a call on Reals, numbers and lists to the graph and returns its Real; `of(node)` is
    the Real behind an argument."""

    def __init__(self, emit, of):
        self.emit, self.of = emit, of

    def __call__(self, node: torch.fx.Node) -> Real:
        name = node.target._schema.name.removeprefix("aten::")
        handler = getattr(self, f"_{name.removeprefix('_')}", None)
        if handler is None:
            raise Unsupported(f"`{name}` of complex tensors is not expressed by real ops")
        return handler(node, *node.args, **node.kwargs)

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

    def _abs(self, node, z):
        z = self.of(z)
        return self.emit(aten.sqrt.default, self.emit(aten.sum.dim_IntList, self.emit(aten.mul.Tensor, z, z), [-1]))

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
        z, w = self.of(z), self.of(w)
        a, b, c, d = self.part(z, 0), self.part(z, 1), self.part(w, 0), self.part(w, 1)

        def product(x, y):
            return self.emit(aten.mul.Tensor, x, y)

        return self.pair(
            self.emit(aten.sub.Tensor, product(a, c), product(b, d)),
            self.emit(aten.add.Tensor, product(a, d), product(b, c)),
        )

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
        return self.emit(aten._to_copy.default, self.of(z), dtype=_real_of.get(dtype), **kwargs)

    def _sized(self, node, z, size, **kwargs):
        return self.emit(node.target, self.of(z), [*size, 2], **kwargs)

    _view = _reshape = _expand = _unsafe_view = _sized

    def _at_dim(self, node, z, dim=0, *args, **kwargs):
        return self.emit(node.target, self.of(z), dim if dim >= 0 else dim - 1, *args, **kwargs)

    _select = _slice = _unsqueeze = _squeeze = _at_dim

    def _transpose(self, node, z, a, b):
        return self.emit(node.target, self.of(z), *(d if d >= 0 else d - 1 for d in (a, b)))

    def _permute(self, node, z, dims):
        rank = len(dims)
        return self.emit(node.target, self.of(z), [*(d % rank for d in dims), rank])

    def _joined(self, node, tensors, dim=0):
        return self.emit(node.target, [self.of(t) for t in tensors], dim if dim >= 0 else dim - 1)

    _cat = _stack = _joined
