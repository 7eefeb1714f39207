"""What a precision class itself costs: a graph run with the operands of every product as the class has them.

Eager need not use what the class allows: torch's attention kernels split fp32 operands where tf32 is permitted, cuBLAS
falls back to fp32 units for some extents. A kernel that rounds each operand once, to nearest, is then no worse than the
class, though worse than eager. This run says how much.

Tensor cores make products of fp32 from operands that are taken apart, x = high + low. Of an infinite x, low is inf - inf:
its products are NaN, where eager's are infinite or NaN. A function that brings infinities back (relu, a sigmoid) shows it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
# op: the positions of the two operands that are multiplied
_PRODUCTS = {
    _aten.mm.default: (0, 1),
    _aten.bmm.default: (0, 1),
    _aten.addmm.default: (1, 2),
    _aten.baddbmm.default: (1, 2),
    _aten.mv.default: (0, 1),
    _aten.addmv.default: (1, 2),
    _aten.dot.default: (0, 1),
    _aten.convolution.default: (0, 1),
}


def round_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """fp32 to the nearest value of 10 mantissa bits, ties away from zero (PTX ISA, cvt.rna.tf32); inf and NaN stay."""
    bits = (x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF
    return torch.where(x.isfinite(), bits.view(torch.float32), x)


def infinite_to_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isinf(), torch.nan, x)


class _Operands(TorchDispatchMode):
    """The fp32 operands of every product are what `change` makes of them."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.change = change

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in here, and PyTorch would import Dynamo to keep it out: 5 s of a search's first pattern."""
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if places := _PRODUCTS.get(function):
            args = [self.change(a) if i in places and a.dtype == torch.float32 else a for i, a in enumerate(args)]
        return function(*args, **(kwargs or {}))


def has_own_cost(precision: str) -> bool:
    """Whether eager may be more exact than the class: its storage type does not round the operands by itself."""
    return precision == "tf32"


@contextlib.contextmanager
def products():
    """In here operands of products are rounded to tf32, and attention is written out, so that its products are too."""
    with sdpa_kernel(SDPBackend.MATH), _Operands(round_to_tf32):
        yield


def takes_apart(precision: str) -> bool:
    """Whether kernels of the class may make products of operands that are taken apart."""
    return precision == "fp32"


@contextlib.contextmanager
def infinite_operands():
    """In here an infinite operand of a product counts as NaN, and attention is written out, so that its products are too."""
    with sdpa_kernel(SDPBackend.MATH), _Operands(infinite_to_nan):
        yield
