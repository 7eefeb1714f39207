"""Work that is given up after so many seconds: torch.export takes minutes where a loop unrolls to some 10,000 ops."""

from __future__ import annotations

import ctypes
import math
import signal
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tessera.common.errors import Error, fail

T = TypeVar("T")

TRACE_SECONDS = 60.0
SAID_EVERY = 5.0  # seconds
_again = 5.0  # seconds: after which an exception that some code of torch's kept to itself is raised once more
_LOOK_EVERY = 0.05  # seconds: whether it was swallowed
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_wakes = getattr(signal, "SIGURG", None)  # a signal that does nothing by default


class OutOfTime(BaseException):
    """Raised in the thread that works. No Exception: those torch turns into others."""


class TimeIsUp(BaseException):
    """As OutOfTime, where all the time of a call is over: what gives up a part of the work does not take it for its own."""


@dataclass(frozen=True)
class Total:
    """All the seconds of a call that began at `begun` (time.monotonic); 0: as many as it takes."""

    begun: float
    seconds: float

    def left(self) -> float:
        return self.begun + self.seconds - time.monotonic() if self.seconds else math.inf

    def for_tracing(self) -> float:
        """Until half of them are over, and no longer than without a total."""
        return max(0.01, min(TRACE_SECONDS, self.left() - self.seconds / 2))

    def left_as_option(self) -> dict:
        """Of the engine. It ends by itself; that little is for what comes behind it."""
        return {"total_seconds": max(1.0, self.left() - 0.5)} if self.seconds else {}

    def is_up(self, e: Error) -> bool:
        """Whether an error says that there was no more time."""
        data = e.diagnostic.get("data") or {}
        return bool(self.seconds) and (e.diagnostic["code"] == "TS0460" or bool(data.get("out_of_time")))


def time_is_up(text: str, **data) -> Error:
    return fail(
        "TS0460",
        "tune.time_is_up",
        text,
        helps=["give more total seconds: kernels that were found are kept, and the same call goes on from them"],
        data=data,
    )


def within(
    seconds: float,
    work: Callable[[], T],
    say: Callable[[float], None] = lambda seconds: None,
    raises: type[BaseException] = OutOfTime,
) -> T:
    """`work()`, in this thread, where Ctrl-C ends it as any other code. `say` is told every few seconds how long it took so far.
    Raises `raises`. In the main thread that ends a wait too, for a compiler say; elsewhere, and within a long call of a C function,
    it comes when that is over."""
    bound = _Bound(seconds, say, raises)
    main = threading.current_thread() is threading.main_thread()
    # None: a handler in C, which stays.
    by_signal = main and _wakes is not None and signal.getsignal(_wakes) is not None
    return _by_signal(bound, work) if by_signal else _by_exception(bound, work)


@dataclass
class _Bound:
    seconds: float
    say: Callable[[float], None]
    raises: type[BaseException]
    begin: float = field(default_factory=time.monotonic)
    over: threading.Event = field(default_factory=threading.Event)
    due: bool = False  # the exception is to be raised
    raised: weakref.ref | None = None  # the exception; gone once nothing handles it any more
    ended: bool = False  # nothing is raised any more

    def watched(self, end: Callable[[], None]) -> threading.Thread:
        """Runs until `over`; `end` is called when the time is."""

        def watch() -> None:
            while not self.over.wait(min(SAID_EVERY, max(0.01, self.begin + self.seconds - time.monotonic()))):
                if time.monotonic() - self.begin < self.seconds:
                    self.say(time.monotonic() - self.begin)
                    continue
                self.due = True
                end()
                self._wait_until_swallowed()

        return threading.Thread(target=watch, daemon=True)

    def _wait_until_swallowed(self) -> None:
        """What still unwinds, with its clean-up, is not interrupted: then the exception is alive."""
        until = time.monotonic() + _again
        while time.monotonic() < until and not self.over.wait(_LOOK_EVERY):
            if self.raised is not None and self.raised() is None:
                break
        self.raised = None


_bounds: list[_Bound] = []  # of the main thread, outermost first


def _on_signal(number: int, frame: object) -> None:
    """The outermost whose time is over raises its exception, in whatever the main thread does or waits for."""
    for bound in _bounds:
        if bound.due and not bound.ended:
            bound.due = False
            error = bound.raises()
            bound.raised = weakref.ref(error)
            try:
                raise error
            finally:
                del error  # else its traceback keeps it alive


def _by_signal(bound: _Bound, work: Callable[[], T]) -> T:
    thread = threading.get_ident()
    before = signal.signal(_wakes, _on_signal)
    _bounds.append(bound)
    watcher = bound.watched(lambda: signal.pthread_kill(thread, _wakes))
    try:
        watcher.start()
        return work()
    finally:
        # It may be raised once more just here.
        try:
            bound.ended = True
        except bound.raises:
            bound.ended = True
        # With those within it, whose own end it may have come into.
        at = _bounds.index(bound)
        for one in _bounds[at:]:
            one.ended = True
            one.over.set()
        del _bounds[at:]
        watcher.join()
        signal.signal(_wakes, before)


def _by_exception(bound: _Bound, work: Callable[[], T]) -> T:
    thread = ctypes.c_ulong(threading.get_ident())
    watcher = bound.watched(lambda: _raise_in(thread, ctypes.py_object(bound.raises)))
    watcher.start()
    try:
        return work()
    finally:
        while watcher.is_alive():
            try:
                bound.over.set()
                watcher.join()
            except bound.raises:
                pass
        # One that was asked for as the work ended is raised here. It is not taken back: CPython 3.11 then leaves its flag
        # set, and a program that is profiled runs one instruction forever.
        try:
            for _ in range(100 if bound.due else 0):
                pass
        except bound.raises:
            pass
