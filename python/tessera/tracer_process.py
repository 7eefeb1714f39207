"""The tracer: a process of the engine that holds the live module (docs/protocol.md). `python -m tessera.tracer_process`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tessera.common.errors import fail
from tessera.common.protocol import Connection, over_stdio
from tessera.judging import module_check, module_times, rewrite_check, trace_check
from tessera.judging.compile_time import Compile
from tessera.judging.settling import Settler
from tessera.running import extension, fast_guard, kernelbench_export
from tessera.tracing import resizes
from tessera.tracing.bounded import TRACE_SECONDS, TimeIsUp, time_is_up, within
from tessera.tracing.circumstances import circumstances
from tessera.tracing.held import Held, hold
from tessera.tracing.loading import load_problem
from tessera.tracing.training_mode import of_training


class Tracer:
    """Answers for one module: loaded from a file here, or handed in by tessera.optimize."""

    def __init__(self, held: Held | None = None):
        extension.build_early(fast_guard.extension)  # the first plan is composed with both
        self.held = held
        self.connection: Connection | None = None
        self.settler: Settler | None = None
        self.resized: Held | None = None  # the held module at the size last asked for
        self.alike: Held | None = None  # whose graph was held against the module
        self.checked: tuple[dict, dict] | None = None  # the graph that `check_rewrites` saw last, and its reply

    @property
    def handlers(self) -> dict:
        return {method: _limited(method, answer) for method, answer in self._answers().items()}

    def _answers(self) -> dict:
        return {
            "trace": self.trace,
            "trace_resized": self.trace_resized,
            "check_rewrites": self.check_rewrites,
            "verify_module": self.verify_module,
            "measure_module": self.measure_module,
            "compare_plans": self.compare_plans,
            "compile_torch": self.compile_torch,
            "prepare_torch": self.prepare_torch,
            "settle": self.settle,
            "export_module": self.export_module,
        }

    def _need(self) -> Held:
        if self.held is None:
            raise fail("TS0706", "peer.nothing_traced", "no module is held: `trace` comes first")
        self.held.notify = self._notify
        return self.held

    def _notify(self, text: str, stage: str = "measure") -> None:
        if self.connection is not None:
            self.connection.notify("progress", {"stage": stage, "message": text})

    def trace(self, params: dict) -> dict:
        if not params.get("path"):
            return self._told(self._need())
        loaded = load_problem(params["path"], params.get("class") or None, pick_device(params.get("device", "auto")))
        precision = params.get("precision", "auto")
        self.held = hold(
            loaded.module,
            loaded.args,
            loaded.kwargs,
            None if precision in ("auto", "", None) else precision,
            loaded.path,
            loaded.name,
            seconds=min(TRACE_SECONDS, float(params.get("seconds") or TRACE_SECONDS)),
        )
        if text := of_training(self.held.module, self.held.graph):
            self._notify(f"warning: {text}", "trace")
        return self._told(self.held)

    def _told(self, held: Held) -> dict:
        held.graph["meta"]["circumstances"] = circumstances(held)
        return {"graph": held.graph}

    def trace_resized(self, params: dict) -> dict:
        """The `attempt`-th other size: its trace, or the reason why there is none, or that there are no more."""
        held = self._need()
        self.resized = None
        tries = list(resizes.sizes(held)) if held.resizable else []
        if params["attempt"] >= len(tries):
            return {"done": True}
        size = tries[params["attempt"]]
        made = resizes.resized(held, size)
        if isinstance(made, str):
            return {"size": size.text, "reason": made}
        self.resized = made
        return {"size": size.text, "graph": made.graph}

    def check_rewrites(self, params: dict) -> dict:
        held = self._need()
        if self.alike is not held:
            trace_check.refuse_other_results(held)
            self.alike = held
        self.checked = params["graph"], rewrite_check.check_rewrites(held, params["graph"])
        return self.checked[1]

    def verify_module(self, params: dict) -> dict:
        held = self.resized if params.get("resized") else self._need()
        if held is None:
            raise fail("TS0706", "peer.nothing_traced", "no other size is held: `trace_resized` comes first")
        plan, leftover = params["plan"], params.get("leftover", "eager")
        known = self.checked if not params.get("resized") else None
        settled = self.settler.composed(plan, leftover) if self.settler and held is self.settler.held else None
        return module_check.verify_module(
            held,
            plan,
            int(params.get("seeds", 2)),
            leftover,
            known[1] if known and known[0] == plan["graph"] else None,
            settled.handed_over(plan, None) if settled else None,
        )

    def measure_module(self, params: dict) -> dict:
        return module_times.measure_module(
            self._need(),
            params["plan"],
            list(params.get("peers", ["eager"])),
            params.get("leftover", "eager"),
            float(params.get("seconds") or 10.0),
            bool(params.get("ablation", True)),
        )

    def _settler(self) -> Settler:
        held = self._need()
        if self.settler is None or self.settler.held is not held:
            self.settler = Settler(held)
        return self.settler

    def compile_torch(self, params: dict) -> dict:
        self._settler().compile(params["runners"], _compile(params))
        return {}

    def prepare_torch(self, params: dict) -> dict:
        return {"ways": self._settler().prepare(params["runners"], _compile(params))}

    def settle(self, params: dict) -> dict:
        seconds = float(params.get("seconds") or 1.0)
        ways = self._settler().settle(params["plans"], params["runners"], seconds, _compile(params))
        return {"ways": ways}

    def compare_plans(self, params: dict) -> dict:
        return module_times.compare_plans(
            self._need(), params["plans"], params.get("leftover", "eager"), float(params.get("seconds") or 1.0)
        )

    def export_module(self, params: dict) -> dict:
        from tessera.running.export import export_module

        held = self._need()
        files = export_module(held.traced, held.args, held.kwargs, params["plan"], params["folder"])
        if params.get("form") == "kernelbench":
            files += kernelbench_export.write(params["folder"], held.path, held.graph["meta"]["class"], params["plan"])
        return {"files": files}


def _compile(params: dict) -> Compile | None:
    return Compile(**params["compile"]) if params.get("compile") else None


def _limited(method: str, answer: Callable[[dict], dict]) -> Callable[[dict], dict]:
    """The handler, given up after the request's `limit` in seconds. Error: TS0460."""

    def in_time(params: dict) -> dict:
        if params.get("limit") is None:
            return answer(params)
        try:
            return within(float(params["limit"]), lambda: answer(params), raises=TimeIsUp)
        except TimeIsUp:
            raise time_is_up(f"the time was over during `{method}`", method=method) from None

    return in_time


def pick_device(name: str) -> str:
    """`auto`: the GPU when there is one."""
    if name in ("auto", "", None):
        return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise fail(
            "TS0021",
            "input.no_gpu",
            "PyTorch sees no GPU",
            expected="a CUDA device",
            found=f"torch {torch.__version__}, CUDA {torch.version.cuda or 'not built in'}",
            helps=["use --device cpu", "`nvidia-smi` shows whether the driver sees one"],
        )
    return f"cuda:{torch.cuda.current_device()}" if name == "cuda" else name


def main() -> None:
    tracer = Tracer()
    tracer.connection = over_stdio(tracer.handlers)
    tracer.connection.serve()


if __name__ == "__main__":
    main()
