"""What is said where a composed module does not stand in for the original in a call, and how it is counted.

What must hold is in input_guard.py (the arguments), memory_guard.py (which tensors are one, and whose memory overlaps),
state_guard.py (parameters, buffers, submodules, flags), surroundings.py (torch's settings), attributes.py and code_reads.py (what
forward reads in Python). call_guard.py asks them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Miss:
    """Why the original runs instead. `kind` is what is counted; `text` says what was met."""

    kind: str
    text: str


def _outside() -> int:
    """The stack level, for warnings.warn in the caller, of the first frame outside tessera and torch."""
    frame, level = sys._getframe(2), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("tessera", "torch"):
        frame, level = frame.f_back, level + 1
    return level


class Events:
    """Counts by kind, with the latest text; warns once for each kind, or calls `refuse` every time (strict)."""

    def __init__(self, refuse: Callable[[Miss], None] | None):
        self.counts: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.refuse = refuse

    def clear(self) -> None:
        self.counts.clear()
        self.texts.clear()

    def add(self, miss: Miss, then: str, right: bool = False) -> None:
        """`right`: nothing was lost by it, so strict does not refuse."""
        if self.refuse is not None and not right:
            self.refuse(miss)
        seen = self.counts.get(miss.kind, 0)
        self.counts[miss.kind] = seen + 1
        self.texts[miss.kind] = miss.text
        if not seen:
            warnings.warn(f"tessera: {miss.text}; {then} (warned once; status() counts)", stacklevel=_outside())

    def to_list(self) -> list[dict]:
        return [{"kind": kind, "count": n, "reason": self.texts[kind]} for kind, n in self.counts.items()]
