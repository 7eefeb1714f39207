"""Who runs a composed module's graph: PyTorch op by op, or Inductor, with kernels as calls of custom operators in both."""

from __future__ import annotations

import copy
import importlib.util
import threading
from collections.abc import Callable

import torch
from torch import fx

from tessera.straight import Straight

RUNNERS = ("eager", "inductor")


def missing(runner: str, device: torch.device) -> str:
    """Why this machine cannot have it; "" when it can."""
    if runner == "inductor" and device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton is not installed, which Inductor needs on CUDA"
    return ""


def mode_options(mode: str | None) -> dict:
    """Inductor's settings of a mode of torch.compile."""
    return torch._inductor.list_mode_options(mode) if mode and mode != "default" else {}


def compile_inductor(graph: fx.GraphModule, inputs: list, options: dict) -> Callable:
    """The graph by Inductor for inputs like these, called with the same; what torch.compile does behind Dynamo, which a graph of
    ATen ops does not need. `options`: Inductor's settings, as of torch.compile."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, config_patches=options)


class Inductor:
    """`main`, compiled on the first call."""

    def __init__(self, main: fx.GraphModule, options: dict | None = None):
        self._main, self._options = main, dict(options or {})
        self._compiled: Callable | None = None
        self._lock = threading.Lock()

    def __call__(self, *feeds):
        if self._compiled is None:
            with self._lock:
                if self._compiled is None:
                    self._compiled = self._compile(feeds)
        return self._compiled(*feeds)

    def _compile(self, feeds: tuple) -> Callable:
        # The caller's guards hold shapes, strides and alignment: Inductor's own asserts would cost every call host time.
        options = {"size_asserts": False, "alignment_asserts": False, **self._options}
        own = fx.GraphModule(self._main, copy.deepcopy(self._main.graph))
        # Not as a part of what torch.compile may be tracing at the moment.
        with torch.no_grad(), torch._guards.tracing(None):
            return compile_inductor(own, list(feeds), options)


def make(runner: str, main: fx.GraphModule, options: dict | None = None) -> Callable:
    return Inductor(main, options) if runner == "inductor" else Straight(main)
