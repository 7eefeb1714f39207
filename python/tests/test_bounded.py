"""Work with a bound of time, in a process of its own: a fault of it stops the interpreter."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os, signal, subprocess, threading, time
from tessera.tracing.bounded import OutOfTime, TimeIsUp, within

def for_seconds(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "ended"

def outcome(seconds, bound):
    try:
        return within(bound, lambda: for_seconds(seconds), lambda _: None)
    except OutOfTime:
        return "given up"

assert outcome(0.0, 5.0) == "ended"
assert outcome(5.0, 0.05) == "given up"
for _ in range(200):  # ends as it is given up: either is right, and nothing of it is raised later
    assert outcome(0.0201, 0.02) in ("ended", "given up")
for_seconds(0.1)

# A wait ends as well: for another thread, for a process, for a file.
held = threading.Lock()
held.acquire()
begin = time.monotonic()
for wait in (
    held.acquire,
    threading.Event().wait,
    lambda: subprocess.run(["sleep", "30"]),
    lambda: os.read(os.pipe()[0], 1),
):
    try:
        within(0.1, wait, raises=TimeIsUp)
        raise AssertionError(wait)
    except TimeIsUp:
        pass
assert time.monotonic() - begin < 10, time.monotonic() - begin

# What swallows the exception is ended again at once; what handles it is not interrupted.
def swallows():
    for _ in range(3):
        try:
            for_seconds(30.0)
        except OutOfTime:
            pass

def cleans_up():
    try:
        for_seconds(30.0)
    except OutOfTime:
        for_seconds(0.4)
        cleaned.append(True)
        raise

cleaned, begin = [], time.monotonic()
for work in (swallows, cleans_up):
    try:
        within(0.1, work)
    except OutOfTime:
        pass
assert cleaned and time.monotonic() - begin < 4, (cleaned, time.monotonic() - begin)

# The time of the whole ends the part, which does not take it for its own.
try:
    within(0.1, lambda: outcome(20.0, 10.0), raises=TimeIsUp)
    raise AssertionError
except TimeIsUp:
    pass
assert signal.getsignal(signal.SIGURG) == signal.SIG_DFL
print("all")
"""


def _run(*how: str) -> str:
    return subprocess.run(
        [sys.executable, *how], input=_PROGRAM, capture_output=True, text=True, timeout=60, check=True
    ).stdout


def test_work_ends_or_is_given_up():
    assert _run("-") == "all\n"


def test_a_program_that_is_profiled_goes_on(tmp_path):
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert "all\n" in _run("-m", "cProfile", str(tmp_path / "program.py"))
