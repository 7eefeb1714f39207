"""Objects that hold tensors among what forward returns, as a cache of keys and values: taken apart into the tensors and the rest of what
they are, of which every call's own are made again. What pytree knows of such a type may leave some of its state out."""

from __future__ import annotations

import base64
import enum
import numbers
import pickle
import types
from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.running.plain_places import is_fixed

_atoms = (str, bytes, type(None), range, slice, numbers.Number, torch.dtype, torch.device, torch.Size, torch.layout)
_shared = (type, enum.Enum, nn.Module, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
_containers = (tuple, list, dict, deque)  # of pytree's own, and what is made of them: nothing of them is left out


class NotTakenApart(Exception):
    """An object whose tensors cannot be told from the rest."""


@dataclass
class Form:
    """What an object is besides its tensors. `what`: nested tuples whose first is the kind of the part."""

    what: tuple

    def made(self, tensors: list):
        return _made(self.what, tensors, {})


class Apart:
    """In the place of an object; pytree takes it for a node, and makes the object of it."""

    def __init__(self, tensors: list[torch.Tensor], form: Form):
        self.tensors, self.form = tensors, form


pytree.register_pytree_node(
    Apart,
    lambda apart: (apart.tensors, apart.form),
    lambda tensors, form: form.made(list(tensors)),
    serialized_type_name="tessera.Apart",
    to_dumpable_context=lambda form: base64.b64encode(pickle.dumps(form)).decode(),
    from_dumpable_context=lambda text: pickle.loads(base64.b64decode(text)),
)


def containers_in(tree) -> list:
    """The lists, dictionaries and deques of it that pytree opens, once for each time that they are there."""
    if not isinstance(tree, _containers):
        return []
    inner = [c for x in (tree.values() if isinstance(tree, dict) else tree) for c in containers_in(x)]
    return inner if isinstance(tree, tuple) else [tree, *inner]


def taken_apart(result, lasting: Container[int] | None = None):
    """`result` with an Apart for each object that holds tensors or may be changed, and for each torch.Size, of which pytree makes a tuple.
    `lasting`: identities of objects that are older than the call: they stay. Where it is known, raises NotTakenApart where one of those
    holds tensors or is a container, which every call would make anew, where a container is there twice, and of what has no attributes."""
    if lasting is not None:
        containers = containers_in(result)
        if len(set(map(id, containers))) < len(containers):
            raise NotTakenApart("a list or dictionary is there twice")
        if any(id(c) in lasting for c in containers):
            raise NotTakenApart("a list or dictionary is older than the call")

    def of_leaf(x):
        if isinstance(x, torch.Size) and all(type(n) is int for n in x):
            return Apart([], Form(("same", x)))
        if isinstance(x, (torch.Tensor, *_atoms, *_shared)):
            return x
        taker = _Taker(lasting)
        form = Form(taker.part(x))
        return x if form.what[0] == "same" else Apart(taker.tensors, form)

    return pytree.tree_map(
        of_leaf, result, is_leaf=lambda x: isinstance(x, torch.Size) or not isinstance(x, _containers)
    )


def tensors_of(result) -> list[torch.Tensor]:
    """All that it holds, in the order of a traced module's."""
    return [t for t in pytree.tree_leaves(taken_apart(result)) if isinstance(t, torch.Tensor)]


@dataclass
class _Taker:
    lasting: Container[int] | None
    tensors: list[torch.Tensor] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # of the tensors, by identity
    seen: dict[int, int] = field(default_factory=dict)  # numbers of what was opened
    inside: int = 0  # how many lasting objects it is in

    def part(self, x) -> tuple:
        if isinstance(x, torch.Tensor):
            if self.inside:
                raise NotTakenApart("an object that is older than the call holds a tensor of the result")
            if id(x) not in self.places:
                self.places[id(x)] = len(self.tensors)
                self.tensors.append(x)
            return "tensor", self.places[id(x)]
        if isinstance(x, (*_atoms, *_shared)):
            return "same", x
        if id(x) in self.seen:
            return "again", self.seen[id(x)]
        lasts = self.lasting is not None and id(x) in self.lasting
        self.inside += lasts
        at = self.seen[id(x)] = len(self.seen)
        form = self._opened(x, at)
        self.inside -= lasts
        return ("same", x) if lasts else form

    def _opened(self, x, at: int) -> tuple:
        kind = type(x)
        if isinstance(x, types.MethodType):
            return "method", at, self.part(x.__self__), x.__name__
        if kind in (tuple, list, set, frozenset) or hasattr(x, "_fields"):
            return "elements", at, kind, [self.part(v) for v in x]
        if isinstance(x, deque):
            return "deque", at, x.maxlen, [self.part(v) for v in x]
        items = [(k, self.part(v)) for k, v in x.items()] if isinstance(x, dict) else None
        known = kind.__new__ in (object.__new__, dict.__new__) or isinstance(x, dict)
        if not known or any("__slots__" in vars(c) for c in kind.__mro__[:-1] if c.__module__ not in ("abc", "typing")):
            if self.lasting is not None and not self.inside and not is_fixed(x):
                raise NotTakenApart(f"the call makes an object ({kind.__name__}) that has no attributes")
            return "same", x
        return "object", at, kind, items, {k: self.part(v) for k, v in getattr(x, "__dict__", {}).items()}


def _made(what: tuple, tensors: list, made: dict[int, object]):
    kind = what[0]
    if kind == "tensor":
        return tensors[what[1]]
    if kind == "same":
        return what[1]
    if kind == "again":
        return made[what[1]]
    at = what[1]
    if kind == "method":
        made[at] = getattr(_made(what[2], tensors, made), what[3])
    elif kind == "elements":
        cls, parts = what[2], what[3]
        if cls is list:
            made[at] = some = []
            some.extend(_made(p, tensors, made) for p in parts)
        else:
            values = [_made(p, tensors, made) for p in parts]
            made[at] = cls(*values) if hasattr(cls, "_fields") else cls(values)
    elif kind == "deque":
        made[at] = some = deque(maxlen=what[2])
        some.extend(_made(p, tensors, made) for p in what[3])
    else:
        _, _, cls, items, attributes = what
        made[at] = some = cls.__new__(cls)
        for key, part in items or ():
            dict.__setitem__(some, key, _made(part, tensors, made))
        if attributes:
            some.__dict__.update({k: _made(p, tensors, made) for k, p in attributes.items()})
    return made[at]
