"""What a trace depends on besides the module and its arguments: the one list of torch's settings, a row each.

torch.compile guards the same (torch/csrc/dynamo/guards.cpp, GlobalStateGuard) and, by its tracing, the rest. Gradients and the
rounding of fp32 products have rules of their own (state_guard.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.autograd import forward_ad
from torch.utils import _device

from tessera.running.guards import Miss
from tessera.running.watched import Watched

_precision = getattr(torch._C, "_get_fp32_precision_getter", lambda *names: "")
_transforms = torch._C._functorch.maybe_current_level


@dataclass(frozen=True)
class Setting:
    """`read(*arguments)` answers with a number, a name or an object that torch has once. `fixed`: what it has to be in every trace,
    where that is known."""

    kind: str
    what: str
    read: Callable
    arguments: tuple = ()
    fixed: tuple = ()
    cuda: bool = False  # says nothing of a module on another device

    def now(self):
        return self.read(*self.arguments)


def _foreign_modes() -> int:
    """Modes that see calls of torch's functions, but for the one that stands for the default device."""
    return torch._C._len_torch_function_stack() - (_device.CURRENT_DEVICE is not None)


def _autocast_type(device: str) -> torch.dtype | None:
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


SETTINGS = (
    # Inputs and parameters may stand for others that have no memory, or carry tangents, which no_grad does not end.
    Setting("transform", "the level of torch.func's transforms (vmap, grad, jvp)", _transforms, fixed=(None,)),
    Setting("transform", "the level of forward-mode AD", lambda: forward_ad._current_level, fixed=(-1,)),
    Setting("modes", "the number of active __torch_dispatch__ modes", torch._C._len_torch_dispatch_stack, fixed=(0,)),
    Setting("modes", "the number of active __torch_function__ modes", _foreign_modes, fixed=(0,)),
    Setting("default dtype", "the default dtype", torch.get_default_dtype),
    Setting("default device", "the default device", lambda: _device.CURRENT_DEVICE),
    Setting("deterministic", "deterministic mode", torch._C._get_deterministic_algorithms),
    Setting("deterministic", "deterministic mode that only warns", torch._C._get_deterministic_algorithms_warn_only),
    Setting("deterministic", "filling of new memory", torch._C._get_deterministic_fill_uninitialized_memory),
    Setting("autocast", "autocast's type on the CPU", _autocast_type, ("cpu",)),
    Setting("autocast", "autocast's type on CUDA", _autocast_type, ("cuda",), cuda=True),
    Setting("mkldnn", "torch.backends.mkldnn", torch._C._get_mkldnn_enabled),
    Setting("attention", "flash attention", torch._C._get_flash_sdp_enabled),
    Setting("attention", "attention by blocks", torch._C._get_mem_efficient_sdp_enabled),
    Setting("attention", "attention by separate ops", torch._C._get_math_sdp_enabled),
    Setting("attention", "attention by cuDNN", torch._C._get_cudnn_sdp_enabled),
    Setting("cudnn", "torch.backends.cudnn.enabled", torch._C._get_cudnn_enabled, cuda=True),
    Setting("cudnn", "torch.backends.cudnn.deterministic", torch._C._get_cudnn_deterministic, cuda=True),
    Setting("cudnn", "the precision of convolutions", _precision, ("cuda", "conv"), cuda=True),
    Setting("cudnn", "the precision of recurrent layers", _precision, ("cuda", "rnn"), cuda=True),
)


def settings_for(device: torch.device) -> list[Setting]:
    return [s for s in SETTINGS if not s.cuda or device.type == "cuda"]


def taken(device: torch.device) -> dict[str, str]:
    """The settings of now, as text: what a trace keeps of them in its graph's meta as `surroundings`."""
    return {s.what: str(s.now()) for s in settings_for(device) if not s.fixed}


class Surroundings:
    """`traced`: what `taken` gave when the module was traced; without it the settings of now are to stay."""

    def __init__(self, device: torch.device, traced: dict[str, str] | None = None):
        self._settings = settings_for(device)
        now = taken(device) if traced is None else traced
        self._then = [str(s.fixed[0]) if s.fixed else now.get(s.what, str(s.now())) for s in self._settings]

    def changed(self, only: str = "") -> Miss | None:
        """`only`: of this kind."""
        for s, then in zip(self._settings, self._then):
            if (not only or s.kind == only) and str(now := s.now()) != then:
                return Miss(s.kind, f"{s.what} is {now}; it was {then} when traced")
        return None

    @property
    def watched(self) -> Watched:
        """As they are now, for whoever has asked `changed` before."""
        watched = Watched()
        for s in self._settings:
            watched.call(s.read, *s.arguments, expected=s.now())
        return watched
