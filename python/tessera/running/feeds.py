"""What a composed module's graph reads besides its inputs: parameters, buffers, what is packed from them, and neighbours as
one. It is renewed where a guard says that one of them has changed.

CUDA graphs of Inductor's read these where they lie, and are recorded anew where one lies elsewhere. So what has to be made in
every call is made in the same memory.
"""

from __future__ import annotations

import threading

import torch

from tessera.running import neighbours
from tessera.running.extension import input_alignment
from tessera.running.guards import Events, Miss
from tessera.running.leftover import Inductor
from tessera.running.plan_graph import Built
from tessera.running.state_guard import StateGuard


class Counts:
    """Outside nn.Module, whose attributes take a microsecond to set."""

    __slots__ = ("apart", "calls", "repacks")

    def __init__(self):
        self.clear()

    def clear(self) -> None:
        self.calls = self.repacks = self.apart = 0


class Feeds:
    """`inputs`: how many come before. `runner`: what runs the graph."""

    def __init__(self, built: Built, state: StateGuard, events: Events, counts: Counts, inputs: int, runner):
        self.built, self.state, self.events, self.counts, self.inputs = built, state, events, counts, inputs
        self.names = built.feeds[inputs:]
        # The tensors in the order of `names`, and the neighbours that could not be made: (place, value). One tuple, for a
        # thread that calls the module must not see one of them renewed and the other not.
        self.now: tuple[list, list[tuple[int, str]]] = ([], [])
        self.packed: dict[str, torch.Tensor] = {}
        self._wholes: list[torch.Tensor] = []  # over neighbours
        self._graphs = runner if isinstance(runner, Inductor) and runner.graphs else None
        self.rooms: dict | None = None if self._graphs is None else {}  # by place, for what is made in every call
        self._lock = threading.Lock()  # of renewing: threads may call one module

    def look(self) -> Miss | None:
        """Renews what has changed since the last look."""
        if self.state.check():
            return None
        with self._lock:
            return None if self.state.check() else self._renew()

    def _renew(self) -> Miss | None:
        """Takes over changed parameters and buffers; makes kept values when one of their sources changed."""
        first = not self.state.stamp
        result = self.state.renew()
        if type(result) is Miss:
            return result
        stale, what = result
        if self.built.pack is not None and (stale or first or self.state.volatile):
            if not first:
                self.counts.repacks += 1
            if stale and not first:
                self.events.add(
                    Miss("repack", f"`{what}` changed"), "what was packed from it is packed again", right=True
                )
            self._pack()
        tensors = {s.value: s.tensor for s in self.state.slots} | self.packed | self._join()
        now = [tensors.get(n) for n in self.names]
        if self._graphs is not None:
            self._graphs.keep(
                tuple(i for i, t in enumerate(now, self.inputs) if t is None or t.data_ptr() % input_alignment == 0)
            )
        self.now = now, [(i, n) for i, n in enumerate(self.names) if n not in tensors]
        self.state.commit()
        return None

    def _pack(self) -> None:
        tensors = {s.value: s.tensor for s in self.state.slots}
        with torch.no_grad():
            made = self.built.pack(*[tensors[n] for n in self.built.pack_feeds])
        self.packed = dict(zip(self.built.packed, made, strict=True))

    def _join(self) -> dict[str, torch.Tensor]:
        """The neighbours that are, or can be made. The others are concatenated in every call."""
        slots = {s.value: s for s in self.state.slots}
        joined = {}
        for value, names in self.built.neighbours.items():
            whole = neighbours.adopt([slots[name].tensor for name in names], given_up=self._wholes)
            if whole is not None:
                joined[value] = whole
            else:
                self.events.add(
                    Miss("apart", f"{', '.join(f'`{slots[n].key}`' for n in names)} cannot lie in one allocation"),
                    "they are concatenated in every call",
                    right=True,
                )
        self._wholes = list(joined.values())
        return joined

    def joined(self) -> list[torch.Tensor]:
        """`now`, with what has to be concatenated anew. From time to time it is tried again whether it has to."""
        tries = self.counts.apart = self.counts.apart + 1
        if tries & (tries - 1) == 0:
            with self._lock:
                miss = self._renew()
            if miss is None and not self.now[1]:
                return self.now[0]
        slots = {s.value: s.tensor for s in self.state.slots}
        rest, apart = list(self.now[0]), self.now[1]
        for i, value in apart:
            rest[i] = neighbours.concatenated(
                [slots[name] for name in self.built.neighbours[value]], self.rooms, self.inputs + i
            )
        return rest
