"""Whether a composed module stands in for the original in a call: all guards, asked in one go.

They say what is wrong, or take over what has changed and does not matter.
"""

from __future__ import annotations

from tessera.running.feeds import Feeds
from tessera.running.guards import Events, Miss
from tessera.running.input_guard import InputGuard
from tessera.running.memory_guard import MemoryGuard
from tessera.running.state_guard import StateGuard


class CallGuard:
    def __init__(self, inputs: InputGuard, memory: MemoryGuard, state: StateGuard, feeds: Feeds, events: Events):
        self.inputs, self.memory, self.state, self.feeds, self.events = inputs, memory, state, feeds, events

    def __call__(self, args: tuple, kwargs: dict) -> list | Miss:
        """The tensors that the graph takes before `feeds.now`, or why the original has to run."""
        return self.closely(args, kwargs)

    def closely(self, args: tuple, kwargs: dict) -> list | Miss:
        # Before all that asks where a tensor lies.
        if (miss := self.state.surroundings.changed("transform")) is not None:
            return miss
        tensors = self.inputs.tensors(args, kwargs)
        if type(tensors) is Miss:
            return tensors
        unaligned = self.inputs.check(tensors)
        if type(unaligned) is Miss:
            return unaligned
        state = self.state
        miss = (
            self.feeds.look()
            or self.memory.identity(tensors, state.names.held)
            or self.memory.overlap(tensors, [(s.value, s.source) for s in state.held])
            or state.modes(tensors)
        )
        if miss is not None:
            return miss
        return tensors if unaligned is None else self._aligned(tensors, unaligned)

    def _aligned(self, tensors: list, which: list[int]) -> list:
        for i in which:
            self.events.add(
                Miss("alignment", f"input `{self.inputs.names[i]}` has an address that kernels cannot read"),
                "it is copied on every call",
            )
            tensors[i] = self.inputs.types[i].empty(tensors[i].device).copy_(tensors[i])
        return tensors
