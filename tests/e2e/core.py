"""The real binary for end-to-end tests, with a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("TESSERA_BINARY", ROOT / "build/bin/tessera"))

SMALL = f"""
import sys
sys.path.insert(0, {str(ROOT / "examples")!r})
import torch
from minigpt import Model as Block

class Model(Block):
    pass

def get_init_inputs():
    return [64, 4, 32]

def get_inputs():
    return [torch.randn(2, 32, 64)]
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    """`home` holds its caches and its registry. OpenMP's threads wait asleep, so that this ends in time on a machine that
    builds beside it."""
    return {
        **os.environ,
        "TESSERA_HOME": str(home),
        "TESSERA_PYTHON": sys.executable,
        "OMP_WAIT_POLICY": "passive",
        **more,
    }


def hear_signals() -> None:
    """Before a process that a test signals is started: whoever runs the tests in the background or under nohup has signals
    ignored, and children inherit that."""
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, signal.SIG_DFL)


def tessera(home: Path, *arguments, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    """One command with --json."""
    return subprocess.run(
        [BINARY, *map(str, arguments), "--json"],
        env=environment(home, **(env or {})),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=500,
    )


def refused(home: Path, *arguments, env: dict[str, str] | None = None) -> tuple[int, dict]:
    """The exit code and the diagnostic of `tessera optimize` with a wrong input."""
    done = tessera(home, "optimize", *arguments, env=env)
    return done.returncode, json.loads(done.stdout or done.stderr)
