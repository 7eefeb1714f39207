"""Plain attributes of a module and its submodules, on whose values the trace depends: numbers, flags, names, functions, and lists
of them; also those of the objects that modules hold, as configurations, and the tensors of the graph that lie in such objects and in
lists.

`Attributes.changed` compares them on every call. torch.nn's own bookkeeping is left out, and so is what a layer derives from
its parameters' shapes.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import numbers
import operator
import types
from collections.abc import Sequence

import torch
from torch import nn

_functions = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools.partial,
    torch._ops.OpOverload,
    type,
)
_data = (numbers.Number, str, bytes, type(None), range, slice, torch.dtype, torch.device, torch.Size, enum.Enum)
_immutable = (*_data, *_functions)
_longest = 64  # of a list: more is data, and tensors hold data
_largest = 256  # of an object in an object
_deepest = 4  # lists in lists, objects in objects
_bookkeeping = frozenset(nn.Module().__dict__) | {"_is_full_backward_hook", "_compiled_call_impl"}
_by_shape = {
    nn.Linear: {"in_features", "out_features"},
    nn.Embedding: {"num_embeddings", "embedding_dim", "padding_idx", "scale_grad_by_freq", "sparse"},
    nn.LayerNorm: {"elementwise_affine"},
}


def _is_plain(value) -> bool:
    """Whether its value, not its identity, is what counts, and comparing it is cheap."""
    if isinstance(value, _immutable):
        return True
    if isinstance(value, (list, tuple, set, frozenset)):
        return len(value) <= _longest and all(map(_is_plain, value))
    if isinstance(value, dict):
        return len(value) <= _longest and all(map(_is_plain, value.values()))
    return _has_slots(value) and all(_is_plain(getattr(value, f.name, None)) for f in dataclasses.fields(value))


def _has_slots(value) -> bool:
    """A dataclass without a dictionary, which is compared by its fields."""
    of_data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return of_data and not hasattr(value, "__dict__") and type(value).__eq__ is not object.__eq__


def _copy(value):
    if type(value) in (list, tuple, set):
        return type(value)(map(_copy, value))
    if type(value) is dict:
        return {k: _copy(v) for k, v in value.items()}
    return value if isinstance(value, _immutable) else copy.deepcopy(value)


def _objects_of(module: nn.Module) -> dict[int, tuple[object, dict, str]]:
    """By identity of their attribute dictionaries: all modules, the plain objects they hold, and what those hold if it is data
    throughout; the dictionaries, and a name for people."""
    found: dict[int, tuple[object, dict, str]] = {}

    def add(value, path: str, depth: int) -> None:
        found[id(value.__dict__)] = (value, value.__dict__, path)
        for key, inner in value.__dict__.items():
            if _is_object(inner) and id(inner.__dict__) not in found and _is_data(inner, depth):
                add(inner, f"{path}.{key}", depth - 1)

    for path, m in module.named_modules():
        found[id(m.__dict__)] = (m, m.__dict__, path)
        for key, value in m.__dict__.items():
            if key not in _bookkeeping and _is_object(value) and id(value.__dict__) not in found:
                add(value, f"{path}.{key}".lstrip("."), _deepest)
    return found


def _is_called(value) -> bool:
    """Whether it is an object that is called as a function is."""
    return callable(value) and not isinstance(value, (nn.Module, torch.Tensor))


def _is_data(value, depth: int) -> bool:
    """Whether an object holds values, tensors and other such objects alone, as a configuration within another one."""
    if depth == 0 or not _is_object(value) or len(value.__dict__) > _largest:
        return False
    return all(_is_plain(v) or isinstance(v, torch.Tensor) or _is_data(v, depth - 1) for v in value.__dict__.values())


def _is_object(value) -> bool:
    other = isinstance(value, (nn.Module, torch.Tensor, *_functions))
    return not other and type(getattr(value, "__dict__", None)) is dict


class Attributes:
    """The plain attributes as they are now. `tensors`: of the graph that are nobody's parameter, buffer or attribute; where an object
    or a list of the module holds one, it has to stay."""

    def __init__(self, module: nn.Module, tensors: Sequence[torch.Tensor] = ()):
        self._module, self._tensors = module, tensors
        self._fixed: tuple[list, list, list] = ([], [], [])  # containers, keys, values: compared by identity first
        self._mutable: list[tuple[dict, str, object]] = []  # lists and dicts, whose content may change in place
        self._names: list[str] = []  # of the fixed ones
        places = {t.data_ptr() for t in tensors} - {0}
        skip = {id(m.__dict__): _by_shape.get(type(m), set()) for m in module.modules()}
        objects = _objects_of(module)
        for holder, own, path in objects.values():
            for key, value in own.items():
                if key in _bookkeeping or key in skip.get(id(own), ()):
                    continue
                name = f"{path}.{key}".lstrip(".")
                is_object = _is_object(value) and id(value.__dict__) in objects
                if isinstance(value, _immutable) or is_object or _is_called(value):
                    self._keep(own, key, value, name)
                elif _is_plain(value):
                    self._mutable.append((own, key, _copy(value)))
                elif places and not (isinstance(value, torch.Tensor) and isinstance(holder, nn.Module)):
                    self._keep_tensors(own, key, value, name, places, _deepest)

    def _keep(self, container, key, value, name: str) -> None:
        for column, x in zip(self._fixed, (container, key, value), strict=True):
            column.append(x)
        self._names.append(name)

    def _keep_tensors(self, container, key, value, name: str, places: set[int], depth: int) -> bool:
        """A tensor of the graph, or the list or dict that holds such; whether it is one."""
        if isinstance(value, torch.Tensor):
            found = value.layout == torch.strided and value.data_ptr() in places
        elif type(value) in (list, tuple, dict) and len(value) <= _longest and depth > 0:
            found = False
            for k, v in value.items() if type(value) is dict else enumerate(value):
                found |= self._keep_tensors(value, k, v, f"{name}[{k!r}]", places, depth - 1)
        else:
            return False
        if found:
            self._keep(container, key, value, name)
        return found

    def changed(self) -> str | None:
        """What to say of the first attribute that has another value now, or None."""
        containers, keys, values = self._fixed
        try:
            if not all(map(operator.is_, map(operator.getitem, containers, keys), values)):
                return self._closely()
            for own, key, value in self._mutable:
                if own[key] != value:
                    return _text(key, value, own[key])
        except (KeyError, IndexError) as e:
            return _text(e.args[0], "there", "gone") if isinstance(e, KeyError) else "a list became shorter"
        return None

    def _closely(self) -> str | None:
        """The same values may be other objects now, and objects may hold the same as those before them."""
        now = Attributes(self._module, self._tensors)
        found = dict(zip(now._names, now._fixed[2], strict=True))
        for name, value in zip(self._names, self._fixed[2], strict=True):
            if name not in found:
                return f"`{name}` is not what it was when traced"
            if not _same(value, found[name]):
                return _text(name, value, found[name])
        if len(now._mutable) != len(self._mutable):
            return "a list or a dict among the attributes is not what it was when traced"
        for (_, key, then), (_, other, value) in zip(self._mutable, now._mutable, strict=True):
            if key != other or then != value:
                return _text(key, then, value)
        self._fixed, self._names, self._mutable = now._fixed, now._names, now._mutable
        return None


def _same(then, now) -> bool:
    """Whether one stands for the other; what objects hold is compared by itself."""
    if now is then:
        return True
    if type(now) is not type(then) or isinstance(then, torch.Tensor):
        return False
    return now == then if isinstance(then, _immutable) or _is_called(then) else True


def _text(name: str, then, now) -> str:
    return f"the attribute `{name}` is {now!r:.80}; it was {then!r:.80} when traced"
