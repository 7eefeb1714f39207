"""The engine as a child process: its options, one search for a module that is traced, its progress, and how it is stopped. This
process is the tracer."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tessera.common import places
from tessera.common.errors import Error, fail, to_text
from tessera.common.protocol import Closed, Connection, from_the_wire
from tessera.running import modes
from tessera.running.compose import ComposedModule
from tessera.tracer_process import Tracer
from tessera.tracing.held import Held

Progress = bool | Callable[[dict], None]

# What `optimize` takes that is no option of the engine's.
OWN = ["precision", "mode", "strict", "frozen", "progress"]


def optimize_held(
    held: Held,
    *,
    effort: str = "default",
    leftover: str = "auto",
    strict: bool = False,
    frozen: bool = False,
    arch: str | None = None,
    progress: Progress = True,
    seconds: float = 0.0,
    measure: bool | list[str] = False,
    **options,
) -> ComposedModule:
    """`optimize` for a module that is traced already; the mode is in its settings."""
    rest = modes.rest_runner(leftover, held.settings, held.device)
    wanted = _wanted(effort=effort, leftover=rest, arch=arch, seconds=seconds, measure=measure, **options)
    held.options["frozen"] = frozen
    tracer = Tracer(held)
    result = run_engine(tracer, wanted, progress)
    for d in result.get("diagnostics", ()):
        warnings.warn(to_text(from_the_wire(d)), stacklevel=3)
    return _composed(tracer, result["plan"], strict, result.get("report"))


def _wanted(*, measure: bool | list[str] = False, arch: str | None = None, **options) -> dict:
    """The options as the engine takes them."""
    peers = list(measure) if isinstance(measure, list | tuple) else ["eager"]
    return {"measure": bool(measure), "ablation": bool(measure), "arch": arch or "auto", "peers": peers, **options}


def check_options(*, strict: bool = False, frozen: bool = False, progress: Progress = True, **options) -> None:
    """Options of `optimize`, and of the backend, held to the engine's table of commands: what would be refused after seconds of
    tracing is refused now. Errors: TS0041, TS0043, TS0046, TS0047, with the nearest right word."""
    with _engine({}, lambda method, params: None) as engine:
        engine.call("check_options", {"options": _wanted(**options), "own": OWN})


def _composed(tracer: Tracer, plan: dict, strict: bool, report: dict | None) -> ComposedModule:
    """What the engine decided on, with what was compiled for it on the way."""
    held, leftover, runner = tracer.held, plan.get("leftover_runner", "eager"), plan.get("runner", "kernels")
    settler = tracer.settler
    timed = settler.composed(plan, leftover) if settler and runner == "kernels" and not strict else None
    if timed is not None:
        return timed.handed_over(plan, report)
    compiled = settler.torch_way(runner) if settler and runner != "kernels" else None
    return held.compose(plan, leftover, strict=strict, report=report, compiled=compiled)


def find_binary() -> Path:
    """$TESSERA_BINARY, the package's own, a build folder of the source tree (the newest), or PATH. Error: TS0715."""
    named = os.environ.get("TESSERA_BINARY")
    if named:
        if os.access(named, os.X_OK):
            return Path(named)
        raise fail("TS0715", "process.no_binary", f"$TESSERA_BINARY names `{named}`, which is no executable file")
    tried = [places.package / "bin" / "tessera"]
    root = places.source_tree()
    if root:
        tried += sorted(root.glob("build*/bin/tessera"), key=lambda p: p.stat().st_mtime, reverse=True)
    found = next((p for p in tried if os.access(p, os.X_OK)), None) or shutil.which("tessera")
    if found:
        return Path(found)
    raise fail(
        "TS0715",
        "process.no_binary",
        "the tessera binary is not found",
        expected="$TESSERA_BINARY, the package's bin/tessera, build*/bin/tessera of a source tree, or PATH",
        helps=["install the wheel, or build: cmake -S . -B build -G Ninja && ninja -C build tessera"],
    )


def run_engine(tracer: Tracer, options: dict, progress: Progress = True) -> dict:
    """Starts `tessera serve`, asks it to optimize the module that the tracer holds, answers its requests; its reply."""
    listen = listener(progress)
    with _engine(tracer.handlers, listen) as engine:
        tracer.connection = _Quiet(listen)
        with _stopping(engine.process, listen):
            return engine.call("optimize", {"graph": tracer.held.graph, "options": options})


@dataclass
class _Engine:
    process: subprocess.Popen
    connection: Connection
    log: IO[bytes]

    def call(self, method: str, params: dict) -> dict:
        """Its reply. Error: its own, or TS0712 where it died."""
        try:
            return self.connection.call(method, params)
        except Closed as e:
            raise _died(self.process, self.log) from e


@contextlib.contextmanager
def _engine(handlers: dict, listen: Callable[[str, dict], None]) -> Iterator[_Engine]:
    """`tessera serve`, which asks the handlers and is ended on the way out."""
    binary = find_binary()
    # Its own Python processes are to find the package that is imported here, however it was found: not only by $PYTHONPATH.
    package = os.environ.get("TESSERA_PYTHONPATH") or str(places.package.parent)
    environment = os.environ | {"TESSERA_PYTHON": sys.executable, "TESSERA_PYTHONPATH": package}
    with tempfile.TemporaryFile(prefix="tessera-log-") as log:
        # A session of its own: a terminal's Ctrl-C reaches it only through us, as a wish to stop with the best so far.
        engine = subprocess.Popen(
            [str(binary), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
        try:
            yield _Engine(engine, Connection(engine.stdout, engine.stdin, handlers, listen), log)
        finally:
            with contextlib.suppress(OSError, ValueError):
                engine.stdin.close()
            try:
                engine.wait(timeout=10)
            except subprocess.TimeoutExpired:
                engine.kill()
                engine.wait()
            engine.stdout.close()


class _Quiet:
    """What our own evaluation says goes to the listener, not through the engine."""

    def __init__(self, listen: Callable[[str, dict], None]):
        self.listen = listen

    def notify(self, method: str, params: dict) -> None:
        self.listen(method, params)


def _died(engine: subprocess.Popen, log) -> Error:
    code = engine.wait()
    log.seek(0)
    tail = log.read().decode(errors="replace").strip().splitlines()[-12:]
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return fail(
        "TS0712",
        "process.died",
        f"the engine ended before it answered ({how})",
        notes=tail,
        helps=["call it again: what was tuned before is kept", "please report it with these notes"],
    )


def listener(progress: Progress) -> Callable[[str, dict], None]:
    if callable(progress):
        return lambda method, params: progress(params) if method == "progress" else None
    if not progress:
        return lambda method, params: None
    begin = time.monotonic()

    def show(method: str, params: dict) -> None:
        if method == "progress" and params.get("message"):
            count = f" [{params['done']}/{params['total']}]" if params.get("total") else ""
            what = f"{params.get('stage', '')}{count}: {params['message']}"
            print(f"tessera {time.monotonic() - begin:6.1f} s {what}", file=sys.stderr, flush=True)

    return show


@contextlib.contextmanager
def _stopping(engine: subprocess.Popen, listen):
    """The first Ctrl-C asks the engine to stop with the best so far, the second ends the call."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def on_interrupt(signum, frame):
        nonlocal asked
        if asked:
            engine.kill()
            raise KeyboardInterrupt
        asked = True
        listen("progress", {"stage": "stop", "message": "stopping with the best so far; Ctrl-C again to give up"})
        engine.send_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
