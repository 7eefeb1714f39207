"""What a module changes in place, and how one call of many leaves it for the next as the first call found it.

Integers alone are set back: the length of a cache, a position, a counter. They index other tensors, and after a hundred calls that
count on from one another they would point behind the end of them, which ends the process on a CPU and spoils the device on a GPU.
Contents may drift, for no time depends on them, and caches are too large to be set back in every call.
"""

from __future__ import annotations

import torch

from tessera.common.module_state import owner_of
from tessera.tracing.held import Held


def effects(held: Held, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """The tensors that a call with these arguments writes to, in the order of the graph's mutations."""
    given = held.traced.flatten(args, kwargs) if held.written_inputs() else {}
    found = []
    for m in held.graph.get("mutations", ()):
        name = m["target"].removeprefix("input:")
        if name != m["target"]:
            found.append(given[name])
        else:
            _, owner, key = owner_of(held.module, name)
            found.append(owner[key])
    return found


class Rewind:
    """Sets back what calls with these inputs count on. Made before the first of them."""

    def __init__(self, held: Held, args: tuple, kwargs: dict):
        self._live = [t for t in effects(held, args, kwargs) if not (t.is_floating_point() or t.is_complex())]
        self._then = [t.detach().clone() for t in self._live]

    def __call__(self) -> None:
        if self._live:
            with torch.no_grad():
                torch._foreach_copy_(self._live, self._then)
