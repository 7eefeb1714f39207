"""What a trace depends on besides the module and its arguments: the one list of torch's settings, a row each.

torch.compile guards the same (torch/csrc/dynamo/guards.cpp, GlobalStateGuard) and, by its tracing, the rest. Gradients and the
rounding of fp32 products have rules of their own (state_guard.py). How convolutions and recurrent layers round is not here: those ops
are PyTorch's in every plan, and read it in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.autograd import forward_ad
from torch.nn.utils import parametrize
from torch.utils import _device

from tessera.running.guards import Miss
from tessera.running.watched import Watched

_c = torch._C
precision_of = getattr(_c, "_get_fp32_precision_getter", lambda *names: "")
_transforms = _c._functorch.maybe_current_level


@dataclass(frozen=True)
class Setting:
    """`read(*arguments)` answers with a number, a name or an object that torch has once. `fixed`: what it has to be in every trace,
    where that is known. `native`: its name in guards.cpp, where it is read without Python; `entry`: the module and name under which
    Python finds it; without either it is asked for by a call."""

    kind: str
    what: str
    read: Callable
    arguments: tuple = ()
    fixed: tuple = ()
    native: str = ""
    entry: tuple = ()
    cuda: bool = False  # says nothing of a module on another device

    def now(self):
        return self.read(*self.arguments)


def _foreign_modes() -> int:
    """Modes that see calls of torch's functions, but for the one that stands for the default device."""
    return _c._len_torch_function_stack() - (_device.CURRENT_DEVICE is not None)


def _level() -> int:
    return forward_ad._current_level


def _default_device() -> torch.device | None:
    return _device.CURRENT_DEVICE


def _autocast_type(device: str) -> torch.dtype | None:
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


SETTINGS = (
    # Inputs and parameters may stand for others that have no memory, or carry tangents, which no_grad does not end.
    Setting("transform", "torch.func's level (vmap, grad, jvp)", _transforms, fixed=(None,), native="transform"),
    Setting("transform", "the level of forward-mode AD", _level, fixed=(-1,), entry=(forward_ad, "_current_level")),
    Setting(
        "modes", "the number of __torch_dispatch__ modes", _c._len_torch_dispatch_stack, (), (0,), "dispatch_modes"
    ),
    Setting("modes", "the number of __torch_function__ modes", _foreign_modes, (), (0,), "function_modes"),
    # In there a parametrized weight is what it was when it was asked for first.
    Setting(
        "parametrizations",
        "the depth of parametrize.cached()",
        lambda: parametrize._cache_enabled,
        fixed=(0,),
        entry=(parametrize, "_cache_enabled"),
    ),
    Setting("default dtype", "the default dtype", torch.get_default_dtype, native="default_type"),
    Setting("default device", "the default device", _default_device, entry=(_device, "CURRENT_DEVICE")),
    Setting("deterministic", "deterministic mode", _c._get_deterministic_algorithms, native="deterministic"),
    Setting(
        "deterministic",
        "deterministic mode that only warns",
        _c._get_deterministic_algorithms_warn_only,
        native="deterministic_warns",
    ),
    Setting(
        "deterministic",
        "filling of new memory",
        _c._get_deterministic_fill_uninitialized_memory,
        native="deterministic_fill",
    ),
    Setting("autocast", "autocast's type on the CPU", _autocast_type, ("cpu",), native="autocast_cpu"),
    Setting("autocast", "autocast's type on CUDA", _autocast_type, ("cuda",), native="autocast_cuda", cuda=True),
    Setting("mkldnn", "torch.backends.mkldnn", _c._get_mkldnn_enabled, native="mkldnn"),
    Setting("attention", "flash attention", _c._get_flash_sdp_enabled, native="sdp_flash"),
    Setting("attention", "attention by blocks", _c._get_mem_efficient_sdp_enabled, native="sdp_blocks"),
    Setting("attention", "attention by separate ops", _c._get_math_sdp_enabled, native="sdp_math"),
    Setting("attention", "attention by cuDNN", _c._get_cudnn_sdp_enabled, native="sdp_cudnn"),
    Setting("cudnn", "torch.backends.cudnn.enabled", _c._get_cudnn_enabled, native="cudnn", cuda=True),
    Setting(
        "cudnn",
        "torch.backends.cudnn.deterministic",
        _c._get_cudnn_deterministic,
        native="cudnn_deterministic",
        cuda=True,
    ),
)


def settings_for(device: torch.device) -> list[Setting]:
    return [s for s in SETTINGS if not s.cuda or device.type == "cuda"]


def taken(device: torch.device) -> dict[str, str]:
    """The settings of now, as text: what a trace keeps of them in its graph's meta as `surroundings`."""
    return {s.what: str(s.now()) for s in settings_for(device) if not s.fixed}


_unknown = object()


class Surroundings:
    """`traced`: what `taken` gave when the module was traced; without it the settings of now are to stay."""

    def __init__(self, device: torch.device, traced: dict[str, str] | None = None):
        self._settings = settings_for(device)
        now = taken(device) if traced is None else traced
        self._then = [str(s.fixed[0]) if s.fixed else now.get(s.what, str(s.now())) for s in self._settings]
        self._last: list = [_unknown] * len(self._then)  # answers that were right

    def changed(self, only: str = "") -> Miss | None:
        """`only`: of this kind."""
        for i, s in enumerate(self._settings):
            if (only and s.kind != only) or (now := s.now()) is self._last[i]:
                continue
            if str(now) != self._then[i]:
                return Miss(s.kind, f"{s.what} is {now}; it was {self._then[i]} when traced")
            self._last[i] = now
        return None

    @property
    def watched(self) -> Watched:
        """As they are now, for whoever has asked `changed` before; but for `natives`."""
        watched = Watched()
        for s in self._settings:
            if s.entry:
                module, name = s.entry
                watched.item(vars(module), name, vars(module)[name])
            elif not s.native:
                watched.call(s.read, *s.arguments, expected=s.now())
        return watched

    @property
    def natives(self) -> list[str]:
        return [s.native for s in self._settings if s.native]
