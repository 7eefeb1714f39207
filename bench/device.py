"""The device that a case runs on: waiting for it, the memory of a call, CUDA graphs, input sets, copies of a module."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable

import torch
from torch import nn

# Rotating sets exceed the L2 together, so that no way finds all of a call's inputs there; large inputs need two only.
SET_BYTES, MOST_SETS = 256 << 20, 4


def default() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def name_of(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


def sync_of(device: str) -> Callable[[], None]:
    return torch.cuda.synchronize if device == "cuda" else (lambda: None)


def size_of(tensors) -> int:
    """Bytes."""
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def draw_sets(draw: Callable[[], tuple], first_seed: int = 1) -> list[tuple]:
    """Two to four input sets, each drawn with a seed of its own."""
    sets: list[tuple] = []
    while len(sets) < 2 or (len(sets) < MOST_SETS and sum(size_of(s) for s in sets) < SET_BYTES):
        torch.manual_seed(first_seed + len(sets))
        sets.append(tuple(draw()))
    return sets


def copy_of(module: nn.Module) -> nn.Module:
    """A copy that is as fast as the module. A deep copy of a recurrent layer has its weights apart, and cuDNN gathers them in
    every call then."""
    made = copy.deepcopy(module)
    for part in made.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return made


def settled() -> int:
    """Bytes allocated once nothing is waiting to be freed."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated()


def peak_of(way: Callable, inputs: tuple) -> int:
    """Bytes that a call needs at most beside what is allocated before it: its results and what lies between."""
    before = settled()
    torch.cuda.reset_peak_memory_stats()
    result = way(*inputs)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del result
    return peak


class Captured:
    """A way as a CUDA graph. The graphs of a case share their input tensors (`static`), which `set` fills, and a memory
    pool, because they never run at once."""

    def __init__(self, way: Callable, static: tuple, pool):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                way(*static)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=pool):
            self.result = way(*static)

    def __call__(self, *ignored):
        self.graph.replay()
        return self.result


def static_inputs(inputs: tuple) -> tuple:
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)


def fill(static: tuple, inputs: tuple) -> None:
    for to, x in zip(static, inputs, strict=True):
        if isinstance(to, torch.Tensor):
            to.copy_(x)
