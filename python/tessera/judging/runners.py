"""A candidate on the wire (docs/protocol.md) as something that runs: a built kernel, or a library function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tessera.common.errors import fail
from tessera.common.laid import in_layout
from tessera.judging.problem import Problem, arithmetic
from tessera.running import leftover, library
from tessera.running.kernels import Kernel
from tessera.running.plan_graph import build_pattern

Tensors = list[torch.Tensor]


class KernelRunner:
    kind = "kernel"

    def __init__(self, candidate: dict):
        self._kernel = Kernel(candidate["library"])
        self._ints = [int(i) for i in (candidate.get("launch") or {}).get("ints", [])]

    def prepare(self, inputs: Tensors, outputs: Tensors) -> Callable[[], None]:
        return self._kernel.prepare([*inputs, *outputs], self._ints)


class LibraryRunner:
    """Its results are new tensors: `prepare` gives a call that returns them."""

    kind = "call"

    def __init__(self, call: dict, problem: Problem):
        graph, device = problem.executor_graph, str(problem.device)
        if call["function"] == "inductor":
            self._function = _by_inductor(problem)
        else:
            self._function = library.make(call["function"], problem.pattern, call.get("arguments") or {}, graph, device)
        self._precision = problem.precision

    def prepare(self, inputs: Tensors, outputs: Tensors) -> Callable[[], Tensors]:
        function, precision = self._function, self._precision

        def call() -> Tensors:
            with torch.no_grad(), arithmetic(precision):
                return function(inputs)

        return call


def _by_inductor(problem: Problem) -> Callable[[Tensors], Tensors]:
    """The pattern's own nodes as torch.compile has them, in one graph, as a whole module is compiled: a peer to be timed beside,
    that no plan places."""
    pattern = problem.pattern
    main = build_pattern(problem.executor_graph, pattern["inputs"], pattern["outputs"])
    compiled = leftover.whole("inductor", main, {})

    def call(tensors: Tensors) -> Tensors:
        found = compiled(*tensors)
        return [in_layout(t, v["shape"], v["strides"]) for t, v in zip(found, problem.outputs, strict=True)]

    return call


def make_runner(candidate: dict, problem: Problem) -> KernelRunner | LibraryRunner:
    if candidate.get("library"):
        return KernelRunner(candidate)
    if candidate.get("call"):
        return LibraryRunner(candidate["call"], problem)
    raise fail(
        "TS0512", "evaluate.no_way_to_run", f"candidate {candidate.get('label')} has neither a library nor a call"
    )
