"""A search that is ended leaves no process behind; one that is asked to stop keeps the best so far, and goes on later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from core import BINARY, SMALL, environment, hear_signals


class Search:
    """A running `tessera optimize`, its progress as it comes, and the processes that it started."""

    def __init__(self, home: Path, output: str = "out"):
        (home / "model.py").write_text(SMALL)
        self.lines: list[str] = []
        self.family: set[int] = set()
        command = [BINARY, "optimize", home / "model.py", "--effort", "default", "--seconds", "200", "--peers", "eager"]
        command += ["--resizes", "false", "--json", "-o", home / output]
        self.process = subprocess.Popen(
            list(map(str, command)),
            env=environment(home),
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=hear_signals,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)

    def wait_for(self, words: str, times: int = 1, limit: float = 240) -> None:
        end = time.monotonic() + limit
        while sum(words in line for line in self.lines) < times:
            assert time.monotonic() < end and self.process.poll() is None, "".join(self.lines)
            time.sleep(0.02)

    def at_its_end(self, limit: float = 300) -> str:
        """What it prints at the end. communicate() would read its stderr beside the reader, and wait for what that one took."""
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        out = self.process.stdout.read()
        self.process.wait()
        timer.cancel()
        return out

    def descendants(self) -> set[int]:
        found, pending = set(), [self.process.pid]
        while pending:
            for child in _children(pending.pop()):
                if child not in found:
                    found.add(child)
                    pending.append(child)
        return found


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return [int(c) for t in tasks for c in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _python_among(pids: set[int]) -> set[int]:
    """The tracer and the evaluators: what waits or computes until somebody ends it."""
    found = set()
    for pid in pids:
        try:
            if b"tessera." in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _gone(pids: set[int], limit: float = 20) -> set[int]:
    end = time.monotonic() + limit
    while (left := {p for p in pids if _runs(p)}) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def test_nothing_outlives_a_killed_search(tmp_path):
    search = Search(tmp_path)
    search.wait_for("tune", times=3)
    family = _python_among(search.descendants())
    assert len(family) == 2, "a tracer and an evaluator"
    search.process.kill()
    search.process.wait()
    assert not _gone(family)


def test_a_second_signal_ends_everything_at_once(tmp_path):
    search = Search(tmp_path)
    search.wait_for("tune", times=3)
    family = search.descendants()
    search.process.send_signal(signal.SIGTERM)
    search.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    search.process.send_signal(signal.SIGTERM)
    assert search.process.wait(timeout=30) == -signal.SIGTERM
    assert not _gone(family)


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_stopped_search_keeps_the_best_and_goes_on(tmp_path, which):
    if which != signal.SIGTERM and not os.environ.get("TESSERA_TEST_ALL"):
        pytest.skip("under TESSERA_TEST_ALL=1: signals take one way")
    search = Search(tmp_path)
    search.wait_for(" measured: ", times=3)
    while not any((tmp_path / "kernels").rglob("*.so")):  # libraries are measured first
        assert search.process.poll() is None
        time.sleep(0.1)
    family = _python_among(search.descendants())
    search.process.send_signal(which)
    search.wait_for("stopping with the best so far", limit=5)
    out = search.at_its_end()
    assert search.process.returncode == 0, "".join(search.lines)
    assert not _gone(family)
    report = json.loads(out)["report"]
    assert report["stopped"] is True and report["verification"]["ok"] is True
    assert (tmp_path / "out/composed.py").exists() and (tmp_path / "out/report.html").exists()
    if which != signal.SIGTERM:
        return
    # What was built is not built again.
    built = {f: f.stat().st_mtime_ns for f in (tmp_path / "kernels").rglob("*.so")}
    again = Search(tmp_path, "again")
    again.wait_for(" measured: ", times=2)
    again.process.send_signal(signal.SIGINT)
    again.at_its_end()
    assert again.process.returncode == 0
    assert built and all(f.stat().st_mtime_ns == at for f, at in built.items())
