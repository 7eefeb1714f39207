"""The road with kernels: tessera.optimize on the default device, every kernel placed that is right, however slow it is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import torch
from campaign import Campaign
from generator import generate
from program import Program
from road import ROOT  # noqa: F401 - puts the package on the path
from tessera.api import optimize_held
from tessera.tracing.held import hold
from trial import Failure, Together, alone

# Every kernel of ours that is right, nothing stored.
OPTIONS = dict(effort="quick", only="synthesized", place_all=True, leftover="eager", use_registry=False, progress=False)
_SECONDS = {"cpu": 8.0, "cuda": 60.0}
_TOGETHER = 12


class Placed:
    """As road.Way; what kernels compute is never held to eager bit for bit."""

    def __init__(self, module: torch.nn.Module, args: list, seconds: float | None = None):
        with torch.no_grad():
            self.composed = optimize_held(
                hold(module, tuple(args), {}),
                seconds=seconds or _SECONDS[torch.get_default_device().type],
                **OPTIONS,
            )

    def exact(self, first: int, count: int, targets: str) -> str:
        return "product"

    def kernels(self) -> Counter:
        """How many kernels run in each program (by its place; 0 where there is one program)."""
        if getattr(self.composed, "plan", None) is None:
            return Counter()
        plan, active = self.composed.plan, {p.id for p in self.composed._built.patterns if p.active}
        modules = {n["name"]: n.get("module", "") for n in plan["graph"]["nodes"]}
        placed: Counter = Counter()
        for pattern in (step["pattern"] for step in plan["steps"] if step["kind"] == "kernel"):
            if pattern["id"] in active:
                found = [re.match(r"programs\.(\d+)", modules.get(n, "")) for n in pattern["computing"]]
                placed[next((int(m[1]) for m in found if m), 0)] += 1
        return placed


def with_kernels(p: Program) -> Failure | None:
    return alone(p, Placed, "kernels")


@dataclass
class KernelCampaign(Campaign):
    size: int = _TOGETHER
    trial = staticmethod(with_kernels)

    def drawn(self, seed: int) -> Program:
        """Mostly what kernels are made for."""
        return generate(seed, ("kernels", "kernels", "layers", "kernels", "memory")[seed % 5], stay=0.0)

    def tried(self, programs: list[Program]) -> set[int]:
        together = Together(programs, Placed)
        placed = together.way.kernels()
        for i in range(len(programs)):
            self.tally.kernels[placed[i]] += 1
        return together.run()
