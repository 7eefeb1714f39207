"""Whether a composed module stands in for the original in a call: all guards, asked in one go.

What they expect is handed to the extension (guards.cpp), which compares it with what is there in a microsecond or two. Where
anything is another object than before it answers nothing, and the guards look closely: they say what is wrong, or take over what
has changed and does not matter.
"""

from __future__ import annotations

from collections.abc import Callable

from tessera.common.laid import cloned
from tessera.running import fast_guard
from tessera.running.feeds import Feeds
from tessera.running.guards import Events, Miss
from tessera.running.input_guard import InputGuard
from tessera.running.memory_guard import MemoryGuard
from tessera.running.state_guard import StateGuard


class CallGuard:
    def __init__(self, inputs: InputGuard, memory: MemoryGuard, state: StateGuard, feeds: Feeds, events: Events):
        self.inputs, self.memory, self.state, self.feeds, self.events = inputs, memory, state, feeds, events
        self._fast: Callable | None = None

    def __call__(self, args: tuple, kwargs: dict) -> list | Miss:
        """The tensors that the graph takes before `feeds.now`, or why the original has to run."""
        fast = self._fast
        if fast is not None:
            if (tensors := fast(args, kwargs)) is not None:
                return tensors
            # Tensors in lists and dictionaries are found by Python.
            found = self.inputs.tensors(args, kwargs) if self.inputs.form(args, kwargs) is None else None
            if type(found) is list and (tensors := fast(tuple(found), None)) is not None:
                return tensors
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
        state, before = self.state, self.feeds.now
        miss = self.feeds.look()
        if self.feeds.now is not before:
            self._fast = None  # it knows of what was fed before, and may pass again once a change is undone
        miss = (
            miss
            or self.memory.identity(tensors, state.names.held)
            or self.inputs.of_class(tensors)
            or self.memory.overlap(tensors, [(s.value, s.source) for s in state.held])
            or state.modes(tensors)
        )
        if miss is not None:
            return miss
        if unaligned is not None:
            return self._aligned(tensors, unaligned)
        if not state.volatile:
            self._fast = fast_guard.prepared(self.inputs, self.memory, state)  # calls like this one need no closer look
        return tensors

    def _aligned(self, tensors: list, which: list[int]) -> list:
        for i in which:
            self.events.add(
                Miss("alignment", f"input `{self.inputs.names[i]}` has an address that kernels cannot read"),
                "it is copied on every call",
            )
            tensors[i] = cloned(tensors[i])
        return tensors
