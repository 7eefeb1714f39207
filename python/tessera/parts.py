"""A module that cannot be traced whole, captured in parts: torch.compile finds the graphs in one call on the example inputs, each is
searched like a module, and what lies between them stays Python. The seconds are shared by what the parts take in eager."""

from __future__ import annotations

import contextlib
import copy
import itertools
import threading
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tessera import backend, breaks
from tessera.common.errors import Error, fail
from tessera.engine import listener
from tessera.judging.trace_check import FAR, FAR_ELEMENTS, apart, beyond
from tessera.running import autocast, hooks, leftover, special_methods
from tessera.running.compose import ComposedModule, _shared
from tessera.running.feeds import Counts
from tessera.running.guards import Events
from tessera.running.result_objects import tensors_of
from tessera.running.standing import Standing
from tessera.tracing.argument_copies import copies_of_all
from tessera.tracing.bounded import TimeIsUp, Total, time_is_up, within
from tessera.tracing.python_state import module_fails, random_numbers, silent, undone

_CALLS = 2  # that are compared with eager's: what Dynamo loses is missed in the second
MOST_OPS = 5000  # of a call: Inductor takes about 20 ms an op, minutes for more


class ModuleInParts(ComposedModule):
    """`original`, run by graphs that torch.compile captures and by Python between them; the interface is a composed module's. `why`: why
    it is not one graph. `options`: of the backend. `runner`: `parts`, or `eager` and `inductor` for PyTorch's own way. `known`: what
    was found for graphs before (backend.Known). `counts`: whether forward counts in integers, by which Dynamo would make a graph
    for each number."""

    def __init__(
        self,
        original: nn.Module,
        why: Error,
        options: dict,
        *,
        runner: str = "parts",
        known: dict | None = None,
        counts: bool = False,
        report: dict | None = None,
    ):
        nn.Module.__init__(self)
        self.__dict__["original"] = original  # not a submodule: state_dict names stay
        for name in _shared:
            self.__dict__[name] = original.__dict__[name]
        self.runner, self.report, self._why, self._given = runner, report, why, dict(options)
        self._model = backend.Model(checked=True, known=known if known is not None else {}, by_ops=counts)
        self._counting, self._standing = counts, Standing(original)
        self._counts, self._events, self._served = Counts(), Events(None), 0
        special_methods.give(self, original)
        self.__dict__["_run"] = self._runs(runner)
        self.__dict__["_own"] = frozenset(self.__dict__)

    def _runs(self, runner: str) -> Callable:
        settings = self._given.get("settings", {})
        if runner != "parts":
            whole = leftover.whole(runner, self.original, settings)
        else:
            options = {k: v for k, v in self._given.items() if k != "settings"}

            def capture(gm, inputs):
                return backend.take(gm, inputs, options, settings, self._model)

            whole = torch.compile(self.original, backend=capture)
        return whole.forward if isinstance(whole, torch._dynamo.OptimizedModule) else whole

    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return self.original(*args, **kwargs)
        self._counts.calls += 1
        if self.runner == "parts" and not self._standing.stands():
            return self.original(*args, **kwargs)
        before = self._kernel_calls()
        with _integers_as_symbols() if self._counting else contextlib.nullcontext():
            result = self._run(*args, **kwargs)
        self._served += self._kernel_calls() > before
        return result

    def _kernel_calls(self) -> int:
        return sum(g["composed"]._counts.calls for g in self._model.graphs if g["composed"])

    def __deepcopy__(self, memo):
        return hooks.copied(self, self._again(copy.deepcopy(self.original, memo)), memo)

    def _again(self, original: nn.Module, **changes) -> ComposedModule:
        return _restored(original, self._why, self._given, self._kept() | changes)

    def _kept(self) -> dict:
        return {"runner": self.runner, "known": self._model.known, "counts": self._counting, "report": self.report}

    def __reduce__(self):
        return _restored, (self.original, self._why, self._given, self._kept()), hooks.own(self)

    def extra_repr(self) -> str:
        if self.runner != "parts":
            return f"run by PyTorch ({self.runner})"
        return f"{sum(g['runner'] == 'kernels' for g in self._model.graphs)} of {len(self._model.graphs)} graphs by kernels"

    def status(self) -> dict:
        """`graphs`: what became of each, as tessera.status says of a compiled module; `not_captured`: file, line and reason of what
        stays Python; `served`: calls in which a kernel ran."""
        graphs = backend.rows_of(self._model)
        patterns = [p | {"graph": i} for i, g in enumerate(graphs) for p in (g["status"] or {}).get("patterns", ())]
        return {
            "schema": "tessera.status/1",
            "runner": self.runner,
            "reason": self._why.diagnostic["message"],
            "active": [f"{p['graph']}:{p['id']}" for p in patterns if p["active"]],
            "patterns": patterns,
            "calls": self._counts.calls,
            "served": self._served if self.runner == "parts" else self._counts.calls,
            "fallbacks": [f for g in graphs for f in (g["status"] or {}).get("fallbacks", ())],
            "lost": [x for g in graphs for x in (g["status"] or {}).get("lost", ())],
            "graphs": graphs,
            "not_captured": breaks.not_captured(self.original) if self.runner == "parts" else [],
            "strict": False,
        }


def _restored(original: nn.Module, why: Error, options: dict, kept: dict) -> ModuleInParts:
    return ModuleInParts(original, why, options, **kept)


def as_it_is(module: nn.Module, why: Error, options: dict, progress) -> ModuleInParts:
    """The module, run by eager: there was no time for more."""
    listener(progress)("progress", {"stage": "parts", "message": f"{why.diagnostic['message']}: eager runs it"})
    return ModuleInParts(module, why, options, runner="eager")


def optimize_in_parts(
    module: nn.Module, args: tuple, kwargs: dict, why: Error, options: dict, progress, total: Total
) -> ModuleInParts:
    """`options`: of the backend, with Inductor's as `settings`; `why`: why the module is not one graph. Where the total is not enough,
    eager runs it."""
    if not total.seconds:
        return _in_parts(module, args, kwargs, why, options, progress)
    searched = max(backend.LEAST, min(options.get("seconds") or backend.SECONDS, total.left() / 2))
    try:
        return within(
            max(0.01, total.left()),
            lambda: _in_parts(module, args, kwargs, why, {**options, "seconds": searched}, progress),
            raises=TimeIsUp,
        )
    except TimeIsUp:
        up = time_is_up(f"the {total.seconds:g} s were over while the module was captured in parts")
        return as_it_is(module, up, options, progress)


def _in_parts(module: nn.Module, args: tuple, kwargs: dict, why: Error, options: dict, progress) -> ModuleInParts:
    data = why.diagnostic.get("data") or {}
    if data.get("out_of_time"):
        return _by_torch(module, args, kwargs, why, options["settings"], progress)
    say = listener(progress)
    if data.get("differs"):  # torch.compile traces it as we do
        say("progress", {"stage": "trace", "message": f"{why.diagnostic['message']}: eager runs it"})
        return ModuleInParts(module, why, options, runner="eager")

    def tell(text: str) -> None:
        say("progress", {"stage": "parts", "message": text})

    tell(f"the module is captured in parts: {why.diagnostic['message']}")
    options = {**options, "seconds": options.get("seconds") or backend.SECONDS, "progress": progress}
    made = ModuleInParts(module, why, options, counts=bool(data.get("changes")))
    made._model.collected = []
    begin = time.monotonic()
    try:
        with _undone(module, args, kwargs) as again, _by_itself():
            given = again()
            made(*given[0], **given[1])
    except torch.OutOfMemoryError:
        raise
    except Exception as e:  # noqa: BLE001 - torch.compile cannot take it either
        _run_by_itself(module, args, kwargs, why)
        tell(f"torch.compile does not take it: {e}")
        return ModuleInParts(module, why, options, runner="eager")
    collected, made._model.collected = made._model.collected, None
    for part in collected:
        part.as_captured()
    _search(collected, made._model, options, tell)
    if call := _differing_call(made, module, args, kwargs, _CALLS if data.get("changes") else 1):
        reason = f"{why.diagnostic['message']}; torch.compile gives other results than eager in call {call}"
        tell(f"{reason}: eager runs it")
        return ModuleInParts(module, fail("TS0502", "verify.trace_differs", reason), options, runner="eager")
    made._counts, made._served = Counts(), 0
    made.report = _report(made, time.monotonic() - begin)
    return made


_calls, _lock = [], threading.Lock()  # calls that count, of all threads; what the setting was before the first


@contextlib.contextmanager
def _integers_as_symbols():
    """Meanwhile Dynamo takes a module's integers for symbols. The setting is the process's: the last of several threads puts it back."""
    config = torch._dynamo.config
    with _lock:
        _calls.append(config.allow_unspec_int_on_nn_module if not _calls else _calls[0])
        config.allow_unspec_int_on_nn_module = True
    try:
        yield
    finally:
        with _lock:
            before = _calls.pop()
            if not _calls:
                config.allow_unspec_int_on_nn_module = before


def _differing_call(made: ModuleInParts, module: nn.Module, args: tuple, kwargs: dict, calls: int) -> int | None:
    """Of `calls` one after another the first whose results are not eager's, counted from one: Dynamo's own faults. None too where
    torch's random numbers are drawn, which a compiler draws otherwise."""

    def results(f: nn.Module, given: tuple[tuple, dict]) -> list[list[torch.Tensor]]:
        found: list[list[torch.Tensor]] = []
        with random_numbers():
            for _ in range(calls):
                try:
                    found.append([t.clone() for t in tensors_of(f(*given[0], **given[1]))])
                except torch.OutOfMemoryError:
                    raise
                except Exception:  # noqa: BLE001 - a cache that is full, say
                    break
        return found

    with _undone(module, args, kwargs) as again:
        before = _drawing()
        wanted = results(module, again())
        if any(not torch.equal(a, b) for a, b in zip(before, _drawing(), strict=True)):
            return None
        got = results(made, again())
    limit = max(FAR.values()), FAR_ELEMENTS
    for i, (xs, ys) in enumerate(itertools.zip_longest(wanted, got, fillvalue=())):
        if len(xs) != len(ys) or any(beyond(apart(x, y), limit) for x, y in zip(xs, ys, strict=True)):
            return i + 1
    return None


def _drawing() -> list[torch.Tensor]:
    """The states of torch's generators."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ())]


def _by_torch(module: nn.Module, args: tuple, kwargs: dict, why: Error, settings: dict, progress) -> ModuleInParts:
    """PyTorch's own plan, where tracing was given up: torch.compile's in the first call, or eager where that would take minutes."""
    ops = _Ops()
    with _undone(module, args, kwargs) as again:
        given = again()
        with ops:
            module(*given[0], **given[1])
    runner = "eager" if ops.count > MOST_OPS else "inductor"
    say = listener(progress)
    say(
        "progress",
        {"stage": "trace", "message": f"{why.diagnostic['message']}; a call has {ops.count} ops: {runner} runs it"},
    )
    return ModuleInParts(module, why, {"settings": settings}, runner=runner)


def _run_by_itself(module: nn.Module, args: tuple, kwargs: dict, why: Error) -> None:
    """Raises what is wrong where the module itself fails."""
    try:
        with _undone(module, args, kwargs) as again:
            given = again()
            module(*given[0], **given[1])
    except Exception as e:
        raise module_fails(e) if why.diagnostic["code"] != "TS0014" else why from e


class _Ops(TorchDispatchMode):
    """Counts the ops of a call."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _undone(module: nn.Module, args: tuple, kwargs: dict):
    """Calls that nobody made: what they change is put back, and nobody hears of them. Gives what python_state.undone gives."""
    with undone(module, args, kwargs) as again, random_numbers(), silent(), torch.no_grad(), torch.random.fork_rng():
        yield again


def _by_itself():
    """Dynamo counts what it captured of a code, whichever module's: another size makes the sizes vary, and the ninth graph is none."""
    many = 1 << 20
    return torch._dynamo.config.patch(
        automatic_dynamic_shapes=False, recompile_limit=many, accumulated_recompile_limit=many
    )


def _search(parts: list[backend.Part], model: backend.Model, options: dict, tell: Callable[[str], None]) -> None:
    """The longest first: what a search leaves of its seconds is the others'."""
    times = {id(p): _seconds_of(p) for p in parts}
    parts = sorted(parts, key=lambda p: -times[id(p)])
    seconds = options["seconds"]
    for i, part in enumerate(parts):
        rest = sum(times[id(p)] for p in parts[i:])
        share = (seconds - model.spent) * times[id(part)] / rest if rest else 0.0
        tell(f"graph {i + 1} of {len(parts)}, {share:.0f} s of search")
        begin = time.monotonic()
        try:
            backend.search(part, {**_engine_options(options), "spent": seconds - share}, model, share < backend.LEAST)
        except Error as e:
            backend.given_up(e, part.row)
            part.run = part.gm.forward if part.row["runner"] == "eager" else part.held.inductor()
        model.spent += min(time.monotonic() - begin, share)


def _engine_options(options: dict) -> dict:
    return {k: v for k, v in options.items() if k != "settings"}


def _seconds_of(part: backend.Part) -> float:
    """Of a call in eager, the second one."""
    held = part.held
    for _ in range(2):
        args, kwargs = copies_of_all(held.args, held.kwargs, {})
        _synchronize(held.device)
        begin = time.perf_counter()
        with torch.no_grad(), autocast.entered(()):
            held.module(*args, **kwargs)
        _synchronize(held.device)
    return time.perf_counter() - begin


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _report(made: ModuleInParts, seconds: float) -> dict:
    graphs = made._model.graphs
    return {
        "schema": "tessera.parts/1",
        "runner": made.runner,
        "why": made._why.diagnostic,
        "seconds": seconds,
        "graphs": [{"runner": g["runner"], "reason": g["reason"], "report": g["report"]} for g in graphs],
        "not_captured": breaks.not_captured(made.original),
    }
