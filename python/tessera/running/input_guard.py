"""The arguments of a call: bound to the form that was traced, and held against what was traced."""

from __future__ import annotations

import inspect

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.running.extension import TensorType, input_alignment
from tessera.running.guards import Miss
from tessera.running.keywords import ordered
from tessera.running.plain_tensors import is_plain, kind_of
from tessera.running.same_value import same_value

_plain = (type(None), bool, int, float, str)
_classes = (torch.Tensor, nn.Parameter)


class InputGuard:
    """The traced user inputs; `devices`: where each lies; `offsets`: where in its storage, if that matters. `signature` binds keyword and
    positional spellings of a call to one form. `example`: the traced call, whose tensors are of the class that a call's have to be of."""

    def __init__(
        self,
        names: list[str],
        types: list[TensorType],
        devices: list[torch.device],
        offsets: list[int | None],
        aliased: frozenset[int],
        signature: inspect.Signature | None,
        example: tuple | None,
    ):
        self.names, self.types, self.aliased, self.signature = names, types, aliased, signature
        self.count = len(types)
        self.spec, self.constants = None, None
        classes: list[type | None] = [None] * self.count
        # By (how many are positional, names of the others): places of tensors, and what the others were (`_remember`).
        self.forms: dict[tuple, tuple[list[int], list[tuple[int, object]]]] = {}
        self.simple = True  # a call with exactly `count` positional tensors, and defaults for the rest
        if example is not None:
            leaves, self.spec = pytree.tree_flatten(self._normal(*example))
            self.constants = [None if isinstance(x, torch.Tensor) else (i, x) for i, x in enumerate(leaves)]
            self.simple = (
                len(example[0]) == self.count
                and not example[1]
                and all(isinstance(x, torch.Tensor) for x in example[0])
            )
            found = [type(x) for x in leaves if isinstance(x, torch.Tensor)]
            if len(found) == self.count:
                classes = [c if c in _classes else None for c in found]
        # `classes`: torch.Tensor, nn.Parameter, or None where either will do.
        self.checks = [
            (c, t.shape, t.strides, t.dtype, d, o) for c, t, d, o in zip(classes, types, devices, offsets, strict=True)
        ]

    def _normal(self, args: tuple, kwargs: dict):
        if self.signature is None:
            return args, ordered(None, kwargs)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, ordered(self.signature, bound.kwargs)

    def tensors(self, args: tuple, kwargs: dict) -> list | Miss:
        """The tensors of a call in the order of the traced user inputs."""
        if self.simple and not kwargs and len(args) == self.count:
            return list(args)
        form = self.forms.get((len(args), *kwargs))
        if form is not None:
            given = (*args, *kwargs.values())
            if all(same_value(x, given[i]) for i, x in form[1]):
                return [given[i] for i in form[0]]
        found = self._bound(args, kwargs)
        if type(found) is list:
            self._remember(args, kwargs, found)
        return found

    def _remember(self, args: tuple, kwargs: dict, found: list) -> None:
        """Calls of this form need no binding, where every argument is a tensor or a plain value."""
        given = (*args, *kwargs.values())
        tensors = [i for i, x in enumerate(given) if isinstance(x, torch.Tensor)]
        others = [(i, x) for i, x in enumerate(given) if not isinstance(x, torch.Tensor)]
        places = {id(given[i]): i for i in tensors}
        if len(places) == len(found) == len(tensors) and all(type(x) in _plain for _, x in others):
            self.forms[(len(args), *kwargs)] = [places[id(x)] for x in found], others

    def _bound(self, args: tuple, kwargs: dict) -> list | Miss:
        try:
            leaves, spec = pytree.tree_flatten(self._normal(args, kwargs))
        except TypeError as e:
            return Miss("structure", f"the arguments do not fit forward(): {e}")
        if self.spec is None:
            found = [x for x in leaves if isinstance(x, torch.Tensor)]
            if len(found) != self.count or any(x is not None and not isinstance(x, torch.Tensor) for x in leaves):
                return Miss("structure", f"{self.count} tensors were traced; the call has {len(found)} and others")
            return found
        if spec != self.spec:
            return Miss("structure", "the arguments are nested or named differently than traced")
        found = []
        for x, constant in zip(leaves, self.constants, strict=True):
            if constant is None:
                found.append(x)
            elif not same_value(constant[1], x):
                return Miss("structure", f"argument {constant[0]} was {constant[1]!r} when traced and is now {x!r}")
        return found

    def check(self, tensors: list) -> Miss | list[int] | None:
        """None; a Miss; or the indices of inputs that are as traced, but for an address that kernels cannot read."""
        unaligned = None
        for i, (x, (_, shape, strides, dtype, device, offset)) in enumerate(zip(tensors, self.checks)):
            if type(x) not in _classes:
                return self._strange(i, x)
            if x.__dict__ and (own := _attributes_of(x)):
                return Miss("attribute", f"input `{self.names[i]}` has attributes, which no trace sees: {own}")
            if x.device != device:
                return Miss("device", f"input `{self.names[i]}` is on {x.device}; traced on {device}")
            if not is_plain(x):
                return Miss("layout", f"input `{self.names[i]}` is {kind_of(x)}")
            if x.shape != shape:
                return Miss("shape", f"input `{self.names[i]}` has shape {list(x.shape)}; traced with {list(shape)}")
            if x.dtype is not dtype:
                return Miss("dtype", f"input `{self.names[i]}` is {x.dtype}; traced as {dtype}")
            if x.stride() != strides:
                return Miss(
                    "layout", f"input `{self.names[i]}` has strides {list(x.stride())}; traced with {list(strides)}"
                )
            if offset is not None and x.storage_offset() != offset:
                return Miss("layout", f"input `{self.names[i]}` begins elsewhere in its storage; traced at {offset}")
            if x.data_ptr() % input_alignment:
                if i in self.aliased:
                    return Miss(
                        "aliased address",
                        f"input `{self.names[i]}` has an unaligned address, and forward writes to it or an output may "
                        "share its memory",
                    )
                unaligned = [*(unaligned or ()), i]
        return unaligned

    def of_class(self, tensors: list) -> Miss | None:
        """A parameter where a plain tensor was traced, or the other way round. Asked of who is not another of the module's own."""
        for name, x, (kind, *_) in zip(self.names, tensors, self.checks):
            if kind is not None and type(x) is not kind:
                return Miss("subclass", f"input `{name}` is a {type(x).__name__}; traced as a {kind.__name__}")
        return None

    def form(self, args: tuple, kwargs: dict) -> tuple[list[int], list[tuple[int, object]]] | None:
        """Of calls of this form: places of the tensors, and what the others are; None where that is not known."""
        if self.simple and not kwargs and len(args) == self.count:
            return list(range(self.count)), []
        return self.forms.get((len(args), *kwargs))

    def _strange(self, i: int, x) -> Miss:
        if isinstance(x, torch.Tensor):
            return Miss("subclass", f"input `{self.names[i]}` is a {type(x).__name__}")
        return Miss("structure", f"input `{self.names[i]}` is a {type(x).__name__}, not a tensor")

    def check_symbolic(self, tensors: list) -> bool:
        """The same while torch.compile or torch.export traces the call: their own guards hold it from there on."""
        for x, (kind, shape, strides, dtype, device, offset) in zip(tensors, self.checks):
            if not isinstance(x, torch.Tensor) or (
                kind is not None and isinstance(x, nn.Parameter) is not (kind is nn.Parameter)
            ):
                return False
            if tuple(x.shape) != shape or x.dtype != dtype or x.device != device or x.stride() != strides:
                return False
            if offset is not None and x.storage_offset() != offset:
                return False
        return True


def _attributes_of(x: torch.Tensor) -> str:
    """The names of what was set on a tensor, but for the notes that Dynamo leaves on it."""
    return ", ".join(f"`{name}`" for name in x.__dict__ if not str(name).startswith("_dynamo_"))
