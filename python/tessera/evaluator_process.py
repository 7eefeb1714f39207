"""The process in which candidates run, because they may crash it: `python -m tessera.evaluator_process`.

Answers `hello`, `open`, `verify`, `measure` and `close` (docs/protocol.md). A device error that poisons the CUDA context
is answered, then the process exits with EXIT_DEVICE, so that the engine starts a fresh one.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys

import torch

from tessera.common import protocol
from tessera.common.errors import Error, fail
from tessera.judging.problem import QUICK, Kept, Problem, memory_to_keep
from tessera.judging.runners import make_runner
from tessera.judging.timing import measure
from tessera.judging.verify import verify

EXIT_DEVICE = 75


class Evaluator:
    def __init__(self) -> None:
        self._problems: dict[int, Problem] = {}
        self._next = 1
        self._graph: dict = {}  # the last one that was sent
        self._kept: Kept | None = None  # of all problems

    def hello(self, params: dict) -> dict:
        cuda = torch.cuda.is_available()
        return {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cpu": _cpu_name(),
            "device": "cuda" if cuda else "cpu",
            "device_name": torch.cuda.get_device_name() if cuda else _cpu_name(),
            "capability": list(torch.cuda.get_device_capability()) if cuda else None,
            "cuda": torch.version.cuda,
            "threads": torch.get_num_threads(),
        }

    def open(self, params: dict) -> dict:
        """Makes the inputs, the fp64 references and eager's own errors of the quick level: whatever dies later is then the
        candidate's doing, not the reference's. `graph` may be left out where it is that of the open before."""
        if str(params["device"]).startswith("cuda") and not torch.cuda.is_available():
            raise fail(
                "TS0713",
                "evaluate.no_device",
                "torch sees no CUDA device",
                helps=["`tessera doctor` says what is missing; --arch host runs without"],
            )
        self._graph = params.get("graph", self._graph)
        if not self._graph:
            raise fail("TS0519", "evaluate.no_graph", "no open before named the graph")
        if self._kept is None:
            self._kept = Kept(memory_to_keep(torch.device(params["device"])))
        handle, self._next = self._next, self._next + 1
        problem = Problem(self._graph, params["pattern"], params["device"], params["precision"], self._kept)
        for kind, seed in QUICK:
            problem.dataset(kind, seed)
        self._problems[handle] = problem
        return {"handle": handle}

    def close(self, params: dict) -> dict:
        if problem := self._problems.pop(params["handle"], None):
            problem.forget()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return {}

    def _problem(self, params: dict) -> Problem:
        if params["handle"] not in self._problems:
            raise fail("TS0714", "evaluate.no_such_handle", f"no open problem has the handle {params['handle']}")
        return self._problems[params["handle"]]

    def verify(self, params: dict) -> dict:
        problem = self._problem(params)
        try:
            return verify(problem, make_runner(params["candidate"], problem), params.get("level", "quick"))
        except (Error, RuntimeError) as error:
            return _refused(error)

    def measure(self, params: dict) -> dict:
        """`candidates` in one round-robin with eager (when `anchor`); a candidate that cannot run is left out of it."""
        problem = self._problem(params)
        rows: list[dict] = []
        runners = []
        for candidate in params["candidates"]:
            try:
                runner = make_runner(candidate, problem)
                _probe(problem, runner)
                runners.append(runner)
                rows.append({})
            except (Error, RuntimeError) as error:
                rows.append(_refused(error) | {"ms": 0.0, "ci95": 0.0, "samples": 0})
        anchor = bool(params.get("anchor", True))
        if anchor:
            runners.append(make_runner({"call": {"function": "aten"}}, problem))
        times = measure(
            problem,
            runners,
            float(params.get("milliseconds", 30)),
            float(params.get("floor_ms", 0.0)),
            int(params.get("seed", 0)),
            bool(params.get("load", False)),
        )
        eager = times.pop() if anchor else None
        measured = iter(times)
        reply = {"times": [row or next(measured) for row in rows]}
        if eager:
            reply |= {"anchor_ms": eager["ms"], "eager_ms": eager["ms"], "eager_ci95": eager["ci95"]}
            reply["eager_samples"] = eager["samples"]
            if "sustained_ms" in eager:
                reply["eager_sustained_ms"] = eager["sustained_ms"]
        return reply


def _probe(problem: Problem, runner) -> None:
    """One run, so that a launch that is refused shows before the clock runs."""
    data = problem.dataset("normal", 0)
    runner.prepare(data.tensors, [g.tensor for g in problem.new_outputs()])()
    if problem.device.type == "cuda":
        torch.cuda.synchronize()


def _is_device_error(error: BaseException) -> bool:
    """An error after which this process's CUDA context answers nothing but errors."""
    kinds = tuple(t for t in (getattr(torch, "AcceleratorError", None),) if t)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "CUDA error" in str(error))


def _refused(error: Error | RuntimeError) -> dict:
    """The reply for a candidate that did not run to its end; device errors go on to end the process."""
    if isinstance(error, torch.OutOfMemoryError):
        torch.cuda.empty_cache()
        return {"ok": False, "kind": "out_of_memory", "reason": str(error).split("\n")[0][:300]}
    if isinstance(error, Error):
        kind = "unsupported" if error.diagnostic["code"].startswith("TS04") else "launch_failed"
        return {"ok": False, "kind": kind, "reason": error.diagnostic["message"]}
    if _is_device_error(error):
        raise error
    return {"ok": False, "kind": "launch_failed", "reason": f"{error}".split("\n")[0][:300]}


def _cpu_name() -> str:
    with open("/proc/cpuinfo") as text:
        for line in text:
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()} ({os.cpu_count()} threads)"
    return platform.processor()


def _warm_up() -> None:
    """What the first pattern would wait for: the device's context, torch's generator, a product in fp64."""
    if torch.cuda.is_available():
        x = torch.randn(64, 64, device="cuda", dtype=torch.float64)
        (x @ x).sum().item()


def main() -> None:
    evaluator = Evaluator()
    connection = protocol.over_stdio(
        {name: getattr(evaluator, name) for name in ("hello", "open", "verify", "measure", "close")}
    )

    def after_reply(request: dict, raised: BaseException | None) -> None:
        if raised is not None and _is_device_error(raised):
            print(f"device error in {request['method']}: {raised}", file=sys.stderr, flush=True)
            os._exit(EXIT_DEVICE)

    connection.after_reply = after_reply
    with contextlib.suppress(RuntimeError):  # `open` says what is wrong with the device
        _warm_up()
    connection.serve()


if __name__ == "__main__":
    main()
