"""The two ways in which a user switches tessera on, and what a row says of what came out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import device as devices
import torch
from torch import nn


@dataclass
class Opened:
    """A module behind a door: how to call it, and what it took to have it called once."""

    way: Callable
    seconds: float
    composed: list = field(default_factory=list)  # of each captured graph its ComposedModule, or None
    report: dict | None = None


def optimize(module: nn.Module, inputs: tuple, device: str, options: dict) -> Opened:
    """tessera.optimize(module, inputs, ...); its first call is not counted: the door returns a callable."""
    import tessera

    begin = time.monotonic()
    fast = tessera.optimize(module, inputs, **options)
    seconds = time.monotonic() - begin
    with torch.no_grad():
        fast(*inputs)
    devices.sync_of(device)()
    return Opened(fast, seconds, [fast], fast.report)


def compile(module: nn.Module, inputs: tuple, device: str, options: dict) -> Opened:
    """torch.compile(module, backend="tessera", options=...), until the first result is there: it compiles in its first
    call. The backend is given as a function, which is what its name stands for, to see what it returns."""
    from tessera.backend import tessera

    returned = []

    def backend(gm, example_inputs, **more):
        returned.append(tessera(gm, example_inputs, **more))
        return returned[-1]

    way = torch.compile(module, backend=backend, options=options)
    seconds = first_call(way, inputs, device)
    composed = [getattr(r, "composed", None) for r in returned]
    return Opened(way, seconds, composed, next((c.report for c in composed if c is not None), None))


def inductor(module: nn.Module, inputs: tuple, device: str, mode: str | None = None) -> Opened:
    """torch.compile(module), until the first result is there."""
    way = torch.compile(module, mode=mode)
    return Opened(way, first_call(way, inputs, device))


def first_call(way: Callable, inputs: tuple, device: str) -> float:
    begin = time.monotonic()
    with torch.no_grad():
        way(*inputs)
    devices.sync_of(device)()
    return time.monotonic() - begin


def state_of(opened: Opened) -> dict:
    """Who runs the module (tessera's kernels, or PyTorch whole) and what no kernel covers, and which kernels; asked for
    after the timed calls, so that calls which fell back show. `kernels`: active ones by kind; `synthesized` are ours."""
    kinds, fallbacks, runners, leftovers = Counter(), Counter(), set(), set()
    calls = served = 0
    for composed in opened.composed:
        if composed is None:
            runners.add("pytorch")
            continue
        status = composed.status()
        kinds.update(p["kind"] for p in status["patterns"] if p["active"])
        for event in status["fallbacks"]:
            fallbacks[event["kind"]] += event["count"]
        runners.add(status.get("runner", "kernels"))
        leftovers.add(status["leftover_by"])
        calls, served = calls + status["calls"], served + status["served"]
    return {
        "runner": "+".join(sorted(runners)) or "none",
        "leftover": "+".join(sorted(leftovers)),
        "graphs": len(opened.composed),
        "kernels": dict(kinds),
        "ours": kinds["synthesized"] > 0,
        "calls": calls,
        "served": served,
        "fallbacks": dict(fallbacks),
    }
