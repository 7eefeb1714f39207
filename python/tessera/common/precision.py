"""Precision classes of a module: which one it has, and how to bring it into another."""

from __future__ import annotations

import contextlib

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import fail

CLASSES = ("fp32", "tf32", "bf16", "fp16")
_storage = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def detect(module: nn.Module, args=(), kwargs=None) -> str:
    """The class of most of the module's floating elements (of the inputs', when it has none), and of torch's own flags."""
    sizes: dict[torch.dtype, int] = {}
    tensors = list(module.parameters()) or [
        t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)
    ]
    for t in tensors:
        if t.is_floating_point():
            sizes[t.dtype] = sizes.get(t.dtype, 0) + t.numel()
    dtype = max(sizes, key=sizes.get) if sizes else torch.float32
    if dtype == torch.bfloat16:
        return "bf16"
    if dtype == torch.float16:
        return "fp16"
    return "tf32" if matmul_rounds_to_tf32() else "fp32"


def matmul_rounds_to_tf32() -> bool:
    """What torch's flag says of fp32 matrix products on CUDA, by whichever of its functions it was set."""
    return _matmul_flag("cuda", "matmul") == "tf32"


# The property torch.backends.cuda.matmul.fp32_precision calls this, in six times as long; every guarded call asks it.
_matmul_flag = getattr(torch._C, "_get_fp32_precision_getter", lambda *names: torch.backends.cuda.matmul.fp32_precision)


def cast(module: nn.Module, args: tuple, kwargs: dict, precision: str) -> tuple[tuple, dict]:
    """Converts the module's floating parameters and buffers in place and returns the inputs converted."""
    if precision not in CLASSES:
        raise fail(
            "TS0011",
            "input.unknown_precision",
            f"unknown precision `{precision}`",
            expected=f"one of {', '.join(CLASSES)}",
        )
    dtype = _storage[precision]
    module.to(dtype)

    def convert(x):
        return x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    return pytree.tree_map(convert, args), pytree.tree_map(convert, kwargs)


def readable(t: torch.Tensor) -> torch.Tensor:
    """The tensor; where it is of an 8-bit floating type, which few operations know, its values in fp32, which holds them."""
    return t.float() if t.is_floating_point() and t.dtype.itemsize == 1 else t


def set_flags(precision: str) -> None:
    """fp32 operands of matrix products and convolutions: rounded to tf32, or at fp32 accuracy."""
    if precision not in ("fp32", "tf32"):
        return
    # The older functions set the newer fp32_precision too; the other way round Inductor and export fail to read them.
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    set_cudnn_tf32(precision == "tf32")


def set_cudnn_tf32(on: bool) -> None:
    """torch.backends.cudnn.allow_tf32. The attribute itself cannot be set after torch.backends.disable_global_flags(), which
    importing torch.testing's helpers calls."""
    torch._C._set_cudnn_allow_tf32(on)


@contextlib.contextmanager
def legacy_readable_flags():
    """torch.export reads cudnn.allow_tf32, which raises where only the newer fp32_precision was set and the two differ; it
    is set for the time being (nothing computes meanwhile), and fp32_precision is put back."""
    places = (torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    before = [place.fp32_precision for place in places]
    try:
        try:
            _ = torch.backends.cudnn.allow_tf32
        except RuntimeError:
            set_cudnn_tf32(True)
        yield
    finally:
        for place, mode in zip(places, before, strict=True):
            if place.fp32_precision != mode:
                place.fp32_precision = mode
