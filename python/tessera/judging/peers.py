"""What a composed module is measured beside: the same module run by others, in the same process, at equal precision."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import contextmanager

import torch
from torch import nn

from tessera.common.precision import set_cudnn_tf32
from tessera.running import leftover, modes


@contextmanager
def equal_precision(precision: str, convolutions: bool = True):
    """torch's flags of a precision class for everything that runs inside: ours, eager and the peers. Set by the older
    functions, which set the newer `fp32_precision` too: where only that is set, Inductor fails to read the older ones.

    `convolutions`: theirs too, so that what fp32 is compared with is fp32. Without, they keep the user's flag, which is
    tf32 unless changed: so they are timed, for they are PyTorch's on every side."""
    matmul, convolution = torch.backends.cuda.matmul, (torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    before = [place.fp32_precision for place in (matmul, *convolution)]
    try:
        older = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:
        older = None
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    if convolutions:
        set_cudnn_tf32(precision == "tf32")
    try:
        yield
    finally:
        if older is not None:
            torch.set_float32_matmul_precision(older[0])
            set_cudnn_tf32(older[1])
        for place, mode in zip((matmul, *convolution), before, strict=True):
            if place.fp32_precision != mode:
                place.fp32_precision = mode


# mode of torch.compile; CUDA graphs as for the composed module, whose settings come on top
_inductor = {"inductor": None, "inductor-max-autotune": "max-autotune-no-cudagraphs"}
names = ("eager", *_inductor, "tensorrt")


def make(name: str, module: nn.Module, settings: dict) -> Callable | str:
    """The module run by a peer, or the reason why the peer is absent. Inductor compiles on the first call. `settings`: of the
    mode that the composed module is made in."""
    if name == "eager":
        return module
    if name in _inductor:
        reason = _no_inductor(module)
        return reason or leftover.whole("inductor", module, {**modes.settings_of(_inductor[name]), **settings})
    if name == "tensorrt":
        if importlib.util.find_spec("torch_tensorrt") is None:
            return "torch_tensorrt is not installed (pip install torch-tensorrt)"
        import torch_tensorrt  # noqa: F401  registers the backend

        return torch.compile(module, dynamic=False, backend="torch_tensorrt")
    return f"there is no peer `{name}`; there are {', '.join(names)}"


def _no_inductor(module: nn.Module) -> str:
    device = next((p.device.type for p in module.parameters()), "cpu")
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton is not installed, which Inductor needs on CUDA"
    return ""
