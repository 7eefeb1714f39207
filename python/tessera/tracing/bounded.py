"""Work that is given up after so many seconds: torch.export takes minutes where a loop unrolls to some 10,000 ops."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TRACE_SECONDS = 60.0
SAID_EVERY = 5.0  # seconds
_again = 5.0  # seconds: after which an exception that some code of torch's swallowed is raised once more
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


class OutOfTime(BaseException):
    """Raised in the thread that works. No Exception: those torch turns into others."""


def within(seconds: float, work: Callable[[], T], say: Callable[[float], None]) -> T:
    """`work()`, in this thread, where Ctrl-C ends it as any other code. `say` is told every few seconds how long it took so far.
    Raises OutOfTime: what cannot be interrupted, as a long call of a C function, is waited for."""
    thread, over = ctypes.c_ulong(threading.get_ident()), threading.Event()
    begin, asked = time.monotonic(), threading.Event()

    def watch() -> None:
        while not over.wait(min(SAID_EVERY, max(0.01, begin + seconds - time.monotonic()))):
            if time.monotonic() - begin < seconds:
                say(time.monotonic() - begin)
                continue
            asked.set()
            _raise_in(thread, ctypes.py_object(OutOfTime))
            if over.wait(_again):
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return work()
    finally:
        while watcher.is_alive():
            try:
                over.set()
                watcher.join()
            except OutOfTime:
                pass
        # One that was asked for as the work ended is raised here. It is not taken back: CPython 3.11 then leaves its flag
        # set, and a program that is profiled runs one instruction forever.
        try:
            for _ in range(100 if asked.is_set() else 0):
                pass
        except OutOfTime:
            pass
