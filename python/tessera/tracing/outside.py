"""What the code of a module's forward names outside of the module: globals, attributes of Python modules, classes, the functions that it
calls. The code is read, not run. Of libraries nothing is read but the functions beside the module's own class."""

from __future__ import annotations

import dis
import functools
import io
import itertools
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import nn

from tessera.running.code_reads import of_library

_most_read = 4096  # functions and classes
_globals = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
_attributes = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM")
_wrappers = (property, staticmethod, classmethod)
_streams = ("stdin", "stdout", "stderr")


@dataclass(frozen=True)
class _Names:
    """That code loads or stores."""

    globals: frozenset[str]
    attributes: frozenset[str]
    imports: frozenset[str]


@functools.lru_cache(4096)
def _names_of(code: types.CodeType) -> _Names:
    found: dict[str, set[str]] = {"globals": set(), "attributes": set(), "imports": set()}
    kinds = dict.fromkeys(_globals, "globals") | dict.fromkeys(_attributes, "attributes") | {"IMPORT_NAME": "imports"}
    for op in dis.get_instructions(code):
        if op.opname in kinds:
            found[kinds[op.opname]].add(op.argval)
    texts = {c for c in code.co_consts if isinstance(c, str) and c.isidentifier()}
    if "globals" in found["globals"]:
        found["globals"] |= texts
    if not found["globals"].isdisjoint(("getattr", "setattr", "vars")):
        found["attributes"] |= texts
    for inner in (c for c in code.co_consts if isinstance(c, types.CodeType)):
        names = _names_of(inner)
        for kind, some in found.items():
            some |= getattr(names, kind)
    return _Names(*map(frozenset, found.values()))


@dataclass
class _Space:
    """A dictionary of globals. `names`: that code has for what is there; `given`: those that were looked at."""

    own: dict
    name: str
    names: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    by_attribute: bool = False


class Outside:
    """Finds code by what it is shown, and says what that code names. `names`: all that stand in code that was read."""

    def __init__(self, module: nn.Module):
        classes = {c for m in module.modules() for c in type(m).__mro__}
        # Also of a library: its state is the module's.
        self._homes = {c.__module__ for c in classes if c.__module__.partition(".")[0] not in ("torch", "builtins")}
        self._read: dict[int, object] = {}
        self._spaces: dict[int, _Space] = {}
        self.names: set[str] = set()

    def is_read(self, thing) -> bool:
        """Whether a function or class is the user's, or beside the module's own class."""
        where = thing.__globals__.get("__name__") if isinstance(thing, types.FunctionType) else thing.__module__
        return where in self._homes or _is_users(where)

    def opened(self, value) -> list[tuple[object, str]]:
        """What there is to look at of a function, a class, a Python module or what wraps a function, with names for people."""
        if isinstance(value, _wrappers):
            inner = (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value.__func__,)
            return [(f, getattr(f, "__qualname__", "")) for f in inner if f is not None]
        if isinstance(value, types.MethodType):
            return [(value.__func__, getattr(value, "__qualname__", ""))]
        known = not isinstance(value, (type, types.FunctionType, types.ModuleType)) or id(value) in self._read
        if known or len(self._read) >= _most_read:
            return []
        self._read[id(value)] = value
        if isinstance(value, types.ModuleType):
            if _is_users(vars(value).get("__name__")):
                self._space(vars(value), value.__name__).by_attribute = True
            return []
        if not self.is_read(value):
            return []
        return self._of_class(value) if isinstance(value, type) else self._of_function(value)

    def _space(self, own: dict, name: str) -> _Space:
        return self._spaces.setdefault(id(own), _Space(own, name))

    def _of_class(self, kind: type) -> list[tuple[object, str]]:
        above = [(c, c.__name__) for c in (*kind.__mro__[1:], type(kind)) if c not in (object, type)]
        code = (types.FunctionType, *_wrappers)
        return above + [(f, getattr(f, "__qualname__", k)) for k, f in vars(kind).items() if isinstance(f, code)]

    def _of_function(self, f: types.FunctionType) -> list[tuple[object, str]]:
        names = _names_of(f.__code__)
        self.names |= names.globals | names.attributes | {*f.__code__.co_freevars}
        self.names |= {*f.__code__.co_varnames[: f.__code__.co_argcount + f.__code__.co_kwonlyargcount]}
        self._space(f.__globals__, f.__globals__.get("__name__", "")).names |= names.globals
        packages = {n.rpartition(".")[0] for n in names.imports} | names.imports
        return [(sys.modules[n], n) for n in sorted(packages) if n in sys.modules]

    def is_named(self, path: str) -> bool:
        """Whether code that was read may come to what stands there, or to what holds the item that stands there."""
        bare = re.sub(r"(\[[^\]]*\])+$", "", path)
        name = bare.rpartition(".")[2]
        return name in self.names or name in ("args", "keywords") or bare.endswith("]")

    def spaces(self) -> Iterator[tuple[dict, str, tuple[str, ...]]]:
        """Globals with names in them that were not given before, also of what is not there yet."""
        for space in list(self._spaces.values()):
            names = space.names | self.names if space.by_attribute else space.names
            new = sorted(n for n in names - space.given if not n.startswith("__"))
            space.given.update(new)
            if new:
                yield space.own, space.name, tuple(new)


def _is_users(where: object) -> bool:
    return isinstance(where, str) and not of_library(where)


def own_names(kind: type) -> dict:
    """What stands in a class of itself and in the code of its methods."""
    return {k: v for k, v in vars(kind).items() if not k.startswith("__")}


def runs_once(value) -> bool:
    """Whether using it changes it for good: a generator, an iterator that cannot be set back, a file."""
    return _kind_runs_once(type(value)) and all(
        value is not getattr(sys, s) and value is not getattr(sys, f"__{s}__") for s in _streams
    )


@functools.lru_cache(4096)
def _kind_runs_once(kind: type) -> bool:
    if issubclass(kind, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, io.IOBase)):
        return True
    if not hasattr(kind, "__next__") or _is_users(kind.__module__) or kind in (itertools.count, itertools.repeat):
        return False
    return kind.__module__ != "builtins" or not (hasattr(kind, "__length_hint__") and hasattr(kind, "__setstate__"))
