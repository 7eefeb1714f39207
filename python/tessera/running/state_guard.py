"""The module in a call: its parameters and buffers, submodules, flags, hooks and attributes, and torch's modes.

`check` is the fast look at parameters and buffers; where it misses, `renew` looks closely: a changed value with the traced type
is accepted, and `renew` says whether kept values are stale.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import chain

import torch
from torch import nn

from tessera.common.facts import facts_of
from tessera.common.precision import matmul_rounds_to_tf32
from tessera.common.transforms import as_parts
from tessera.running.attributes import Attributes
from tessera.running.code_reads import CodeReads, Ran
from tessera.running.extension import TensorType
from tessera.running.guards import Miss
from tessera.running.hooks import HookGuard
from tessera.running.names_of_state import NamesOfState
from tessera.running.plain_places import Loose
from tessera.running.plain_tensors import is_plain, kind_of, version_of
from tessera.running.surroundings import Surroundings, precision_of
from tessera.running.watched import Watched


@dataclass
class Slot:
    """One parameter, buffer or constant that the plan reads."""

    value: str  # its name in the graph
    type: TensorType
    device: torch.device
    owner: dict | None  # the module's _parameters, _buffers or __dict__; None for a constant that only the trace holds
    key: str
    source: torch.Tensor  # the module's, as last checked
    facts: dict
    packed: bool  # a value that is kept from call to call is made from it
    home: tuple[nn.Module | None, str] = (None, "")  # the module that holds it

    def __post_init__(self):
        self.of_parts, self.tensor = self.source.is_complex(), as_parts(self.source)

    def take(self, source: torch.Tensor) -> None:
        """Of the kind that it had (`StateGuard._fits`)."""
        self.source, self.tensor = source, as_parts(source)


_readings = (torch.Tensor.data_ptr, operator.attrgetter("dtype"), torch.Tensor.size, torch.Tensor.stride)


def lies_of(tensors: list[torch.Tensor]) -> list[list]:
    """Where they lie, and as what: addresses, types, shapes, strides."""
    return [list(map(read, tensors)) for read in _readings]


_stateless = (
    nn.Linear,
    nn.LayerNorm,
    nn.Embedding,
    nn.GELU,
    nn.ReLU,
    nn.SiLU,
    nn.Identity,
    nn.Sequential,
    nn.ModuleList,
    nn.ModuleDict,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.Sigmoid,
    nn.Tanh,
    nn.Softmax,
)


_training_of = operator.itemgetter("training")


def _replaced(module: nn.Module) -> dict[str, object]:
    """What of its class it has others for, of data the name alone (attributes.py), and what hides a parameter, buffer or submodule."""
    kind, own = type(module), module.__dict__
    hidden = own.keys() & {*module._parameters, *module._buffers, *module._modules}
    of_class = {key: x if callable(getattr(kind, key)) else None for key, x in own.items() if hasattr(kind, key)}
    return of_class | {key: own[key] for key in hidden}


class StateGuard:
    """`tf32`: whether kernels stand for fp32 products whose operands torch's flags round; None where that does not matter. `tied`:
    names of parameters and buffers that were one tensor when traced. `surroundings`: as traced (surroundings.taken), if known.
    `training`: whether each of `modules` was in training mode, where it is not as it was. `ran`: functions that the traced call ran."""

    def __init__(
        self,
        module: nn.Module,
        slots: list[Slot],
        device: torch.device,
        tf32: bool | None = None,
        tied: list[list[str]] = (),
        surroundings: dict[str, str] | None = None,
        training: list[bool] | None = None,
        ran: Ran = None,
    ):
        self.slots, self.tf32 = slots, tf32
        self.module = module
        every = list(module.modules())
        # What a call of the original would go through and kernels do not: which submodules there are, what their
        # forward is, what hangs on it.
        self.children = [m._modules for m in every if m._modules]
        self.children_then = list(chain.from_iterable(map(dict.values, self.children)))
        self.every, self.own = every, [m.__dict__ for m in every]
        self.sizes, self.types = list(map(len, self.own)), list(map(type, every))
        self.replaced = list(map(_replaced, every))
        self.hooks = HookGuard(module)
        free = [s for s in slots if s.owner is None]
        loose = Loose([s.source for s in free], [s.source for s in free if s.packed or s.facts])
        self.code = CodeReads(module, loose, ran)
        self.attributes = Attributes(module, loose, self.code.loaded)
        # What torch.compile gives has none of its own, but that of the module within.
        moded = [m for m in every if "training" in m.__dict__]
        # Hooks are a library's code, or the user's, and get the module.
        asks = lambda m: type(m) not in _stateless or m._forward_pre_hooks or m._forward_hooks  # noqa: E731
        self.modules = [m for m in moded if asks(m) or "training" in self.code.loaded]
        self.flagged = [m.__dict__ for m in self.modules]
        self.flags = [m.training for m in self.modules]
        if training is not None and len(training) == len(self.flags):
            self.flags = training
        self.surroundings = Surroundings(device, surroundings)
        self.held = [s for s in slots if s.owner is not None]
        self.owners, self.keys = [s.owner for s in self.held], [s.key for s in self.held]
        self.names = NamesOfState(module, {(id(s.owner), s.key) for s in self.held}, tied)
        self.watched = [s for s in self.held if s.packed or s.facts]  # whose content matters, not only its place
        self.stamp: tuple = ()
        self.volatile = False  # content that matters is an inference tensor's, whose changes cannot be seen
        self.autocast, self.default_dtype = device.type, torch.get_default_dtype()

    def check(self) -> bool:
        """Whether nothing has changed since the last `renew`: identities, addresses, layouts, versions."""
        if not self.stamp or self.volatile or not self.names.unchanged():
            return False
        tensors, lies, versions = self.stamp
        now = map(dict.get, self.owners, self.keys)
        if not all(map(operator.is_, now, tensors)) or lies_of(tensors) != lies:
            return False
        return not self.watched or [version_of(s.source) for s in self.watched] == versions

    def recording(self, tensors: list) -> bool:
        """Whether gradients are recorded for an input or a parameter."""
        return torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *(s.source for s in self.held)))

    def modes(self, tensors: list) -> Miss | None:
        if self.recording(tensors):
            return Miss(
                "grad",
                "gradients are recorded for an input or a parameter; kernels have no backward "
                "(call it under torch.no_grad() or torch.inference_mode())",
            )
        if list(map(_training_of, self.flagged)) != self.flags:
            m = next(m for m, flag in zip(self.modules, self.flags) if m.training is not flag)
            return Miss("training", f"{type(m).__name__}.training is {m.training}; it was {not m.training} when traced")
        if (miss := self.surroundings.changed() or self.precision() or self.structure()) is not None:
            return miss
        if (changed := self.attributes.changed()) is not None:
            return Miss("attribute", changed)
        return None if (changed := self.code.changed()) is None else Miss("code", changed)

    def precision(self) -> Miss | None:
        if self.tf32 is None or matmul_rounds_to_tf32() is self.tf32:
            return None
        return Miss(
            "precision",
            f"torch.backends.cuda.matmul.fp32_precision is {torch.backends.cuda.matmul.fp32_precision}; kernels were "
            f"made for {'tf32' if self.tf32 else 'fp32 accuracy'}",
        )

    def structure(self) -> Miss | None:
        """Hooks on submodules, another forward or another method, another submodule."""
        if hooks := self.hooks.changed():
            return Miss("hooks", hooks)
        if (sizes := list(map(len, self.own))) != self.sizes:
            if list(map(_replaced, self.every)) != self.replaced:
                return Miss(
                    "structure",
                    "the forward or another method of a submodule was replaced, or an attribute hides a parameter, buffer or submodule",
                )
            self.sizes = sizes
        if list(map(type, self.every)) != self.types:
            return Miss("structure", "a submodule is of another class")
        if list(chain.from_iterable(map(dict.values, self.children))) != self.children_then:
            return Miss("structure", "a submodule was replaced, added or removed")
        return None

    def changed(self) -> str:
        """What of the module is otherwise than it was, but for its mode and the parameters that are read, which a guard of a copy
        sees, too. "" for nothing."""
        if (miss := self.structure()) is not None:
            return miss.text
        return self.attributes.changed() or self.code.changed() or self.names.changed() or ""

    def misfit(self) -> Miss | None:
        """Of the parameters and buffers that are read, as they are now."""
        return next(filter(None, (self._fits(s, s.owner.get(s.key)) for s in self.held)), None)

    def compiled_miss(self) -> bool:
        """Of `modes`, what torch.compile can trace and guard."""
        if torch.is_autocast_enabled(self.autocast) or torch.get_default_dtype() is not self.default_dtype:
            return True
        return self.hooks.differ() or any(m.training is not flag for m, flag in zip(self.modules, self.flags))

    def dictionaries(self) -> list[dict]:
        """Those that have to stay as they are in all that they hold."""
        return [*self.names.dictionaries, *self.children]

    def places(self) -> Watched:
        """What else has to stay as it is for `modes` to say nothing, for who has asked it, but for gradients and settings that the
        extension reads."""
        watched = Watched()
        for part in (self.surroundings, self.hooks, self.attributes, self.code):
            watched.add(part.watched)
        for own, flag in zip(self.flagged, self.flags):
            watched.item(own, "training", flag)
        for module, own, kind in zip(self.every, self.own, self.types):
            watched.size(own)
            watched.field(module, "__class__", kind)
        if self.tf32 is not None:
            watched.call(precision_of, "cuda", "matmul", expected=precision_of("cuda", "matmul"))
        return watched

    def renew(self) -> Miss | tuple[bool, str]:
        """Looks at every slot. A Miss, or (whether a kept value is stale, what changed). `check` holds again after
        `commit`: until then other threads wait for the caller."""
        stale, what = False, ""
        for s in self.held:
            t = s.owner.get(s.key)
            miss = self._fits(s, t)
            if miss:
                return miss
            if s.packed and (t is not s.source or (lies_of([t]), version_of(t)) != self._before(s)):
                stale, what = True, what or s.value
            s.take(t)
        if (changed := self.names.changed()) is not None:
            return Miss("parameter", changed)
        return stale, what

    def _before(self, s: Slot) -> tuple:
        if not self.stamp:
            return ()
        i = self.held.index(s)
        return [[column[i]] for column in self.stamp[1]], self.stamp[2][self.watched.index(s)]

    def commit(self) -> None:
        tensors = [s.source for s in self.held]
        self.volatile = any(s.source.is_inference() for s in self.watched)
        self.stamp = (tensors, lies_of(tensors), [version_of(s.source) for s in self.watched])

    def _fits(self, s: Slot, t) -> Miss | None:
        if not isinstance(t, torch.Tensor):
            return Miss("parameter", f"`{s.key}` is no tensor any more")
        if type(t) not in (torch.Tensor, nn.Parameter):
            return Miss("parameter", f"`{s.key}` is a {type(t).__name__}")
        if not is_plain(t):
            return Miss("parameter", f"`{s.key}` is {kind_of(t)}")
        if t.is_complex() is not s.of_parts:
            return Miss("parameter", f"`{s.key}` is {t.dtype}; traced as {'complex' if s.of_parts else 'real'} numbers")
        t = as_parts(t)
        if tuple(t.shape) != s.type.shape or t.dtype != s.type.dtype:
            return Miss(
                "parameter", f"`{s.key}` is {t.dtype} {list(t.shape)}; traced as {s.type.dtype} {list(s.type.shape)}"
            )
        if t.device != s.device:
            return Miss("device", f"`{s.key}` is on {t.device}; traced on {s.device}")
        if not s.type.matches_layout(t):
            return Miss("parameter", f"`{s.key}` has strides {list(t.stride())}; traced with {list(s.type.strides)}")
        if s.facts:
            now = facts_of(t)
            for name, wanted in s.facts.items():
                if now.get(name) != wanted:
                    return Miss("facts", f"the content of `{s.key}` changed: `{name}` = {wanted} no longer holds")
        return None
