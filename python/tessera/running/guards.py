"""What must hold for a composed module to stand in for the original, checked on every call.

`InputGuard` looks at the arguments of the call, `StateGuard` at parameters, buffers, module flags and torch's modes.
Each answers None when all is as traced, else a `Miss`. Everything expected is computed once; a check compares tuples.
"""

from __future__ import annotations

import inspect
import operator
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.facts import facts_of
from tessera.common.precision import matmul_rounds_to_tf32
from tessera.common.transforms import as_parts
from tessera.running.attributes import Attributes
from tessera.running.extension import TensorType, input_alignment
from tessera.running.hooks import HookGuard


@dataclass(frozen=True)
class Miss:
    """Why the original runs instead. `kind` is what is counted; `text` says what was met."""

    kind: str
    text: str


_plain = (type(None), bool, int, float, str)


class InputGuard:
    """The traced user inputs; `devices`: where each lies. `signature` binds keyword and positional spellings of a call to one
    form."""

    def __init__(
        self,
        names: list[str],
        types: list[TensorType],
        devices: list[torch.device],
        aliased: frozenset[int],
        signature: inspect.Signature | None,
        example: tuple | None,
    ):
        self.names, self.types, self.aliased, self.signature = names, types, aliased, signature
        self.count = len(types)
        self.checks = [(t.shape, t.strides, t.dtype, d) for t, d in zip(types, devices, strict=True)]
        self.spec, self.constants = None, None
        # By (how many are positional, names of the others): places of tensors, and what the others were (`_remember`).
        self._forms: dict[tuple, tuple[list[int], list[tuple[int, object]]]] = {}
        self.simple = True  # a call with exactly `count` positional tensors, and defaults for the rest
        if example is not None:
            leaves, self.spec = pytree.tree_flatten(self._normal(*example))
            self.constants = [None if isinstance(x, torch.Tensor) else (i, x) for i, x in enumerate(leaves)]
            self.simple = (
                len(example[0]) == self.count
                and not example[1]
                and all(isinstance(x, torch.Tensor) for x in example[0])
            )

    def _normal(self, args: tuple, kwargs: dict):
        if self.signature is None:
            return args, kwargs
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def tensors(self, args: tuple, kwargs: dict) -> list | Miss:
        """The tensors of a call in the order of the traced user inputs."""
        if self.simple and not kwargs and len(args) == self.count:
            return list(args)
        form = self._forms.get((len(args), *kwargs))
        if form is not None:
            given = (*args, *kwargs.values())
            if all(given[i] is x or (type(given[i]) is type(x) and given[i] == x) for i, x in form[1]):
                return [given[i] for i in form[0]]
        found = self._bound(args, kwargs)
        if type(found) is list:
            self._remember(args, kwargs, found)
        return found

    def _remember(self, args: tuple, kwargs: dict, found: list) -> None:
        """Calls of this form need no binding, where every argument is a tensor or a plain value."""
        given = (*args, *kwargs.values())
        tensors = [i for i, x in enumerate(given) if isinstance(x, torch.Tensor)]
        others = [(i, x) for i, x in enumerate(given) if not isinstance(x, torch.Tensor)]
        places = {id(given[i]): i for i in tensors}
        if len(places) == len(found) == len(tensors) and all(type(x) in _plain for _, x in others):
            self._forms[(len(args), *kwargs)] = [places[id(x)] for x in found], others

    def _bound(self, args: tuple, kwargs: dict) -> list | Miss:
        try:
            leaves, spec = pytree.tree_flatten(self._normal(args, kwargs))
        except TypeError as e:
            return Miss("structure", f"the arguments do not fit forward(): {e}")
        if self.spec is None:
            found = [x for x in leaves if isinstance(x, torch.Tensor)]
            if len(found) != self.count or any(x is not None and not isinstance(x, torch.Tensor) for x in leaves):
                return Miss("structure", f"{self.count} tensors were traced; the call has {len(found)} and others")
            return found
        if spec != self.spec:
            return Miss("structure", "the arguments are nested or named differently than traced")
        found = []
        for x, constant in zip(leaves, self.constants, strict=True):
            if constant is None:
                found.append(x)
            elif x is not constant[1] and (isinstance(x, torch.Tensor) or x != constant[1]):
                return Miss("structure", f"argument {constant[0]} was {constant[1]!r} when traced and is now {x!r}")
        return found

    def check(self, tensors: list) -> Miss | list[int] | None:
        """None; a Miss; or the indices of inputs that hold the right elements in another layout."""
        other = None
        for i, (x, (shape, strides, dtype, device)) in enumerate(zip(tensors, self.checks)):
            if type(x) is not torch.Tensor and type(x) is not nn.Parameter:
                return self._strange(i, x)
            if x.shape != shape:
                return Miss("shape", f"input `{self.names[i]}` has shape {list(x.shape)}; traced with {list(shape)}")
            if x.dtype is not dtype:
                return Miss("dtype", f"input `{self.names[i]}` is {x.dtype}; traced as {dtype}")
            if x.device != device:
                return Miss("device", f"input `{self.names[i]}` is on {x.device}; traced on {device}")
            if (x.stride() != strides and not self.types[i].matches_layout(x)) or x.data_ptr() % input_alignment:
                if i in self.aliased:
                    return Miss(
                        "aliased layout",
                        f"input `{self.names[i]}` has strides {list(x.stride())}, traced "
                        f"{list(strides)}, and an output may share its memory",
                    )
                other = [*(other or ()), i]
        return other

    def _strange(self, i: int, x) -> Miss:
        if isinstance(x, torch.Tensor):
            return Miss("subclass", f"input `{self.names[i]}` is a {type(x).__name__}")
        return Miss("structure", f"input `{self.names[i]}` is a {type(x).__name__}, not a tensor")

    def check_symbolic(self, tensors: list) -> bool:
        """The same while torch.compile or torch.export traces the call: their own guards hold it from there on."""
        for x, (shape, strides, dtype, device) in zip(tensors, self.checks):
            if not isinstance(x, torch.Tensor):
                return False
            if tuple(x.shape) != shape or x.dtype != dtype or x.device != device or x.stride() != strides:
                return False
        return True


# --- state ---------------------------------------------------------------------------------------------------------


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


def version_of(t: torch.Tensor) -> int:
    """The in-place counter; -1 for inference tensors, which have none."""
    return -1 if t.is_inference() else t._version


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
    """Methods of its class that it has others for."""
    return {key: own for key, own in module.__dict__.items() if callable(getattr(type(module), key, None))}


class StateGuard:
    """Parameters, buffers, the module's structure, attributes, flags and hooks, and torch's modes. `check` is the fast path; where it misses,
    `renew` looks closely: a changed value with the traced type is accepted, and `renew` says whether kept values are stale.
    `tf32`: whether kernels stand for fp32 products whose operands torch's flags round; None where that does not matter."""

    def __init__(self, module: nn.Module, slots: list[Slot], device: torch.device, tf32: bool | None = None):
        self.slots, self.tf32 = slots, tf32
        self.module = module
        every = list(module.modules())
        # What a call of the original would go through and kernels do not: which submodules there are, what their
        # forward is, what hangs on it.
        self.children = [m._modules for m in every if m._modules]
        self.children_then = list(chain.from_iterable(map(dict.values, self.children)))
        self.every, self.own = every, [m.__dict__ for m in every]
        self.sizes = list(map(len, self.own))
        self.replaced = list(map(_replaced, every))
        self.hooks = HookGuard(module)
        self.modules = [m for m in every if type(m) not in _stateless]
        self.flagged = [m.__dict__ for m in self.modules]
        self.flags = [m.training for m in self.modules]
        self.attributes = Attributes(module, [s.source for s in slots if s.owner is None])
        self.held = [s for s in slots if s.owner is not None]
        self.owners, self.keys = [s.owner for s in self.held], [s.key for s in self.held]
        self.watched = [s for s in self.held if s.packed or s.facts]  # whose content matters, not only its place
        self.stamp: tuple = ()
        self.volatile = False  # a kept value is made from an inference tensor, whose changes cannot be seen
        self.autocast = device.type

    def check(self) -> bool:
        """Whether nothing has changed since the last `renew`: identities, addresses, versions."""
        if not self.stamp or self.volatile:
            return False
        tensors, pointers, versions = self.stamp
        now = map(dict.get, self.owners, self.keys)
        if not all(map(operator.is_, now, tensors)) or list(map(torch.Tensor.data_ptr, tensors)) != pointers:
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
        if torch.is_autocast_enabled(self.autocast):
            return Miss("autocast", "autocast is on; it was off when traced")
        if list(map(_training_of, self.flagged)) != self.flags:
            m = next(m for m, flag in zip(self.modules, self.flags) if m.training is not flag)
            return Miss("training", f"{type(m).__name__}.training is {m.training}; it was {not m.training} when traced")
        if (miss := self.precision() or self.structure()) is not None:
            return miss
        changed = self.attributes.changed()
        return None if changed is None else Miss("attribute", changed)

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
        if list(map(len, self.own)) != self.sizes and list(map(_replaced, self.every)) != self.replaced:
            return Miss("structure", "the forward or another method of a submodule was replaced")
        if list(chain.from_iterable(map(dict.values, self.children))) != self.children_then:
            return Miss("structure", "a submodule was replaced, added or removed")
        return None

    def compiled_miss(self) -> bool:
        """Of `modes`, what torch.compile can trace and guard."""
        if torch.is_autocast_enabled(self.autocast) or self.hooks.differ():
            return True
        return any(m.training is not flag for m, flag in zip(self.modules, self.flags))

    def renew(self) -> Miss | tuple[bool, str]:
        """Looks at every slot. A Miss, or (whether a kept value is stale, what changed). `check` holds again after
        `commit`: until then other threads wait for the caller."""
        stale, what = False, ""
        for s in self.held:
            t = s.owner.get(s.key)
            miss = self._fits(s, t)
            if miss:
                return miss
            if s.packed and (t is not s.source or (t.data_ptr(), version_of(t)) != self._before(s)):
                stale, what = True, what or s.value
            s.take(t)
        return stale, what

    def _before(self, s: Slot) -> tuple:
        if not self.stamp:
            return ()
        return self.stamp[1][self.held.index(s)], self.stamp[2][self.watched.index(s)]

    def commit(self) -> None:
        tensors = [s.source for s in self.held]
        self.volatile = any(s.packed and s.source.is_inference() for s in self.held)
        self.stamp = (tensors, [t.data_ptr() for t in tensors], [version_of(s.source) for s in self.watched])

    def _fits(self, s: Slot, t) -> Miss | None:
        if not isinstance(t, torch.Tensor):
            return Miss("parameter", f"`{s.key}` is no tensor any more")
        if type(t) not in (torch.Tensor, nn.Parameter):
            return Miss("parameter", f"`{s.key}` is a {type(t).__name__}")
        if t.is_complex() is not s.of_parts or t.is_conj():
            lazily, traced = ", lazily conjugated" if t.is_conj() else "", "complex" if s.of_parts else "real"
            return Miss("parameter", f"`{s.key}` is {t.dtype}{lazily}; traced as {traced} numbers in memory")
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


# --- what happened -------------------------------------------------------------------------------------------------


def _outside() -> int:
    """The stack level, for warnings.warn in the caller, of the first frame outside tessera and torch."""
    frame, level = sys._getframe(2), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("tessera", "torch"):
        frame, level = frame.f_back, level + 1
    return level


class Events:
    """Counts by kind, with the latest text; warns once for each kind, or calls `refuse` every time (strict)."""

    def __init__(self, refuse: Callable[[Miss], None] | None):
        self.counts: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.refuse = refuse

    def clear(self) -> None:
        self.counts.clear()
        self.texts.clear()

    def add(self, miss: Miss, then: str, right: bool = False) -> None:
        """`right`: nothing was lost by it, so strict does not refuse."""
        if self.refuse is not None and not right:
            self.refuse(miss)
        seen = self.counts.get(miss.kind, 0)
        self.counts[miss.kind] = seen + 1
        self.texts[miss.kind] = miss.text
        if not seen:
            warnings.warn(f"tessera: {miss.text}; {then} (warned once; status() counts)", stacklevel=_outside())

    def to_list(self) -> list[dict]:
        return [{"kind": kind, "count": n, "reason": self.texts[kind]} for kind, n in self.counts.items()]
