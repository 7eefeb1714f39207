"""Which arguments of a call are one object, which of them are the module's own parameters or buffers, and whose memory overlaps: as it
was when the module was traced.

The trace says it in its graph's meta as `memory` (docs/protocol.md). Without it nothing is known, and nothing is asked. Memory
that is written to may be no other tensor's: the ranges of addresses are compared, so that tensors whose elements lie between
each other's count as overlapping.
"""

from __future__ import annotations

import torch

from tessera.common.laid import overlaps_itself, reach
from tessera.running.guards import Miss


def range_of(t: torch.Tensor) -> tuple[int, int]:
    """Addresses of the first byte and behind the last one; both 0 where it has none."""
    if t.numel() == 0:
        return 0, 0
    begin = t.data_ptr()
    return begin, begin + reach(t.shape, t.stride()) * t.itemsize


class MemoryGuard:
    """`names`: of the user inputs. `types`: theirs, with shape and strides. `record`: the trace's, or None."""

    def __init__(self, names: list[str], types: list, record: dict | None):
        self.names, self.known, record = names, record is not None, record or {}
        place = {name: i for i, name in enumerate(names)}
        # By input: the first one that it is the same object as, and the name of the parameter or buffer that it is.
        self.first = list(range(len(names)))
        self.of_state: dict[int, str] = {}
        self.tied: list[list[str]] = []  # parameters and buffers that were one object
        for group in record.get("same", ()):
            inputs = sorted(place[n] for n in group if n in place)
            held = [n.partition(":")[2] for n in group if n not in place]
            for i in inputs:
                self.first[i] = inputs[0]
            if inputs and held:
                self.of_state |= dict.fromkeys(inputs, held[0])
            self.tied.append(held)
        written = set(record.get("written", ()))
        self.written = [n in written for n in names]
        self.written_state = written - set(names)
        self.writes = bool(written)
        self.self_overlapping = next(
            (
                n
                for n, t, w in zip(names, types, self.written, strict=True)
                if w and overlaps_itself(t.shape, t.strides)
            ),
            None,
        )

    def identity(self, tensors: list, held: dict[int, tuple[str, ...]]) -> Miss | None:
        """`held`: by identity, the names of the module's parameters and buffers."""
        if not self.known:
            return None
        seen: dict[int, int] = {}
        for i, x in enumerate(tensors):
            first = seen.setdefault(id(x), i)
            if first != self.first[i]:
                return self._of_inputs(i, first)
            names, then = held.get(id(x), ()), self.of_state.get(i)
            if then not in names if then else names:
                return Miss(
                    "identity",
                    f"input `{self.names[i]}` is {f'the module`s own `{names[0]}`' if names else 'no tensor of the module'}; "
                    f"it was {f'its `{then}`' if then else 'none of its tensors'} when traced",
                )
        return None

    def _of_inputs(self, i: int, first: int) -> Miss:
        then = self.first[i]
        if first < i:
            return Miss(
                "identity",
                f"inputs `{self.names[first]}` and `{self.names[i]}` are one tensor; they were two when traced",
            )
        return Miss(
            "identity", f"inputs `{self.names[then]}` and `{self.names[i]}` are two tensors; they were one when traced"
        )

    def overlap(self, tensors: list, state: list[tuple[str, torch.Tensor]]) -> Miss | None:
        """`state`: what the graph reads of the module, by the names of values."""
        if not self.writes:
            return None
        if self.self_overlapping is not None:
            return Miss("overlap", f"forward writes to `{self.self_overlapping}`, whose elements share memory")
        rows = [(n, x, self.written[i]) for i, (n, x) in enumerate(zip(self.names, tensors)) if self.first[i] == i] + [
            (n, t, n in self.written_state) for n, t in state
        ]
        ranges = [range_of(x) for _, x, _ in rows]
        for (name, x, written), (begin, end) in zip(rows, ranges):
            if not written:
                continue
            if overlaps_itself(x.shape, x.stride()):
                return Miss("overlap", f"forward writes to `{name}`, whose elements share memory")
            for (other, _, _), (first, last) in zip(rows, ranges):
                if other != name and begin < last and first < end:
                    return Miss("overlap", f"forward writes to `{name}`, and `{other}` lies in the same memory")
        return None
