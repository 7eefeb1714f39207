"""Plain attributes of a module and its submodules, on whose values the trace depends: numbers, flags, names, and lists of
them; also those of the objects that modules hold, as configurations.

`Attributes.changed` compares them on every call. torch.nn's own bookkeeping is left out, and so is what a layer derives from
its parameters' shapes.
"""

from __future__ import annotations

import enum
import operator

import torch
from torch import nn

_immutable = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size, enum.Enum)
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


def _objects_of(module: nn.Module) -> dict[int, tuple[dict, str]]:
    """By identity: the attribute dictionaries of all modules and of the plain objects they hold, with a name for people."""
    found: dict[int, tuple[dict, str]] = {}
    for path, m in module.named_modules():
        found[id(m.__dict__)] = (m.__dict__, path)
        for key, value in m.__dict__.items():
            own = getattr(value, "__dict__", None)
            is_other = isinstance(value, (nn.Module, torch.Tensor, type)) or callable(value)
            if key not in _bookkeeping and type(own) is dict and not is_other:
                found.setdefault(id(own), (own, f"{path}.{key}".lstrip(".")))
    return found


class Attributes:
    """The plain attributes as they are now."""

    def __init__(self, module: nn.Module):
        skip = {id(m.__dict__): _by_shape.get(type(m), set()) for m in module.modules()}
        self._fixed: tuple[list, list, list] = ([], [], [])  # dictionaries, keys, values: compared by identity first
        self._mutable: list[tuple[dict, str, object]] = []  # lists and dicts, whose content may change in place
        self._names: list[str] = []
        for own, path in _objects_of(module).values():
            for key, value in own.items():
                if key in _bookkeeping or key in skip.get(id(own), ()) or not _is_plain(value):
                    continue
                if isinstance(value, _immutable):
                    for column, x in zip(self._fixed, (own, key, value), strict=True):
                        column.append(x)
                    self._names.append(f"{path}.{key}".lstrip("."))
                else:
                    self._mutable.append((own, key, _copy(value)))

    def changed(self) -> str | None:
        """What to say of the first attribute that has another value now, or None."""
        owners, keys, values = self._fixed
        try:
            if not all(map(operator.is_, map(operator.getitem, owners, keys), values)):
                return self._closely()
            for own, key, value in self._mutable:
                if own[key] != value:
                    return _text(key, value, own[key])
        except KeyError as e:
            return _text(e.args[0], "there", "gone")
        return None

    def _closely(self) -> str | None:
        owners, keys, values = self._fixed
        for i, (own, key, value) in enumerate(zip(owners, keys, values, strict=True)):
            now = own[key]
            if now is value:
                continue
            if type(now) is not type(value) or now != value:
                return _text(self._names[i], value, now)
            values[i] = now  # the same value, another object
        return None


def _text(name: str, then, now) -> str:
    return f"the attribute `{name}` is {now!r:.80}; it was {then!r:.80} when traced"
