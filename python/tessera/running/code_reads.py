"""What the code of a module's forward finds outside of the module: globals, what functions close over, attributes of classes, the
functions that it calls; and the gradients of parameters, where it asks for some.

The code is read, not run: from the forwards of all submodules on, through the functions and classes of the user that it names. Where
it is known which functions a call ran, the others are not read: they run only after something that those read has changed.
Of libraries only the names themselves are watched (another function in the place of `F.gelu` is seen, also where the forward of
`nn.GELU` names it), not what lies behind.
"""

from __future__ import annotations

import builtins
import functools
import re
import sys
import sysconfig
import types
from pathlib import Path

import torch
from torch import nn

from tessera.running.attributes import bookkeeping, objects_of
from tessera.running.bytecode import asks_for_gradients, loads_of, names_of
from tessera.running.plain_places import NONE, Loose, Places, Reading, deepest, is_data, is_object, unseen
from tessera.running.watched import items_of

Ran = frozenset[tuple[str, int, str]] | None  # keys of the functions that a call ran; None where that is not known

_EMPTY = object()
_most_functions = 512
_most_entries = 1 << 14  # of a class: more is a table, which Dynamo has to follow
_most_held = 64  # of a list whose entries may be functions
# Methods that no forward runs on what is there already; other special ones it runs without naming them.
_at_rest = ("__init__", "__new__", "__del__", "__repr__", "__reduce__", "__getstate__", "__setstate__")
_at_rest += ("__init_subclass__", "__class_getitem__", "__post_init__", "__set_name__")
_whole = (torch.Tensor, nn.Module, types.ModuleType, types.CodeType)  # not looked into
# Builtins by which code asks whether there is an attribute.
_asking = {"hasattr", "getattr", "vars", "dir", "AttributeError", "Exception"}
# Functions that forward may ask how it is run, and what the trace was told.
questions = {torch.is_grad_enabled: False, torch.is_inference_mode_enabled: False}
# Others of torch's, by their names, whose answers may be another at each call; but for those that surroundings.py watches.
_question = re.compile(r"(is|are|get)_\w+|initial_seed")
_answered = re.compile(
    r"\w*(autocast|compiling|exporting|scripting|tracing|grad_enabled|inference_mode\w*|rng_state|default_d\w+)"
)
# Functions that say something of the world.
_of_world = ("time", "posix", "nt", "io", "_io", "genericpath")
_libraries = (
    *(sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parents[1]),
)


@functools.cache
def of_library(module: str) -> bool:
    """Whether a Python module, by its name, is torch's, Python's or an installed package's. What has no file is a notebook's or a session's."""
    top = sys.modules.get(module.partition(".")[0])
    if top is torch or module in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and file.startswith(_libraries)


def key_of(code: types.CodeType) -> tuple[str, int, str]:
    """The same for what Dynamo makes of it, and in another process."""
    return code.co_filename, code.co_firstlineno, code.co_name


def _is_users(thing) -> bool:
    where = thing.__globals__.get("__name__") if isinstance(thing, types.FunctionType) else thing.__module__
    return not of_library(where or "builtins")


class _Reader:
    """`submodules`: their identities. `unseen`: what is read and may change unseen. `loaded`: names that the code has for attributes."""

    def __init__(self, loose: Loose, ran: Ran, submodules: frozenset[int] = frozenset()):
        self.places, self.asked, self.gradients, self.asks_names = Places(loose), set(), False, False
        self.unseen: dict[str, None] = {}
        self.loaded: set[str] = set()
        self._ran, self._late = ran, set()  # `late`: functions that run after the call, by identity
        self._submodules = submodules
        self._python_modules: dict[int, types.ModuleType] = {}
        self._things: set[int] = set()
        self._functions: dict[int, types.FunctionType] = {}
        self._classes: dict[int, type] = {}
        self._pending: list[types.FunctionType] = []
        self._seen: set[tuple[int, object]] = set()

    def read(self) -> None:
        """All code that was found, and what is found in it."""
        while self._pending:
            self._read(self._pending.pop())
            if not self._pending:
                self._names_of_modules()

    def _names_of_modules(self) -> None:
        """Of the user's Python modules that code has under a name of its own, what it may ask them for."""
        for found in list(self._python_modules.values()):
            own = vars(found)
            for name in sorted(self.loaded & own.keys()):
                if (id(own), name) not in self._seen and not isinstance(own[name], types.ModuleType):
                    self.entry(own, name, own[name], f"{found.__name__}.{name}")

    def held(self, value, path: str) -> None:
        """What an attribute or an entry holds: code that is read later."""
        if isinstance(value, (list, tuple, set, frozenset)):
            for i, x in enumerate(value):
                if len(value) <= _most_held or isinstance(x, types.FunctionType):
                    self.held(x, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key, x in items_of(value):
                if len(value) <= _most_held or isinstance(x, types.FunctionType):
                    self.held(x, f"{path}[{key!r}]")
        elif isinstance(value, types.ModuleType) or self._is_thing(value):
            self._follow(value, path, ())
        else:
            self.function(value)
            self.asked |= {q for q in questions if q is value}

    def function(self, value) -> None:
        """Is read later, if it is a function of the user's."""
        while value is not None:
            if isinstance(value, types.FunctionType):
                self._later(value)
            value = _within(value)

    def _later(self, f: types.FunctionType) -> None:
        if not _is_users(f):
            self._enclosed(f)
        elif self._ran is not None and key_of(f.__code__) not in self._ran and id(f) not in self._late:
            return
        elif id(f) not in self._functions and len(self._functions) < _most_functions:
            self._functions[id(f)] = f
            self._pending.append(f)

    def _enclosed(self, f: types.FunctionType) -> None:
        """The user's functions that a library's closes over, as functools.singledispatch does."""
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            value = _content_of(cell)
            if id(cell) in self._seen or value is _EMPTY:
                continue
            self._seen.add(id(cell))
            many = isinstance(value, (list, tuple, dict))
            held = list(value.values() if isinstance(value, dict) else value)[:_most_held] if many else [value]
            functions = [x for x in held if isinstance(x, types.FunctionType)]
            if any(map(_is_users, functions)):
                self.places.add(cell, "cell_contents", value, f"{f.__qualname__}.{name}", field=True)
            for x in functions:
                self._later(x)

    def klass(self, kind: type) -> None:
        """Its methods and the data among its attributes, and those of its bases; of a library's class the forward and what it calls."""
        for c in kind.__mro__:
            if c is object or id(c) in self._classes:
                continue
            self._classes[id(c)] = c
            own, path = vars(c), f"{c.__module__}.{c.__qualname__}"
            if not _is_users(c):
                for name in ("forward", "__call__", "_call_impl"):
                    if issubclass(c, nn.Module) and name in own:
                        self.places.keep(own, name, own[name], f"{path}.{name}")
                if isinstance(forward := own.get("forward"), types.FunctionType):
                    self._names_of(forward)
            elif len(own) > _most_entries:
                self.unseen.setdefault(f"`{path}`, a class of {len(own)} entries")
            else:
                self._watch(c, "__bases__", c.__bases__, f"{path}.__bases__", field=True)
                names = [name for name in own if not name.startswith("__") or _runs_unnamed(name, own[name])]
                if issubclass(c, torch.autograd.Function):
                    self._late.update(id(_within(f) or f) for f in own.values())
                self.places.names(own, names, path)  # another one would hide a base's
                for name in names:
                    self.entry(own, name, own[name], f"{path}.{name}")

    def entry(self, container, key, value, path: str, chain: tuple[str, ...] = ()) -> None:
        """What stands at a place that code reads, and what the code asks it for."""
        if (id(container), key) not in self._seen:
            self._seen.add((id(container), key))
            self._watch(container, key, value, path)
        self._follow(value, path, chain)

    def _watch(self, container, key, value, path: str, field: bool = False) -> None:
        if self._is_thing(value):
            self.places.keep(container, key, value, path, type(value), field=field)
        elif isinstance(value, _whole) or callable(value) or _within(value):
            self.places.keep(container, key, value, path, field=field)
            self.asked |= {q for q in questions if q is value}
        else:
            self.places.add(container, key, value, path, field=field)
        if isinstance(value, nn.Module) or not (isinstance(value, _whole) or callable(value) or _within(value)):
            self.look_at(value, path)

    def look_at(self, value, path: str) -> None:
        """Notes what may change unseen."""
        if what := unseen(value, path, self._submodules):
            self.unseen.setdefault(what)

    def _is_thing(self, value) -> bool:
        return is_object(value) and not _within(value) and (_is_users(type(value)) or is_data(value, deepest))

    def _follow(self, value, path: str, chain: tuple[str, ...]) -> None:
        if isinstance(value, types.ModuleType):
            if chain and chain[0] in vars(value):
                self.entry(vars(value), chain[0], vars(value)[chain[0]], f"{path}.{chain[0]}", chain[1:])
            elif chain and type(value) is not types.ModuleType:
                self._setting(value, chain[0])
            elif not of_library(value.__name__):
                self._python_modules[id(value)] = value
        elif isinstance(value, type):
            if _is_users(value):
                self.klass(value)
        elif self._is_thing(value):
            own = vars(value)
            if _is_users(type(value)):
                self.klass(type(value))
            if not chain and id(own) in self._things:
                return
            self._things.add(id(own))
            for name in chain[:1] if chain and chain[0] in own else list(own):
                self.entry(own, name, own[name], f"{path}.{name}", chain[1:])
        elif callable(value):
            self._called(value, path)
        else:
            self.held(value, path)

    def _called(self, value, path: str) -> None:
        """A function that code names: the user's are read, of torch's those watched that answer otherwise from call to call."""
        self.function(value)
        where, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
        if isinstance(value, types.BuiltinFunctionType) and where in _of_world:
            self.unseen.setdefault(f"`{path}()`, which says something of the world")
        if where.partition(".")[0] == "torch" and _question.fullmatch(name) and not _answered.match(name):
            self._answer(value)

    def _answer(self, question, *arguments) -> None:
        try:
            answer = question(*arguments)
        except Exception:  # noqa: BLE001 - it is about something, or needs a device that is not there
            return
        if isinstance(answer, (int, str, bytes, type(None), torch.dtype)):
            self.places.watched.call(question, *arguments, expected=answer)
            self.places.found[f"{question.__name__}({', '.join(map(str, arguments[1:]))})"] = answer

    def _setting(self, holder: types.ModuleType, name: str) -> None:
        """torch.backends.cudnn.benchmark and the like, which are properties."""
        self._answer(getattr, holder, name)

    def _read(self, f: types.FunctionType) -> None:
        path = f"{f.__module__}.{f.__qualname__}"
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._watch(f, name, getattr(f, name), f"{path}.{name}", field=True)
        self.gradients |= asks_for_gradients(f.__code__)
        names, imports = names_of(f.__code__)
        self.loaded |= names
        self.asks_names = self.asks_names or "__dict__" in names
        for name in sorted(imports):
            if (found := sys.modules.get(name)) is not None and not of_library(name):
                self._python_modules[id(found)] = found
        own = vars(f)
        for name in own:
            if name != "__wrapped__":
                self.entry(own, name, own[name], f"{path}.{name}")
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=False))
        chains = sorted(loads_of(f.__code__))
        self._absent(f.__globals__, {name for name, *_ in chains if name not in cells}, path)
        for name, *chain in chains:
            if name in cells:
                self._cell(cells[name], f"{path}.{name}", tuple(chain))
            elif name in f.__globals__:
                self.entry(
                    f.__globals__,
                    name,
                    f.__globals__[name],
                    f"{f.__globals__.get('__name__', '')}.{name}",
                    tuple(chain),
                )
            elif name in vars(builtins):
                self._called(vars(builtins)[name], name)

    def _absent(self, globals_: dict, names: set[str], path: str) -> None:
        """Of names that code loads, those that may still come among the globals, before a builtin or where nothing is."""
        self.asks_names = self.asks_names or not names.isdisjoint(_asking)
        come = sorted(names & globals_.keys())
        if len(come) < len(names):
            self.places.names(globals_, come, f"the globals of {path}")
        if "globals" in names:
            self.places.names(globals_, list(globals_), f"all globals of {path}")

    def _names_of(self, f: types.FunctionType) -> None:
        """The functions that a library's forward calls, as `F.linear`: which they are, not what they read."""
        for name, *chain in sorted(loads_of(f.__code__)):
            holder, value = f.__globals__, f.__globals__.get(name)
            while chain and isinstance(value, types.ModuleType):
                holder, name = vars(value), chain.pop(0)
                value = holder.get(name)
            if not chain and callable(value) and (id(holder), name) not in self._seen:
                self._seen.add((id(holder), name))
                self.places.keep(holder, name, value, f"{holder.get('__name__', '')}.{name}")

    def _cell(self, cell, path: str, chain: tuple[str, ...]) -> None:
        value = _content_of(cell)
        if value is _EMPTY:
            return
        if id(cell) not in self._seen:
            self._seen.add(id(cell))
            self._watch(cell, "cell_contents", value, path, field=True)
        self._follow(value, path, chain)


def _runs_unnamed(name: str, method) -> bool:
    return isinstance(method, types.FunctionType) and name not in _at_rest


def _content_of(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _EMPTY


def _within(value):
    """What a wrapper of a function holds."""
    if isinstance(value, (functools.partial, functools.partialmethod, functools.cached_property)):
        return value.func
    if isinstance(value, functools.singledispatchmethod):
        return value.dispatcher
    if isinstance(value, property):
        return value.fget
    if isinstance(value, (types.MethodType, staticmethod, classmethod)):
        return value.__func__
    return (
        vars(value).get("__wrapped__")
        if isinstance(value, (types.FunctionType, functools._lru_cache_wrapper))
        else None
    )


class CodeReads(Reading):
    """What a module's code finds outside of the module, as it is now."""

    def __init__(self, module: nn.Module, loose: Loose = NONE, ran: Ran = None):
        self.asked: set = set()  # of `questions`, those that the code asks
        self.loaded: set[str] = set()  # names that the user's code may have for attributes
        self.unseen: list[str] = []  # what it reads and may change unseen, for people
        super().__init__(lambda: self._found(module, loose, ran), "what forward reads changed:")

    def _found(self, module: nn.Module, loose: Loose, ran: Ran) -> Places:
        reader, objects = _Reader(loose, ran, frozenset(map(id, module.modules()))), objects_of(module)
        for thing, own, path in objects.values():
            if isinstance(thing, nn.Module) or _is_users(type(thing)):
                reader.klass(type(thing))
            for name, value in list(own.items()):
                if name not in bookkeeping:
                    reader.held(value, f"{path}.{name}".lstrip("."))
        reader.read()
        for path, m in module.named_modules():
            for hook in (*m._forward_pre_hooks.values(), *m._forward_hooks.values()):
                for name, value in vars(hook).items() if is_object(hook) else ():
                    reader.entry(vars(hook), name, value, f"{path}'s {type(hook).__name__}.{name}")
        self.asked, self.loaded = reader.asked, reader.loaded
        for thing, own, path in objects.values():
            if reader.asks_names and isinstance(thing, nn.Module):
                reader.places.names(own, list(own), path or type(thing).__name__)
            for name in sorted(reader.loaded & own.keys() - bookkeeping) if _is_users(type(thing)) else ():
                reader.look_at(own[name], f"{path}.{name}".lstrip("."))
        self.unseen = list(reader.unseen)
        asked = ("grad",) * reader.gradients + ("requires_grad",) * ("requires_grad" in reader.loaded)
        for name, parameter in module.named_parameters() if asked else ():
            for what in asked:
                reader.places.keep(parameter, what, getattr(parameter, what), f"{name}.{what}", field=True)
        for question in reader.asked:
            reader.places.watched.call(question, expected=questions[question])
        return reader.places

    def changed(self) -> str | None:
        for question in self.asked:
            if question() is not questions[question]:
                return f"forward asks {question.__name__}(), which is {question()}; it was {questions[question]} when traced"
        return super().changed()
