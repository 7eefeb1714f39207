"""The two ways in which a user switches tessera on, and what a row says of what came out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import device as devices
import torch
from torch import nn


@dataclass
class Opened:
    """A module behind a door: how to call it, what it took until it could be called, and what became of its graphs:
    `states()` gives {"runner", "reason", "status"} of each, `status` being None where PyTorch runs it."""

    way: Callable
    seconds: float
    states: Callable[[], list[dict]] = list
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
    return of_composed(fast, seconds)


def of_composed(fast, seconds: float = 0.0) -> Opened:
    why = ((fast.report or {}).get("settled") or {}).get("why", "")

    def states() -> list[dict]:
        status = fast.status()
        return [{"runner": status["runner"], "reason": why, "status": status}]

    return Opened(fast, seconds, states, fast.report)


def compile(module: nn.Module, inputs: tuple, device: str, options: dict) -> Opened:
    """torch.compile(module, backend="tessera", options=...), until the first result is there: it compiles in its first
    call. The backend is given as a function, which is what its name stands for, to have the reports of what it returns."""
    from tessera import backend

    returned = []

    def tessera(gm, example_inputs, **more):
        returned.append(backend.tessera(gm, example_inputs, **more))
        return returned[-1]

    way = torch.compile(module, backend=tessera, options=options)
    seconds = first_call(way, inputs, device)
    if len(backend.status(way)) != len(returned):
        raise RuntimeError(f"{len(returned)} graphs were compiled, {len(backend.status(way))} are known to status()")
    reports = (s["report"] for s in backend.status(way) if s["report"])
    return Opened(way, seconds, lambda: backend.status(way), next(reports, None))


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
    """Who runs the module (`kernels`: a plan of tessera's; else PyTorch whole) and what no kernel covers, and which kernels;
    asked for after the timed calls, so that calls which fell back show. `kernels`: active ones by kind; `synthesized` are
    ours."""
    kinds, fallbacks, leftovers = Counter(), Counter(), set()
    states = opened.states()
    for status in (s["status"] for s in states if s["status"]):
        kinds.update(p["kind"] for p in status["patterns"] if p["active"])
        for event in status["fallbacks"]:
            fallbacks[event["kind"]] += event["count"]
        leftovers.add(status.get("leftover_by", status["runner"]))  # a module in parts has no one
    return {
        "runner": "+".join(sorted({s["runner"] for s in states})),
        "leftover": "+".join(sorted(leftovers)),
        "graphs": len(states),
        "why": "; ".join(s["reason"] for s in states if s["reason"]),
        "kernels": dict(kinds),
        "ours": kinds["synthesized"] > 0,
        "fallbacks": dict(fallbacks),
    }
