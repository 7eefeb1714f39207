"""What a module holds in Python, as it is now: attributes of its modules and of the objects in them, lists, dictionaries; and what its
code finds outside: names of classes and of Python modules, globals, closures and default arguments, with all that they hold. A picture
says later what has changed, and puts it back."""

from __future__ import annotations

import functools
import itertools
import numbers
import random
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

import torch
from torch import nn

from tessera.running.plain_places import items_of, slots_of
from tessera.tracing.hidden_state import numbers_in, set_state, state_of
from tessera.tracing.outside import Outside, own_names, runs_once
from tessera.tracing.written import Saving, copied, form_of, memory_of

_atoms = (str, bytes, type(None), range, slice, torch.dtype, torch.device, torch.Size, numbers.Number)
_plain = (int, float, bool, str, bytes, complex, type(None))
_boxes = (dict, list, tuple, set, deque, OrderedDict)
_entered = (
    "builtins",
    "collections",
    "types",
    "functools",
    "random",
    "dataclasses",
    "itertools",
    "weakref",
)  # of the standard library
_many = 100_000  # elements: of what has more, the number alone is looked at


@dataclass
class _Holder:
    """Something that holds values by name or place: `names` of them, in the order that it has them."""

    value: object
    path: str
    held: dict  # as it was
    kind: type  # of the value, which a lazy module changes
    keys: tuple[str, ...] | None = None  # the names that are looked at, of globals

    @property
    def identity(self) -> tuple:
        return id(self.value), self.keys

    def now(self) -> dict:
        return _held_by(self.value, self.keys)

    def restore(self) -> None:
        value = self.value
        if type(value) is not self.kind:
            value.__class__ = self.kind
        if not _same_items(self.held, self.now()):
            _put_back(value, self.held, self.keys)


@dataclass
class Picture:
    """Of a module, and of what its forward reads besides. `also`: other roots by their names."""

    module: nn.Module
    also: dict[str, object] = field(default_factory=dict)

    def __post_init__(self):
        self._holders: dict[tuple, _Holder] = {}
        self._tensors: dict[int, tuple[torch.Tensor, str, int]] = {}
        self._forms: dict[int, tuple | None] = {}  # of these tensors
        self._learned: dict[int, bool] = {}  # whether they require gradients
        self._memories: dict[int, torch.Tensor] = {}  # where they lay, which an assignment to `.data` changes
        self._saved: dict[int, torch.Tensor] = {}
        self._marks: dict[int, dict] = {}  # attributes of these tensors
        self._states: list[tuple[object, str, object]] = []  # generators of random numbers, iterators, arrays
        self._once: list[str] = []  # what cannot be put back
        self._outside, self._kinds = Outside(self.module), set()
        self._followed = {id(t) for t in _followed_by_export(self.module)}
        self._ignored = recomputed(self.module)
        pending: list[tuple[object, str]] = [(self.module, ""), *((v, name) for name, v in self.also.items())]
        classes = dict.fromkeys(c for m in self.module.modules() for c in type(m).__mro__)
        pending += [(c, c.__name__) for c in classes]
        while pending:
            self._look(*pending.pop(), pending)
            for own, path, names in () if pending else self._outside.spaces():
                self._hold(_Holder(own, path, _held_by(own, names), type(own), names), pending)

    def _look(self, value, path: str, pending: list) -> None:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._tensors and not isinstance(value, nn.parameter.UninitializedTensorMixin):
                self._tensors[id(value)] = value, path, _version(value)
                self._forms[id(value)] = form_of(value)
                self._learned[id(value)] = value.requires_grad
                self._marks[id(value)] = marks_of(value)
                if memory_of(value) is not None:
                    self._memories[id(value)] = value.detach()
            return
        if type(value) in _plain:
            return
        if type(value) in _boxes:
            if (id(value), None) not in self._holders and (type(value) is tuple or len(value) <= _many):
                self._hold(_Holder(value, path, _held_by(value), type(value)), pending)
            return
        if runs_once(value):
            self._once.append(path)
        if (state := state_of(value)) is not None:
            self._states.append((value, path, state))
        elif (id(value), None) not in self._holders and self._holds(value):
            self._hold(_Holder(value, path, _held_by(value), type(value)), pending)
            if type(value) not in self._kinds:
                self._kinds.add(type(value))
                pending.append((type(value), type(value).__name__))
        pending += self._outside.opened(value)

    def _hold(self, holder: _Holder, pending: list) -> None:
        self._holders[holder.identity] = holder
        pending += [(v, _joined(holder.path, k)) for k, v in holder.held.items()]

    def _holds(self, value) -> bool:
        return self._outside.is_read(value) if isinstance(value, type) else _holds(value)

    def once(self) -> list[str]:
        """The names of what forward's code can name and no picture puts back, as a generator."""
        return [path for path in self._once if path.partition("[")[0] in self.also or self._outside.is_named(path)]

    def chances(self) -> list[str]:
        """The names of Python's generators of random numbers that drew some."""
        states = [(v, path, state) for v, path, state in self._states if isinstance(v, random.Random)]
        return [path for value, path, state in states if value.getstate() != state]

    def saving(self) -> Saving:
        """Within it, the content of a tensor of the picture is copied before the first op that writes to its memory."""
        by_memory: dict[int, list[torch.Tensor]] = {}
        for tensor, *_ in self._tensors.values():
            if (at := memory_of(tensor)) is not None:
                by_memory.setdefault(at, []).append(tensor)
        return Saving(by_memory, self._saved)

    def save_all(self) -> None:
        """Copies all that a call may write to, but parameters, which are large: for calls that `saving` cannot watch."""
        for tensor, *_ in self._tensors.values():
            if not isinstance(tensor, nn.Parameter) and id(tensor) not in self._saved:
                self._saved[id(tensor)] = copied(tensor)

    def changed(self) -> list[str]:
        """The names of what is another value now, or holds other values, and of tensors of another shape; "" for none. In-place writes to parameters, buffers and
        tensor attributes are not among them: torch.export follows those."""
        names = []
        for holder in self._holders.values():
            if type(holder.value) is not holder.kind:
                names.append(holder.path or type(holder.value).__name__)
            now = holder.now()
            for key in dict.fromkeys([*holder.held, *now]):
                if (holder.path, key) in self._ignored:
                    continue
                if key not in now or key not in holder.held or not _same(holder.held[key], now[key]):
                    names.append(_joined(holder.path, key))
            if isinstance(holder.value, dict) and list(now) != list(holder.held) and now.keys() == holder.held.keys():
                names.append(holder.path)  # in another order
        names += [path for value, path, state in self._states if repr(state) != repr(state_of(value))]
        names += [path for t, path, v in self._tensors.values() if _version(t) != v and id(t) not in self._followed]
        names += [path for t, path, _ in self._tensors.values() if form_of(t) != self._forms[id(t)] or self._moved(t)]
        names += [path for t, path, _ in self._tensors.values() if t.requires_grad != self._learned[id(t)]]
        names += [path for t, path, _ in self._tensors.values() if not _same_items(self._marks[id(t)], marks_of(t))]
        return list(dict.fromkeys(names))

    def lost(self) -> list[str]:
        """The names of tensors and modules in whose place nothing is now, or what was held elsewhere: not a new one that takes over,
        as a longer cache does. And of tensors that require gradients no more, or now."""
        known = {*self.objects(), id(None)}
        names = [
            _joined(holder.path, key)
            for holder in self._holders.values()
            for now in [holder.now()]
            for key, then in holder.held.items()
            if isinstance(then, (torch.Tensor, nn.Module)) and now.get(key) is not then and id(now.get(key)) in known
        ]
        return names + [path for t, path, _ in self._tensors.values() if t.requires_grad != self._learned[id(t)]]

    def _moved(self, t: torch.Tensor) -> bool:
        return id(t) in self._memories and memory_of(t) != memory_of(self._memories[id(t)])

    @torch.no_grad()
    def restore(self, python: bool = True) -> None:
        """All as it was; without `python` the content of tensors alone."""
        for tensor, *_ in self._tensors.values():
            if self._moved(tensor):
                tensor.data = self._memories[id(tensor)]
            if form_of(tensor) != (form := self._forms[id(tensor)]):
                tensor.as_strided_(*form)
            if id(tensor) in self._saved:
                tensor.copy_(self._saved[id(tensor)])
            if tensor.requires_grad != self._learned[id(tensor)]:
                tensor.requires_grad_(self._learned[id(tensor)])
        if not python:
            return
        for tensor, *_ in self._tensors.values():
            _mark(tensor, self._marks[id(tensor)])
        for i, (value, path, state) in enumerate(self._states):
            set_state(value, state)
            if isinstance(value, itertools.count) and repr(value) != state:  # another one in its places
                again = itertools.count(*numbers_in(state))
                self._states[i] = again, path, state
                for holder in self._holders.values():
                    holder.held.update((k, again) for k, v in list(holder.held.items()) if v is value)
        for holder in self._holders.values():
            holder.restore()

    def written(self, names: Container[str]) -> list[str]:
        """Those of these tensors that were written to."""
        return [path for t, path, v in self._tensors.values() if path in names and _version(t) != v]

    def objects(self) -> dict[int, object]:
        """All that it looks at, by identity."""
        holders = {id(h.value): h.value for h in self._holders.values()}
        return holders | {at: t for at, (t, *_) in self._tensors.items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        return {path: t for t, path, _ in self._tensors.values()}


# --- what holds values, and how ---------------------------------------------------------------------------------------


def _holds(value) -> bool:
    if isinstance(value, (list, dict, set, deque)):
        return len(value) <= _many
    if isinstance(value, (tuple, types.FunctionType, types.MethodType, functools.partial)):
        return True
    if isinstance(
        value, (*_atoms, frozenset, type, types.ModuleType, types.BuiltinFunctionType, torch._ops.OpOverload)
    ):
        return False
    home = type(value).__module__.partition(".")[0]
    if home in sys.stdlib_module_names:
        return home in _entered
    if home in ("torch", "numpy"):
        return isinstance(value, nn.Module)
    return True


def _held_by(value, keys: tuple[str, ...] | None = None) -> dict:
    if keys is not None:
        return {k: value[k] for k in keys if k in value}
    held: dict = {}
    if isinstance(value, type):
        return own_names(value)
    if isinstance(value, types.MethodType):
        return {"__self__": value.__self__}
    if isinstance(value, functools.partial):
        return {"func": value.func, "args": value.args, "keywords": value.keywords}
    if isinstance(value, types.FunctionType):
        names = zip(value.__code__.co_freevars, value.__closure__ or ())
        code, given = value.__code__, value.__defaults__ or ()
        defaults = dict(zip(code.co_varnames[code.co_argcount - len(given) : code.co_argcount], given))
        enclosed = {name: cell.cell_contents for name, cell in names if _is_full(cell)}
        own = {("attribute", k): v for k, v in vars(value).items()}
        return enclosed | defaults | (value.__kwdefaults__ or {}) | own
    if isinstance(value, dict):
        held.update({("item", k): v for k, v in items_of(value)})
    elif isinstance(value, (list, tuple, deque)):
        held.update({("item", i): v for i, v in enumerate(value)})
    elif isinstance(value, set):
        held[("item", "")] = frozenset(value)
    if type(getattr(value, "__dict__", None)) is dict:
        held.update(vars(value))
    for name in slots_of(type(value)):
        if hasattr(value, name):
            held[name] = getattr(value, name)
    return held


def _put_back(value, held: dict, keys: tuple[str, ...] | None) -> None:
    if keys is not None:
        for k in _held_by(value, keys).keys() - held.keys():
            del value[k]
        value.update(held)
        return
    if isinstance(value, type):
        now = own_names(value)
        for k in now.keys() - held.keys():
            delattr(value, k)
        for k, v in held.items():
            if now.get(k, value) is not v:
                setattr(value, k, v)
        return
    if isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            if name in held:
                cell.cell_contents = held[name]
        vars(value).clear()
        vars(value).update((k[1], v) for k, v in held.items() if type(k) is tuple)
        return
    items = {k[1]: v for k, v in held.items() if type(k) is tuple}
    rest = {k: v for k, v in held.items() if type(k) is not tuple}
    if isinstance(value, dict):
        (OrderedDict if isinstance(value, OrderedDict) else dict).clear(value)
        value.update(items)
    elif isinstance(value, (list, deque)):
        value.clear()
        value.extend(items.values())
    elif isinstance(value, set):
        value.clear()
        value.update(items[""])
    if type(getattr(value, "__dict__", None)) is dict:
        own, slots = vars(value), slots_of(type(value))
        own.clear()
        own.update({k: v for k, v in rest.items() if k not in slots})
    for name in slots_of(type(value)):
        if name in rest:
            object.__setattr__(value, name, rest[name])


def _is_full(cell) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _followed_by_export(module: nn.Module) -> Iterator[torch.Tensor]:
    """Tensors whose content torch.export lets forward change."""
    yield from module.parameters()
    yield from module.buffers()
    for m in module.modules():
        yield from (v for v in vars(m).values() if isinstance(v, torch.Tensor))


def recomputed(module: nn.Module) -> set[tuple[str, str]]:
    """Attributes that hooks of torch.nn.utils compute before each call, as of weight norm."""
    return {
        (path, hook.name)
        for path, m in module.named_modules()
        for hook in m._forward_pre_hooks.values()
        if type(hook).__module__.startswith("torch.nn.utils.") and hasattr(hook, "name")
    }


# --- one value and another --------------------------------------------------------------------------------------------


def _same(then, now, depth: int = 4) -> bool:
    """Whether one stands for the other: the same object, or the same data. What an object holds is compared by itself."""
    if now is then:
        return True
    if type(now) is not type(then) or isinstance(then, torch.Tensor) or depth == 0:
        return False
    if isinstance(then, _atoms):
        return bool(now == then or (now != now and then != then))  # NaN
    if isinstance(then, types.MethodType):
        return now.__self__ is then.__self__ and now.__func__ is then.__func__
    if type(then) in (list, tuple, dict, set, frozenset, deque) and len(then) == len(now):
        if type(then) in (set, frozenset):
            return then == now
        a, b = _held_by(then), _held_by(now)
        return a.keys() == b.keys() and all(_same(v, b[k], depth - 1) for k, v in a.items())
    return False


def _same_items(then: dict, now: dict) -> bool:
    return list(then) == list(now) and all(v is now[k] for k, v in then.items())


def marks_of(t: torch.Tensor) -> dict:
    """What a tensor was given as attributes, but for what Dynamo notes."""
    return {k: v for k, v in vars(t).items() if not k.startswith("_dynamo")}


def _mark(t: torch.Tensor, marks: dict) -> None:
    now = marks_of(t)
    if not _same_items(marks, now):
        for k in now:
            delattr(t, k)
        vars(t).update(marks)


def _version(t: torch.Tensor) -> int:
    return -1 if t.is_inference() else t._version


def _joined(path: str, key) -> str:
    if isinstance(key, tuple):
        key = key[1]
        inside = path.rpartition(".")
        if inside[2] in ("_parameters", "_buffers", "_modules"):
            return f"{inside[0]}.{key}".lstrip(".")
        return f"{path}[{key!r}]"
    return f"{path}.{key}".lstrip(".")
