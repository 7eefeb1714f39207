"""Plain attributes of a module and its submodules, on whose values the trace depends; also those of the objects that modules hold,
as configurations, and the tensors of the graph that lie in such objects and in lists.

torch.nn's own bookkeeping is left out, and so is what a layer derives from its parameters' shapes.
"""

from __future__ import annotations

from collections.abc import Set

import torch
from torch import nn

from tessera.running.plain_places import NONE, Loose, Places, Reading, add_object, is_called, is_object, kind_of_place

bookkeeping = frozenset(nn.Module().__dict__) | {"_is_full_backward_hook", "_compiled_call_impl"}
_by_shape = {
    nn.Linear: {"in_features", "out_features"},
    nn.Embedding: {"num_embeddings", "embedding_dim", "padding_idx", "scale_grad_by_freq", "sparse"},
    nn.LayerNorm: {"elementwise_affine"},
}


def objects_of(module: nn.Module) -> dict[int, tuple[object, dict, str]]:
    """By identity of their attribute dictionaries: all modules, the plain objects they hold, and what those hold if it is data
    throughout; the dictionaries, and a name for people."""
    found: dict[int, tuple[object, dict, str]] = {}
    for path, m in module.named_modules():
        found[id(m.__dict__)] = (m, m.__dict__, path)
        for key, value in m.__dict__.items():
            if key not in bookkeeping and is_object(value):
                add_object(found, value, f"{path}.{key}".lstrip("."))
    return found


class Attributes(Reading):
    """The plain attributes as they are now. `loaded`: names that the user's own code asks for."""

    def __init__(self, module: nn.Module, loose: Loose = NONE, loaded: Set[str] = frozenset()):
        super().__init__(lambda: _look(module, loose, loaded), "the attribute")


def _look(module: nn.Module, loose: Loose, loaded: Set[str]) -> Places:
    places = Places(loose)
    skip = {id(m.__dict__): _by_shape.get(type(m), set()) - loaded for m in module.modules()}
    objects = objects_of(module)
    for holder, own, path in objects.values():
        for key, value in own.items():
            if key in bookkeeping or key in skip.get(id(own), ()):
                continue
            name = f"{path}.{key}".lstrip(".")
            if is_object(value) and id(value.__dict__) in objects:
                places.keep(own, key, value, name, None if is_called(value) else type(value))
            elif is_called(value):
                places.keep(own, key, value, name)
            elif isinstance(value, torch.Tensor) and isinstance(holder, nn.Module):
                places.keep(own, key, value, name, kind_of_place(value))
            else:
                places.add(own, key, value, name)
    return places
