"""The seconds that Inductor may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tessera.tracing.bounded import OutOfTime, within


@dataclass
class Compile:
    """The seconds that Inductor may take for what plans leave to PyTorch, and those that it is expected to take for one. `ends`: one
    that takes longer is given up."""

    seconds: float
    expected: float = 0.0
    ends: bool = False

    def refuses(self) -> str:
        if self.expected <= self.seconds and not (self.ends and self.seconds <= 0):
            return ""
        return f"Inductor would take about {self.expected:.0f} s for it, and {max(0.0, self.seconds):.0f} s of the search are left"

    def took(self, seconds: float) -> None:
        self.seconds -= seconds
        self.expected = seconds

    def run(self, work: Callable[[], None]) -> str:
        """ "", or why the work was given up."""
        if not self.ends:
            work()
            return ""
        try:
            within(max(self.seconds, 0.01), work)
        except OutOfTime:
            reason, self.seconds = f"torch.compile was given up after {self.seconds:.0f} s", 0.0
            return reason
        return ""
