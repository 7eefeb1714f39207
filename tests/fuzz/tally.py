"""What a run consisted of, so that its reader knows what was tried."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from program import Program

_VIEWING = (
    *(
        "view",
        "reshape",
        "transpose",
        "permute",
        "expand",
        "slice",
        "split",
        "chunk",
        "unbind",
        "diagonal",
        "unfold",
        "select",
    ),
    *(
        "as_strided",
        "squeeze",
        "narrow",
        ".mT",
        ".T",
        ".t()",
        "movedim",
        "swapaxes",
        "flatten",
        "[...",
        "[1:]",
        "[:1]",
        "[:-1]",
        "[0]",
    ),
)


def writes(template: str) -> bool:
    return "_(" in template or any(w in template for w in ("setattr(s", "__setitem__", "inplace=True", "out="))


@dataclass
class Tally:
    programs: int = 0
    right: int = 0
    lengths: list[int] = field(default_factory=list)
    with_views: int = 0
    with_writes: int = 0
    with_either: int = 0
    templates: Counter = field(default_factory=Counter)
    changes: Counter = field(default_factory=Counter)
    kinds: Counter = field(default_factory=Counter)
    exact: int = 0
    kernels: Counter = field(default_factory=Counter)  # how many kernels: how many programs

    def take(self, p: Program) -> None:
        self.programs += 1
        self.lengths.append(len(p.steps))
        views = any(any(w in s[1] for w in _VIEWING) for s in p.steps)
        wrote = any(writes(s[1]) for s in p.steps)
        self.with_views += views
        self.with_writes += wrote
        self.with_either += views or wrote
        self.templates.update(s[1] for s in p.steps)
        self.changes.update(c["kind"] for c in p.changes)

    def add(self, other: Tally) -> None:
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))

    def text(self) -> str:
        n = max(self.programs, 1)
        lengths = sorted(self.lengths) or [0]
        lines = [
            f"{self.programs} programs: {self.right} right, {sum(self.kinds.values())} wrong, refused or undefined",
            f"ops: median {lengths[len(lengths) // 2]}, {lengths[0]} to {lengths[-1]}; {len(self.templates)} different",
            f"with views {self.with_views / n:.0%}, with writes {self.with_writes / n:.0%}, either {self.with_either / n:.0%}",
            f"computed by the traced nodes, so held to eager bit for bit: {self.exact / n:.0%}",
            f"changes between calls: {sum(self.changes.values())} of {len(self.changes)} kinds",
        ]
        if self.kernels:
            placed = sum(c for k, c in self.kernels.items() if k)
            several = sum(c for k, c in self.kernels.items() if k > 1)
            lines.append(f"with kernels {placed}, of these {several / max(placed, 1):.0%} with two or more")
        return "\n".join(lines + [f"{count:6} {kind}" for kind, count in self.kinds.most_common()])
