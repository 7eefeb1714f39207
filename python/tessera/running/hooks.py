"""Forward hooks of submodules, and those that torch keeps for every module: those whose work a trace holds, and those that kernels
would skip."""

from __future__ import annotations

import copy
import sys

from torch import nn
from torch.nn.modules import module as torch_modules

from tessera.running.watched import Watched

# Those of state_dict() are the original's.
_ATTRIBUTES = frozenset(name for name in vars(nn.Module()) if "hooks" in name and "state_dict" not in name)
_capturing = "transformers.utils.output_capturing"


def _parametrizes(hook) -> bool:
    """Of torch's own parametrizations (weight norm): it computes with tensors alone, so the trace holds what it does."""
    return type(hook).__module__.startswith("torch.nn.utils.")


def _collects(hook) -> bool:
    """Of Transformers: it collects what a submodule returns, for a forward that asks for it, and does nothing else. A model
    registers them in a call. Where the traced forward asks, the trace holds that; where one around it does, see `HookGuard`."""
    return getattr(hook, "__module__", "") == _capturing and _collector() is not None


def _collector():
    """What such hooks collect into: `get()` is None, or empty, where no forward asks. None where this Transformers has another."""
    return getattr(sys.modules.get(_capturing), "_active_collector", None)


def for_every_module() -> int:
    """How many hooks torch runs around every module's forward (nn.modules.module.register_module_forward_hook)."""
    return len(torch_modules._global_forward_hooks) + len(torch_modules._global_forward_pre_hooks)


def own(module: nn.Module) -> dict[str, dict]:
    """What nn.Module's attributes of hooks hold where something is registered on the module itself: its copies have it, too."""
    return {name: hooks for name, hooks in vars(module).items() if name in _ATTRIBUTES and hooks}


def copied(module: nn.Module, made: nn.Module, memo: dict) -> nn.Module:
    """`made`, the deep copy of `module`, with copies of the hooks that are registered on `module` itself."""
    memo[id(module)] = made
    vars(made).update(copy.deepcopy(own(module), memo))
    return made


def _of(module: nn.Module) -> list[dict]:
    return [d for m in module.modules() for d in (m._forward_pre_hooks, m._forward_hooks)]


def hooked(module: nn.Module) -> str:
    """The name and class of a module with forward hooks, which kernels that take its place would skip; "" for none."""
    if for_every_module():
        return "every module (torch.nn.modules.module.register_module_forward_hook)"
    for name, m in module.named_modules():
        for hook in (*m._forward_pre_hooks.values(), *m._forward_hooks.values()):
            if not _parametrizes(hook) and not _collects(hook):
                return f"{name or 'the module itself'} ({type(m).__name__})"
    return ""


class HookGuard:
    """Whether the hooks of a module and its submodules are those that were traced."""

    def __init__(self, module: nn.Module):
        self.module = module
        self.dictionaries = _of(module)
        self._remember()
        self.traced = self._parametrizing()

    def _remember(self) -> None:
        self.counts = list(map(len, self.dictionaries))
        self.hung = [(d, list(d.values())) for d in self.dictionaries if d]
        self.collector = _collector() if any(_collects(h) for _, hooks in self.hung for h in hooks) else None

    def _parametrizing(self) -> list:
        return [h for d in self.dictionaries for h in d.values() if _parametrizes(h)]

    def changed(self) -> str:
        """What has changed in what a call goes through; "" for nothing, which is seen without a look at each module."""
        if for_every_module():
            return "every module has forward hooks (register_module_forward_hook); kernels would skip them"
        if list(map(len, self.dictionaries)) == self.counts and all(list(d.values()) == was for d, was in self.hung):
            return self._asked()
        if where := hooked(self.module):
            return f"{where} has forward hooks; kernels would skip them"
        if self._parametrizing() != self.traced:
            return "a parametrization was added or removed (its hooks are not those that were traced)"
        self._remember()
        return self._asked()

    def _asked(self) -> str:
        """A forward around this call, which was not traced, may ask for what submodules return."""
        if self.collector is None or not self.collector.get():
            return ""
        return "a module around this one collects what its submodules return; kernels would skip that"

    def differ(self) -> bool:
        """Whether there are more hooks than then, or fewer, or somebody collects: what torch.compile can trace and guard."""
        if self.collector is not None and self.collector.get():
            return True
        return bool(for_every_module()) or any(len(d) != n for d, n in zip(self.dictionaries, self.counts))

    @property
    def watched(self) -> Watched:
        """All that has to stay as it is for `changed` to say nothing, for who has asked it."""
        watched = Watched()
        for d in (torch_modules._global_forward_hooks, torch_modules._global_forward_pre_hooks, *self.dictionaries):
            watched.size(d)
        for d, _ in self.hung:
            for key, hook in d.items():
                watched.item(d, key, hook)
        if self.collector is not None:
            watched.call(self._asked, expected="")
        return watched
