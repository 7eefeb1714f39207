"""What a module changes in place, and how one call of many leaves it for the next as the first call found it.

Integers alone are set back: the length of a cache, a position, a counter. They index other tensors, and after a hundred calls that
count on from one another they would point behind the end of them, which ends the process on a CPU and spoils the device on a GPU.
Contents may drift, for no time depends on them, and caches are too large to be set back in every call.
"""

from __future__ import annotations

import torch

from tessera.tracing.held import Held


def changed_in_place(held: Held) -> tuple[list[str], set[str]]:
    """The buffers, and the inputs by value name, that the module itself changes in place."""
    targets = [m["target"] for m in held.graph.get("mutations", ())]
    return (
        [t for t in targets if not t.startswith("input:")],
        {t.removeprefix("input:") for t in targets if t.startswith("input:")},
    )


class Rewind:
    """Sets back what calls with these inputs count on. Made before the first of them."""

    def __init__(self, held: Held, args: tuple, kwargs: dict):
        buffers, inputs = changed_in_place(held)
        live = dict(held.module.named_buffers())
        given = held.traced.flatten(args, kwargs) if inputs else {}
        changed = [live[name] for name in buffers if name in live] + [t for name, t in given.items() if name in inputs]
        self._live = [t for t in changed if not (t.is_floating_point() or t.is_complex())]
        self._then = [t.detach().clone() for t in self._live]

    def __call__(self) -> None:
        if self._live:
            with torch.no_grad():
                torch._foreach_copy_(self._live, self._then)
