"""Plain values where a program finds them: numbers, flags, names, functions, lists of them, what objects hold, under paths by which
one look is compared with another. Of a tensor among them it is seen that another one lies there, not what it holds.
"""

from __future__ import annotations

import abc
import array
import contextvars
import datetime
import enum
import functools
import logging
import numbers
import pathlib
import re
import sys
import threading
import types
import typing
from collections import deque
from collections.abc import Callable, Sequence

import torch
from torch import nn

from tessera.running.plain_tensors import version_of
from tessera.running.same_value import same_value
from tessera.running.watched import Watched, items_of, members_of

_functions = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools.partial,
    torch._ops.OpOverload,
    type,
)
_data = (numbers.Number, str, bytes, type(None), range, slice, torch.dtype, torch.device, torch.Size, enum.Enum)
_data += (type(Ellipsis), type(NotImplemented), torch.memory_format, torch.layout, re.Pattern)
_data += (pathlib.PurePath, datetime.date, datetime.time, datetime.timedelta)
# What they hold says nothing of what is computed, or is watched elsewhere.
_aside = (
    type(threading.Lock()),
    type(threading.RLock()),
    logging.Logger,
    torch.Generator,
    torch.Stream,
    torch.Event,
    type(abc.ABC.__dict__["_abc_impl"]),
    types.MemberDescriptorType,  # what a slot holds is its object's
    types.GetSetDescriptorType,
    type(typing.NamedTuple("Pair", [("first", object)]).first),  # what a field holds is its tuple's
)
immutable = (*_data, *_functions, *_aside)
_longest = (
    64  # of a list whose entries are places of their own; what is longer, and plain throughout, is watched as a whole
)
_most = 1 << 16  # entries of a list: more is data, and tensors hold data
_most_nested = 1024  # of a list that holds lists or objects
_most_bytes = 1 << 20  # of an array: more is data
_lists, _dicts = (list, tuple, deque), (dict, types.MappingProxyType)
_largest = 256  # of an object in an object
deepest = 8  # lists in lists, objects in objects


def slots_of(kind: type) -> tuple[str, ...]:
    found = []
    for c in kind.__mro__:
        given = c.__dict__.get("__slots__", ())
        found += [given] if isinstance(given, str) else list(given)
    return tuple(n for n in found if n not in ("__dict__", "__weakref__"))


def _has_slots(value) -> bool:
    """An object of somebody's class without a dictionary."""
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    return not (hasattr(value, "__dict__") or home in sys.stdlib_module_names or home in ("torch", "numpy")) and any(
        "__slots__" in c.__dict__ for c in kind.__mro__
    )


def _content(value) -> tuple[Callable, tuple] | None:
    """What to call, with which arguments, for the bytes of an array or the value of a context."""
    if isinstance(value, contextvars.ContextVar):
        try:
            value.get()
        except LookupError:
            return value.get, (None,)
        return value.get, ()
    if isinstance(value, bytearray):
        return (bytes, (value,)) if len(value) <= _most_bytes else None
    of_numpy = type(value).__module__ == "numpy" and hasattr(value, "tobytes")
    size = value.nbytes if of_numpy else len(value) * value.itemsize if isinstance(value, array.array) else None
    return (value.tobytes, ()) if size is not None and size <= _most_bytes else None


def _parts_of(value) -> list[tuple[str, object]] | None:
    """What a list, a dictionary or an object of slots holds, each with what its path ends in; None of anything else, and of what is
    too long to be more than data."""
    if isinstance(value, _lists) and len(value) <= _most_nested:
        return [(f"[{i}]", x) for i, x in enumerate(value)]
    if isinstance(value, _dicts) and len(value) <= _most_nested:
        return [(f"[{k!r}]", x) for k, x in items_of(value)]
    if _has_slots(value):
        return [(f".{name}", getattr(value, name)) for name in slots_of(type(value)) if hasattr(value, name)]
    return None


def is_fixed(value) -> bool:
    """Whether a value is what it is for good."""
    plain = isinstance(value, immutable) or type(value) is object
    return plain or (isinstance(value, (tuple, frozenset)) and all(map(is_fixed, value)))


def _as_a_whole(value) -> bool:
    """Whether it is a long list or dictionary of plain values alone."""
    if not isinstance(value, (*_lists, *_dicts)) or not _longest < len(value) <= _most:
        return False
    held = (x for _, x in items_of(value)) if isinstance(value, _dicts) else value
    return all(isinstance(x, immutable) for x in held)


def _form_of(value):
    """Of a container what its parts do not say: its kind, and how many there are under which keys."""
    if isinstance(value, _dicts):
        return type(value), [k for k, _ in items_of(value)]
    return type(value), len(value) if isinstance(value, _lists) else 0


def is_object(value) -> bool:
    other = isinstance(value, (nn.Module, torch.Tensor, types.ModuleType, *_functions, *_aside))
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
    return all(_is_plain(v, deepest) or is_data(v, depth - 1) for v in value.__dict__.values())


def kind_of_place(t: torch.Tensor) -> tuple:
    """Of a tensor that is not the graph's own what forward may have asked it for: the graph reads it where it lies, if at all."""
    return type(t), t.dtype, t.device, t.layout, () if t.is_nested else tuple(t.shape)


def _is_plain(value, depth: int) -> bool:
    if isinstance(value, (*immutable, torch.Tensor, set, frozenset)) or _as_a_whole(value) or _content(value):
        return True
    parts = _parts_of(value) if depth > 0 else None
    return parts is not None and all(_is_plain(x, depth - 1) for _, x in parts)


# Of Python's own library those whose objects hold nothing but what their fields say.
_open = (
    "builtins",
    "os",
    "types",
    "collections",
    "enum",
    "abc",
    "typing",
    "dataclasses",
    "argparse",
    "contextlib",
    "functools",
)


def _is_of_stdlib(value) -> bool:
    homes = {c.__module__.partition(".")[0] for c in type(value).__mro__}
    return not homes.isdisjoint(sys.stdlib_module_names - set(_open))


def unseen(value, path: str, inside: frozenset[int], depth: int = deepest) -> str:
    """What of it may change without a place saying so, for people; "" if nothing. `inside`: the modules that are watched as modules."""
    if isinstance(value, nn.Module):
        return "" if id(value) in inside else f"`{path}`, a module that is no submodule"
    if isinstance(value, functools.partial):
        return unseen((value.args, value.keywords), path, inside, depth)
    if isinstance(value, (torch.Tensor, types.ModuleType)) or is_fixed(value):
        return ""
    if not _is_of_stdlib(value) and is_called(value):
        return ""
    if _as_a_whole(value) or _content(value) or (isinstance(value, (set, frozenset)) and all(map(is_fixed, value))):
        return ""
    parts = _parts_of(value)
    if parts is None and is_object(value) and len(vars(value)) <= _largest and not _is_of_stdlib(value):
        parts = [(f".{name}", x) for name, x in vars(value).items()]
    if parts is None or depth == 0:
        return f"`{path}` ({type(value).__name__})"
    return next((found for name, x in parts if (found := unseen(x, path + name, inside, depth - 1))), "")


class Loose:
    """Tensors of the graph that are nobody's parameter, buffer or attribute: where an object or a list holds one, or code reads it, it
    has to stay. `relied`: those whose content has to stay, too, for a plan has facts of it, or keeps what is made of it."""

    def __init__(self, tensors: Sequence[torch.Tensor] = (), relied: Sequence[torch.Tensor] = ()):
        self.tensors, self.relied = (frozenset(t.data_ptr() for t in of) - {0} for of in (tensors, relied))


NONE = Loose()


class _Written(typing.NamedTuple):
    """A tensor whose content has to stay, and its version counter."""

    tensor: torch.Tensor
    times: int

    def __repr__(self) -> str:
        return f"a tensor whose version is {self.times}"


class Places:
    """A list of places under the paths by which a program finds them."""

    def __init__(self, loose: Loose = NONE):
        self.watched, self._loose = Watched(), loose
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
        self._note(path, self._tensor(value) if stands_for is None else stands_for)
        self._contents(value, path, deepest)

    def names(self, container, names: list[str], path: str) -> None:
        """Watches which names there are."""
        self.watched.size(container)
        self._note(f"the names in {path}", names)

    def _note(self, path: str, value) -> None:
        while path in self.found:  # of another place: what has no name of its own, as functions in functions
            path += "'"
        self.found[path] = value

    def _tensor(self, value, otherwise=None):
        """What has to stay of a loose tensor; `otherwise` of what is none, or that itself."""
        place = value.data_ptr() if isinstance(value, torch.Tensor) and value.layout == torch.strided else 0
        if place in self._loose.relied:
            self.watched.call(version_of, value, expected=version_of(value))
            return _Written(value, version_of(value))
        return value if place in self._loose.tensors or otherwise is None else otherwise

    def inside(self, value, path: str, depth: int) -> bool:
        if isinstance(value, torch.Tensor):
            self._set_on(value, path, depth)
            here, value = True, self._tensor(value, kind_of_place(value))
        elif isinstance(value, (set, frozenset)):
            here = len(value) <= _most and all(map(is_fixed, value))
            if here and isinstance(value, set):
                self.watched.members(value)
                value = frozenset(value)
        elif _as_a_whole(value):
            here = True
            if not isinstance(value, tuple):
                self.watched.members(value)
                value = (type(value), *members_of(value))
        elif (content := _content(value)) is not None:
            here, (function, arguments) = True, content
            found = function(*arguments)
            self.watched.call(function, *arguments, expected=found)
            value = type(value), getattr(value, "dtype", None), getattr(value, "shape", None), found
        elif isinstance(value, (*immutable, nn.Module)) and type(value) is not torch.Size:
            here = True
            if isinstance(value, logging.Logger):
                self.watched.call(value.getEffectiveLevel, expected=value.getEffectiveLevel())
                value = value, value.getEffectiveLevel()
        elif is_object(value) and is_data(value, depth):
            return self._parts(vars(value), path, depth) | self._contents(value, path, depth)
        else:
            return self._parts(value, path, depth)
        if here:
            self._note(path, value)
            self._contents(value, path, depth)
        return here

    def _contents(self, value, path: str, depth: int) -> bool:
        """What is held by an object that is a list or a dictionary as well, by a function with arguments, and what is set on a tensor."""
        if isinstance(value, torch.Tensor):
            self._set_on(value, path, depth)
        if isinstance(value, functools.partial):
            return self.inside(value.args, f"{path}.args", depth) | self.inside(
                value.keywords, f"{path}.keywords", depth
            )
        return is_object(value) and isinstance(value, (list, dict, tuple, deque)) and self._parts(value, path, depth)

    def _set_on(self, tensor: torch.Tensor, path: str, depth: int) -> None:
        """Attributes of a user's; torch sets others, which begin with an underscore."""
        for name, x in vars(tensor).items() if depth > 0 else ():
            if not name.startswith("_") and self.inside(x, f"{path}.{name}", depth - 1):
                self.watched.item(vars(tensor), name, x)

    def _parts(self, value, path: str, depth: int) -> bool:
        parts = _parts_of(value) if depth > 0 else None
        if parts is None:
            return False
        keys = (
            [k for k, _ in items_of(value)] if isinstance(value, _dicts) else [name.strip(".[]") for name, _ in parts]
        )
        some = not parts
        for key, (name, x) in zip(keys, parts, strict=True):
            if not self.inside(x, path + name, depth - 1):
                continue
            some = True
            if isinstance(value, (list, deque)):
                self.watched.item(value, int(key), x)
            elif not isinstance(value, (tuple, *_dicts)):
                self.watched.field(value, key, x)
        if some:
            self._note(path, _form_of(value))
            if isinstance(value, _dicts):
                self.watched.members(value)  # their order as well
            elif isinstance(value, (list, deque)):
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
