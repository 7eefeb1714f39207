"""Arithmetic on complex numbers by their real and imaginary parts."""

from __future__ import annotations

from dataclasses import dataclass

import torch

aten = torch.ops.aten


@dataclass
class Real:
    """A value of the graph by name, with the fake tensor that says its shape, strides and type."""

    name: str
    fake: torch.Tensor


def is_complex(val) -> bool:
    return isinstance(val, torch.Tensor) and val.is_complex()


def of_complex(x) -> bool:
    return is_complex(x.meta["val"]) if isinstance(x, torch.fx.Node) else isinstance(x, complex)


class Unsupported(Exception):
    """The op has no form on real and imaginary parts here; the text says why."""


class Arithmetic:
    """`emit(op, *args)` adds a call on Reals, numbers and lists to the graph and returns its Real; `of(node)` is the Real behind
    an argument. An operand's parts are a pair, whose second is None where the operand is real; of a number they are numbers."""

    def __init__(self, emit, of):
        self.emit, self.of = emit, of

    def part(self, z: Real, i: int) -> Real:
        return self.emit(aten.select.int, z, -1, i)

    def pair(self, re: Real, im: Real) -> Real:
        return self.emit(aten.stack.default, [re, im], -1)

    def parts(self, x) -> tuple:
        if not isinstance(x, torch.fx.Node):
            return (x.real, x.imag) if isinstance(x, complex) else (x, None)
        return tuple(self.part(self.of(x), i) for i in range(2)) if is_complex(x.meta["val"]) else (self.of(x), None)

    def factor(self, x):
        """A real factor that broadcasts over the parts."""
        return self.emit(aten.unsqueeze.default, self.of(x), -1) if isinstance(x, torch.fx.Node) else x

    # Sums

    def _add(self, node, z, w, *, alpha=1):
        op = aten.sub.Tensor if node.target._schema.name == "aten::sub" else aten.add.Tensor
        if isinstance(alpha, complex):
            raise Unsupported("a sum with a complex `alpha`")
        if isinstance(w, torch.fx.Node) and of_complex(z) and of_complex(w):
            return self.emit(op, self.of(z), self.of(w), alpha=alpha)
        (a, b), (c, d) = self.parts(z), self.parts(w)
        re = self.emit(op, a, c, alpha=alpha)
        if b is not None and d is not None:
            b = self.emit(op, b, d, alpha=alpha)
        elif d is not None:
            scale = -alpha if op == aten.sub.Tensor else alpha
            made = isinstance(d, Real)
            b = self.emit(aten.mul.Tensor, d, scale) if made else self.emit(aten.full_like.default, re, d * scale)
        # An operand has the parts of its own size, which the sum's may exceed.
        shape = list(node.meta["val"].shape)
        return self.pair(re, b if list(b.fake.shape) == shape else self.emit(aten.expand.default, b, shape))

    _sub = _add

    def _rsub(self, node, z, number, alpha=1):
        if isinstance(number, torch.fx.Node) or isinstance(alpha, complex):
            raise Unsupported("a tensor, or a complex `alpha`, in place of a number")
        (a, b), (c, d) = self.parts(z), self.parts(number)
        re = self.emit(aten.rsub.Scalar, a, c, alpha)
        return self.pair(
            re, self.emit(aten.full_like.default, re, d) if b is None else self.emit(aten.rsub.Scalar, b, d or 0, alpha)
        )

    def _neg(self, node, z):
        return self.emit(aten.neg.default, self.of(z))

    def _sum(self, node, z, dim=None, keepdim=False, **kwargs):
        if kwargs.get("dtype") is not None:
            raise Unsupported("a sum in another type")
        rank = z.meta["val"].dim()
        dims = [d % rank for d in dim] if dim else list(range(rank))
        return self.emit(_over_dims[node.target._schema.name], self.of(z), dims, keepdim)

    _mean = _sum

    # Products

    def times(self, z: tuple, w: tuple, product=aten.mul.Tensor) -> Real:
        """By four real products, also where a factor is real: PyTorch gives it an imaginary part of 0, which makes NaN of infinity."""

        def of(x, y):
            if not isinstance(x, Real) and not isinstance(y, Real):
                return x * y
            return self.emit(product, *((x, y) if isinstance(x, Real) else (y, x)))

        (a, b), (c, d) = ((re, 0.0 if im is None else im) for re, im in (z, w))
        return self.pair(
            self.emit(aten.sub.Tensor, of(a, c), of(b, d)),
            self.emit(aten.add.Tensor, of(a, d), of(b, c)),
        )

    def _mul(self, node, z, w):
        return self.times(self.parts(z), self.parts(w))

    def _mm(self, node, z, w):
        return self.times(self.parts(z), self.parts(w), node.target)

    _bmm = _mm

    def _addmm(self, node, bias, z, w, *, beta=1, alpha=1):
        if (beta, alpha) != (1, 1) or not of_complex(bias):
            raise Unsupported("a product that is scaled before it is added, or added to a real tensor")
        product = aten.mm.default if node.target == aten.addmm.default else aten.bmm.default
        return self.emit(aten.add.Tensor, self.times(self.parts(z), self.parts(w), product), self.of(bias))

    _baddbmm = _addmm

    def _pow(self, node, z, exponent):
        if exponent not in (2, 3, 4):
            raise Unsupported("a power other than 2, 3 and 4")
        given = self.parts(z)
        made = self.times(given, given)
        for _ in range(int(exponent) - 2):
            made = self.times((self.part(made, 0), self.part(made, 1)), given)
        return made

    # Quotients

    def inverse(self, x) -> tuple:
        """The parts of 1 / x. The larger part is taken out first, so that squares neither overflow nor vanish."""
        a, b = self.parts(x)
        if not isinstance(a, Real):
            w = 1 / complex(a, b)
            return w.real, w.imag
        size = self.emit(aten.maximum.default, self.emit(aten.abs.default, a), self.emit(aten.abs.default, b))
        a, b = (self.emit(aten.div.Tensor, part, size) for part in (a, b))
        squares = [self.emit(aten.mul.Tensor, part, part) for part in (a, b)]
        square = self.emit(aten.mul.Tensor, self.emit(aten.add.Tensor, *squares), size)
        return self.emit(aten.div.Tensor, a, square), self.emit(aten.neg.default, self.emit(aten.div.Tensor, b, square))

    def _div(self, node, z, w, **kwargs):
        if kwargs:
            raise Unsupported("a division that rounds")
        if not of_complex(w):
            return self.emit(aten.div.Tensor, self.of(z), self.factor(w))
        return self.times(self.parts(z), self.inverse(w))

    def _reciprocal(self, node, z):
        return self.pair(*self.inverse(z))

    # Functions

    def _abs(self, node, z):
        return self.emit(aten.hypot.default, *self.parts(z))

    def _linalg_vector_norm(self, node, z, ord=2, dim=None, keepdim=False, **kwargs):
        rank = z.meta["val"].dim()
        if ord != 2 or kwargs.get("dtype") is not None:
            raise Unsupported("a norm other than the Euclidean one")
        dims = [d % rank for d in dim] if dim is not None else list(range(rank))
        made = self.emit(node.target, self.of(z), 2, [*dims, rank], keepdim)
        return self.emit(aten.squeeze.dim, made, -1) if keepdim else made

    def _angle(self, node, z):
        return self.emit(aten.atan2.default, *reversed(self.parts(z)))

    def polar(self, size: Real, angle: Real) -> Real:
        return self.pair(
            self.emit(aten.mul.Tensor, size, self.emit(aten.cos.default, angle)),
            self.emit(aten.mul.Tensor, size, self.emit(aten.sin.default, angle)),
        )

    def _polar(self, node, size, angle):
        return self.polar(self.of(size), self.of(angle))

    def _exp(self, node, z):
        """By its root's size, twice: that of the whole may overflow where cosine and sine make the product a number."""
        re, im = self.parts(z)
        root = self.emit(aten.exp.default, self.emit(aten.mul.Tensor, re, 0.5))
        return self.emit(aten.mul.Tensor, self.polar(root, im), self.emit(aten.unsqueeze.default, root, -1))

    def _log(self, node, z):
        return self.pair(self.emit(aten.log.default, self._abs(node, z)), self._angle(node, z))


_over_dims = {"aten::sum": aten.sum.dim_IntList, "aten::mean": aten.mean.dim}
