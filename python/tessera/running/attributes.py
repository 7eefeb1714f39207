"""Plain attributes of a module and its submodules, on whose values the trace depends: numbers, flags, names, functions, and lists
of them; also those of the objects that modules hold, as configurations, and which tensors of the graph lie in such objects and
in lists.

`Attributes.changed` compares them on every call. torch.nn's own bookkeeping is left out, and so is what a layer derives from
its parameters' shapes.
"""

from __future__ import annotations

import enum
import functools
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
_numbers = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size, enum.Enum)
_immutable = (*_numbers, *_functions)
_longest = 64  # of a list: more is data, and tensors hold data
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
    if type(value) in (list, tuple):
        return len(value) <= _longest and all(map(_is_plain, value))
    if type(value) is dict:
        return len(value) <= _longest and all(map(_is_plain, value.values()))
    return False


def _copy(value):
    if type(value) in (list, tuple):
        return type(value)(map(_copy, value))
    return {k: _copy(v) for k, v in value.items()} if type(value) is dict else value


def _objects_of(module: nn.Module) -> dict[int, tuple[object, dict, str]]:
    """By identity of their attribute dictionaries: all modules and the plain objects they hold, the dictionaries, and a name for
    people."""
    found: dict[int, tuple[object, dict, str]] = {}
    for path, m in module.named_modules():
        found[id(m.__dict__)] = (m, m.__dict__, path)
        for key, value in m.__dict__.items():
            if key not in _bookkeeping and _is_object(value):
                found.setdefault(id(value.__dict__), (value, value.__dict__, f"{path}.{key}".lstrip(".")))
    return found


def _is_object(value) -> bool:
    other = isinstance(value, (nn.Module, torch.Tensor, type)) or callable(value)
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
        for holder, own, path in _objects_of(module).values():
            for key, value in own.items():
                if key in _bookkeeping or key in skip.get(id(own), ()):
                    continue
                name = f"{path}.{key}".lstrip(".")
                if isinstance(value, _immutable) or (isinstance(holder, nn.Module) and _is_object(value)):
                    self._keep(own, key, value, name)
                elif _is_plain(value):
                    self._mutable.append((own, key, _copy(value)))
                elif places and not (isinstance(value, torch.Tensor) and isinstance(holder, nn.Module)):
                    self._keep_tensors(own, key, value, name, places)

    def _keep(self, container, key, value, name: str) -> None:
        for column, x in zip(self._fixed, (container, key, value), strict=True):
            column.append(x)
        self._names.append(name)

    def _keep_tensors(self, container, key, value, name: str, places: set[int]) -> bool:
        """A tensor of the graph, or the list or dict that holds such; whether it is one."""
        if isinstance(value, torch.Tensor):
            found = value.layout == torch.strided and value.data_ptr() in places
        elif type(value) in (list, tuple, dict) and len(value) <= _longest:
            found = False
            for k, v in value.items() if type(value) is dict else enumerate(value):
                found |= self._keep_tensors(value, k, v, f"{name}[{k!r}]", places)
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
    return now == then if isinstance(then, _immutable) else True


def _text(name: str, then, now) -> str:
    return f"the attribute `{name}` is {now!r:.80}; it was {then!r:.80} when traced"
