"""Several ways to run one module, measured beside one another in this process: times, CUDA graphs, memory, errors."""

from __future__ import annotations

import functools
from collections.abc import Callable

import accuracy
import device as devices
import torch
from clock import Clock, Figure

PEERS = ("eager", "inductor")
SECONDS = 2.5  # of running time for the synchronized calls of all ways together


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:500]


def times(ways: dict[str, Callable], sets: list[tuple], device: str, seconds: float = SECONDS) -> dict:
    """Figures by mode and way: calls as a user makes them, and on CUDA all as CUDA graphs. `absent`: why a way could not be
    captured."""
    found: dict = {"absent": {}}
    clock = Clock(devices.sync_of(device))
    with torch.no_grad():
        estimates = {name: clock.warm(way, sets) for name, way in ways.items()}
        found["synchronized"] = clock.synchronized(ways, sets, estimates, seconds)
        found["back_to_back"] = clock.back_to_back(ways, sets, estimates)
        if device == "cuda":
            found |= _captured_times(ways, sets, clock, seconds, found["absent"])
    return found


def _captured_times(ways, sets, clock: Clock, seconds: float, absent: dict[str, str]) -> dict:
    static, pool = devices.static_inputs(sets[0]), torch.cuda.graph_pool_handle()
    captured = {}
    for name, way in ways.items():
        try:
            captured[name] = devices.Captured(way, static, pool)
        except Exception as e:
            absent[name] = f"not captured: {first_line(e)}"
            pool = torch.cuda.graph_pool_handle()  # PyTorch gives up a pool whose only graph is gone
    if not captured:
        return {}
    fill = functools.partial(devices.fill, static)
    estimates = {name: clock.warm(way, sets) for name, way in captured.items()}
    return {
        "graph_synchronized": clock.synchronized(captured, sets, estimates, seconds, fill),
        "graph_back_to_back": clock.back_to_back(captured, sets, estimates),
    }


def compared(figures: dict[str, Figure], ours: str, names: tuple[str, ...] = PEERS) -> dict | None:
    """A row's part for one mode: our figure, the peers', and the ratio of the best peer to ours; None without ours."""
    if ours not in figures:
        return None
    part: dict = {"tessera": figures[ours].to_json()}
    peers = {name: figures[name] for name in names if name in figures}
    part |= {name: f.to_json() for name, f in peers.items()}
    best = min(peers, key=lambda name: peers[name].ms, default=None)
    part["best"] = best
    part["ratio"] = peers[best].ms / figures[ours].ms if best else None
    return part


def errors(module, ways: dict[str, Callable], inputs: tuple) -> dict:
    """Errors of every way against fp64, or {"absent": why there are none}."""
    try:
        if accuracy.draws(module, inputs):
            return {"absent": "the forward draws random numbers, which every way draws in its own order"}
        right = accuracy.reference(module, inputs)
    except Exception as e:
        return {"absent": f"no reference in fp64: {first_line(e)}"}
    return accuracy.of_ways(ways, inputs, right)


class Memory:
    """Bytes on the device that each way needs for a call: the module, one set of inputs, what the way keeps beside them
    (packed weights), and what a call needs at most."""

    def __init__(self, module, inputs: tuple, device: str):
        self.on = device == "cuda"
        self.inputs = inputs
        self.module = devices.size_of((*module.parameters(), *module.buffers())) + devices.size_of(inputs)
        self.kept: dict[str, int] = {}
        self._before = devices.settled() if self.on else 0

    def made(self, name: str) -> None:
        """To be called after a way was made and called once: what is allocated now and was not before is what it keeps."""
        if self.on:
            now = devices.settled()
            self.kept[name] = max(0, now - self._before)
            self._before = now

    def figures(self, ways: dict[str, Callable]) -> dict | None:
        if not self.on:
            return None
        with torch.no_grad():
            calls = {name: devices.peak_of(way, self.inputs) for name, way in ways.items()}
        return {name: self.module + self.kept.get(name, 0) + peak for name, peak in calls.items()}
