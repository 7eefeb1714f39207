"""Under which names a module holds its parameters, buffers and submodules, and in which order: which tensors are one, which are
missing, and what those are that no graph reads.

A graph has one value for a tensor of several names, and none for a parameter of which forward reads the shape alone.
"""

from __future__ import annotations

import operator
from itertools import chain

import torch
from torch import nn

from tessera.common.module_state import owner_of


class NamesOfState:
    """`read`: (identity of the dictionary, key) of what the graph reads, which others look at. `tied`: names of what was one tensor
    when the module was traced."""

    def __init__(self, module: nn.Module, read: set[tuple[int, str]], tied: list[list[str]] = ()):
        self._dicts: list[tuple[str, dict]] = []
        for path, m in module.named_modules():
            self._dicts += [(f"{path}.".lstrip("."), own) for own in (m._parameters, m._buffers)]
        children = [m._modules for m in module.modules()]
        self._submodules, self.childless = [own for own in children if own], [own for own in children if not own]
        self._children = self._named_children()
        self.dictionaries = [own for _, own in self._dicts]
        self._read = read
        self._kinds = {name: self._kind(own, key) for name, own, key in self._all()}
        self._tied = self._groups()
        for names in tied:
            places = [owner_of(module, n) for n in names]
            self._tied.append([(n, p[1], p[2]) for n, p in zip(names, places, strict=True) if p is not None])
        self._remember()

    def _all(self) -> list[tuple[str, dict, str]]:
        return [(path + key, own, key) for path, own in self._dicts for key in own]

    def _named_children(self) -> tuple[list[list[str]], list[int]]:
        """The names of who has some, and the identities of all of them."""
        return list(map(list, self._submodules)), [id(m) for own in self._submodules for m in own.values()]

    def _kind(self, own: dict, key: str) -> tuple | None:
        """What has to stay: that it is there, and of what the graph does not read, what it is."""
        t = own[key]
        if t is None or (id(own), key) in self._read:
            return None if t is None else ()
        shape = (tuple(t.shape), t.stride()) if t.layout == torch.strided and not t.is_nested else ()
        return type(t), t.dtype, t.device, t.layout, shape

    def _groups(self) -> list[list[tuple[str, dict, str]]]:
        groups: dict[int, list] = {}
        for name, own, key in self._all():
            if own[key] is not None:
                groups.setdefault(id(own[key]), []).append((name, own, key))
        return [g for g in groups.values() if len(g) > 1]

    def _remember(self) -> None:
        self._lists = [own for _, own in self._dicts if own]
        self.then = list(chain.from_iterable(map(dict.values, self._lists)))
        self._keys, self._of_children = list(chain.from_iterable(self._lists)), list(map(list, self._submodules))
        # By identity, the names that a tensor has.
        self.held: dict[int, tuple[str, ...]] = {}
        for name, own, key in self._all():
            if own[key] is not None:
                self.held[id(own[key])] = (*self.held.get(id(own[key]), ()), name)
        self.lengths = list(map(len, self.dictionaries))

    def unchanged(self) -> bool:
        now = chain.from_iterable(map(dict.values, self._lists))
        return (
            not any(self.childless)
            and list(map(len, self.dictionaries)) == self.lengths
            and all(map(operator.is_, now, self.then))
            and list(chain.from_iterable(self._lists)) == self._keys
            and list(map(list, self._submodules)) == self._of_children
        )

    def by_name(self) -> dict[str, torch.Tensor]:
        return {name: own[key] for name, own, key in self._all() if own[key] is not None}

    def changed(self) -> str | None:
        """What to say of another name, or of one that stands for something else; None where the graph can be fed."""
        now = {name: self._kind(own, key) for name, own, key in self._all()}
        for name in now.keys() ^ self._kinds.keys():
            return f"`{name}` was {'added' if name in now else 'removed'}"
        if list(now) != list(self._kinds):
            return "parameters or buffers are in another order than when traced"
        names, children = self._named_children()
        if any(self.childless) or (names != self._children[0] and children == self._children[1]):
            return "submodules have other names than when traced, or a module without any has got some"
        for name, kind in now.items():
            if kind != self._kinds[name]:
                return f"`{name}` is not what it was when traced"
        for group in self._tied:
            if len({id(own.get(key)) for _, own, key in group}) > 1:
                return f"{', '.join(f'`{n}`' for n, _, _ in group)} are not one tensor any more"
        self._remember()
        return None
