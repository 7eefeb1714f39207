"""Plain values where a program finds them: numbers, flags, names, functions, lists of them, what objects hold, under paths by which
one look is compared with another.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import numbers
import types
from collections.abc import Callable

import torch
from torch import nn

from tessera.running.same_value import same_value
from tessera.running.watched import Watched

_functions = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools.partial,
    torch._ops.OpOverload,
    type,
)
_data = (numbers.Number, str, bytes, type(None), range, slice, torch.dtype, torch.device, torch.Size, enum.Enum)
immutable = (*_data, *_functions)
_longest = 64  # of a list: more is data, and tensors hold data
_largest = 256  # of an object in an object
deepest = 4  # lists in lists, objects in objects


def _has_slots(value) -> bool:
    """A dataclass without a dictionary, which is compared by its fields."""
    of_data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return of_data and not hasattr(value, "__dict__") and type(value).__eq__ is not object.__eq__


def _parts_of(value) -> list[tuple[str, object]] | None:
    """What a list, a dictionary or an object of slots holds, each with what its path ends in; None of anything else, and of what is
    too long to be more than data."""
    if isinstance(value, (list, tuple)):
        found = [(f"[{i}]", x) for i, x in enumerate(value[: _longest + 1])]
    elif isinstance(value, dict):
        found = [(f"[{k!r}]", x) for k, x in value.items()] if len(value) <= _longest else [()] * (_longest + 1)
    elif _has_slots(value):
        found = [(f".{f.name}", getattr(value, f.name, None)) for f in dataclasses.fields(value)]
    else:
        return None
    return found if len(found) <= _longest else None


def _form_of(value):
    """Of a container what its parts do not say: its kind, and how many there are under which keys."""
    if isinstance(value, dict):
        return type(value), list(value)
    return type(value), len(value) if isinstance(value, (list, tuple)) else 0


def is_object(value) -> bool:
    other = isinstance(value, (nn.Module, torch.Tensor, types.ModuleType, *_functions))
    return not other and type(getattr(value, "__dict__", None)) is dict


def is_called(value) -> bool:
    """Whether it is an object that is called as a function is."""
    return callable(value) and not isinstance(value, (nn.Module, torch.Tensor))


def add_object(found: dict[int, tuple[object, dict, str]], value, path: str, depth: int = deepest) -> None:
    """An object, and those that it holds."""
    if id(value.__dict__) in found:
        return
    found[id(value.__dict__)] = (value, value.__dict__, path)
    for key, inner in value.__dict__.items():
        if is_object(inner) and is_data(inner, depth):
            add_object(found, inner, f"{path}.{key}", depth - 1)


def is_data(value, depth: int) -> bool:
    """Whether an object holds values, tensors and other such objects alone, as a configuration within another one."""
    if depth == 0 or not is_object(value) or len(value.__dict__) > _largest:
        return False
    return all(_is_plain(v) or isinstance(v, torch.Tensor) or is_data(v, depth - 1) for v in value.__dict__.values())


def _is_plain(value) -> bool:
    if isinstance(value, (*immutable, set, frozenset)):
        return True
    parts = _parts_of(value)
    return parts is not None and all(_is_plain(x) for _, x in parts)


class Places:
    """A list of places under the paths by which a program finds them. `tensors`: addresses of the graph's that are nobody's parameter,
    buffer or attribute; where an object or a list holds one, it has to stay."""

    def __init__(self, tensors: frozenset[int] = frozenset()):
        self.watched, self._tensors = Watched(), tensors
        self.found: dict[str, object] = {}  # by path

    def add(self, container, key, value, path: str, *, field: bool = False) -> bool:
        """Watches an entry, or the field of an object, if what stands there is plain or holds something plain."""
        seen = self.inside(value, path, deepest)
        if seen:
            (self.watched.field if field else self.watched.item)(container, key, value)
        return seen

    def keep(self, container, key, value, path: str, stands_for: object = None, *, field: bool = False) -> None:
        """Watches it whatever stands there; `stands_for`: what another value there has to be equal to, where that is not this one."""
        (self.watched.field if field else self.watched.item)(container, key, value)
        self._note(path, value if stands_for is None else stands_for)

    def names(self, container, names: list[str], path: str) -> None:
        """Watches which names there are."""
        self.watched.size(container)
        self._note(f"the names in {path}", names)

    def _note(self, path: str, value) -> None:
        while path in self.found:  # of another place: what has no name of its own, as functions in functions
            path += "'"
        self.found[path] = value

    def inside(self, value, path: str, depth: int) -> bool:
        if isinstance(value, torch.Tensor):
            here = value.layout == torch.strided and value.data_ptr() in self._tensors
        elif isinstance(value, (set, frozenset)):
            here = len(value) <= _longest and all(isinstance(x, immutable) for x in value)
            if here and isinstance(value, set):
                self.watched.size(value)
                self.watched.members(value)
                value = frozenset(value)
        elif isinstance(value, (*immutable, nn.Module)) and type(value) is not torch.Size:
            here = True
        elif is_object(value) and is_data(value, depth):
            return self._parts(vars(value), path, depth)
        else:
            return self._parts(value, path, depth)
        if here:
            self._note(path, value)
        return here

    def _parts(self, value, path: str, depth: int) -> bool:
        parts = _parts_of(value) if depth > 0 else None
        if parts is None:
            return False
        keys = list(value) if isinstance(value, dict) else [name.strip(".[]") for name, _ in parts]
        some = not parts
        for key, (name, x) in zip(keys, parts, strict=True):
            if not self.inside(x, path + name, depth - 1):
                continue
            some = True
            if isinstance(value, (list, dict)):
                self.watched.item(value, key if isinstance(value, dict) else int(key), x)
            elif not isinstance(value, tuple):
                self.watched.field(value, key, x)
        if some:
            self._note(path, _form_of(value))
            if isinstance(value, (list, dict)):
                self.watched.size(value)
        return some

    def differs(self, now: Places) -> str | None:
        """What to say of the first path under which another value stands now. What only `now` has was not there to be read."""
        for path, value in self.found.items():
            if path not in now.found:
                return f"`{path}` is not what it was when traced"
            if not same_value(value, now.found[path]):
                return f"`{path}` is {now.found[path]!r:.80}; it was {value!r:.80} when traced"
        return None


class Reading:
    """What `look` finds now has to stay. `what`: of what kind it is, for people."""

    def __init__(self, look: Callable[[], Places], what: str):
        self._look, self._what = look, what
        self._places = look()

    @property
    def watched(self) -> Watched:
        return self._places.watched

    def changed(self) -> str | None:
        """What to say of the first place where another value stands now, or None."""
        if self._places.watched.unchanged():
            return None
        now = self._look()
        if (what := self._places.differs(now)) is not None:
            return f"{self._what} {what}"
        self._places = now
        return None
