"""Who runs a composed module's graph: PyTorch op by op, or Inductor, with kernels as calls of custom operators in both."""

from __future__ import annotations

import copy
import importlib.util
import threading
from collections.abc import Callable, Sequence

import torch
from torch import fx, nn

from tessera.common import flex_calls, recurrent
from tessera.running import modes
from tessera.running.extension import input_alignment
from tessera.running.straight import Straight

RUNNERS = ("eager", "inductor")


def missing(runner: str, device: torch.device) -> str:
    """Why this machine cannot have it; "" when it can."""
    if runner == "inductor" and device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton is not installed, which Inductor needs on CUDA"
    return ""


def whole(runner: str, module: nn.Module, settings: dict) -> Callable:
    """The whole module by PyTorch: as it is, or as torch.compile makes it with these settings, in its first call."""
    return torch.compile(module, options=settings or None) if runner == "inductor" else module


def compile_inductor(graph: fx.GraphModule, inputs: list, options: dict, kept: Sequence[int] = ()) -> Callable:
    """The graph by Inductor for inputs like these, called with the same; what torch.compile does behind Dynamo, which a graph of
    ATen ops does not need. `options`: Inductor's settings, as of torch.compile. `kept`: places of inputs that keep their
    addresses, which CUDA graphs read where they lie; at another address they are recorded anew. Without, what Dynamo noted in
    the graph counts, if it is Dynamo's, and CUDA graphs copy the rest in every call."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    if not kept:
        return compile_fx(graph, inputs, config_patches=options)

    def inner(gm: fx.GraphModule, given: Sequence, **settings):
        # Inputs that a graph changes while others share their memory become one: places say nothing then.
        places = list(kept) if len(given) == len(inputs) else []
        return compile_fx_inner(gm, given, **{**settings, "static_input_idxs": places})

    # That cache's keys do not hold what `inner` adds. The one behind it, of generated code, does.
    with torch._functorch.config.patch(enable_autograd_cache=False):
        return compile_fx(graph, inputs, inner, config_patches=options)


class Inductor:
    """`main`, compiled on the first call. `inputs`: places of inputs that keep their addresses from call to call. `steps`: whether
    a call begins a step of CUDA graphs, which may write over the results of the step before, as a call of what torch.compile
    made does; not where torch.compile makes the call."""

    def __init__(
        self, main: fx.GraphModule, options: dict | None = None, inputs: Sequence[int] = (), steps: bool = True
    ):
        self._main, self._options, self._inputs, self._steps = main, dict(options or {}), tuple(inputs), steps
        self.graphs = modes.records(self._options)
        self._kept: tuple[int, ...] = ()
        self._compiled: Callable | None = None
        self._generations = None  # Dynamo's, by which CUDA graphs know steps
        self._lock = threading.Lock()

    def keep(self, places: tuple[int, ...]) -> None:
        """Which feeds behind the inputs keep their addresses. Compiled anew where they are others than before: code relies on
        their alignment."""
        with self._lock:
            if places != self._kept:
                self._kept, self._compiled = places, None

    def __call__(self, *feeds):
        compiled = self._compiled
        if compiled is None:
            with self._lock:
                if self._compiled is None:
                    self._compiled = self._compile(feeds)
                compiled = self._compiled
        if self._generations is not None:
            self._generations.generation += 1
            if torch.is_inference_mode_enabled():
                # A graph's own memory that is made in it could not be written outside of it.
                with torch.inference_mode(False), torch.no_grad():
                    return compiled(*feeds)
        return compiled(*feeds)

    def _compile(self, feeds: tuple) -> Callable:
        # The caller's guards hold shapes, strides and alignment: Inductor's own asserts would cost every call host time.
        options = {"size_asserts": False, "alignment_asserts": False, **self._options}
        own = flex_calls.opened(fx.GraphModule(self._main, copy.deepcopy(self._main.graph)))
        recurrent.closed(own.graph)
        own.recompile()
        kept = ()
        if self.graphs:
            kept = (*(i for i in self._inputs if feeds[i].data_ptr() % input_alignment == 0), *self._kept)
        # Not as a part of what torch.compile may be tracing at the moment.
        with torch.no_grad(), torch._guards.tracing(None):
            compiled = compile_inductor(own, list(feeds), options, kept)
        if self.graphs and self._steps:
            # torch.compiler.cudagraph_mark_step_begin is no way: once it was called, no other module's calls begin steps.
            from torch._dynamo.mutation_guard import GenerationTracker

            self._generations = GenerationTracker
        return compiled


def make(
    runner: str, main: fx.GraphModule, options: dict | None = None, captured: Sequence[int] | None = None
) -> Callable:
    """`captured`: see ComposedModule."""
    if runner == "inductor":
        return Inductor(main, options, captured or (), steps=captured is None)
    return Straight(main)
