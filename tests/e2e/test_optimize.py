"""`tessera optimize` from the model's file to the written module, with the real binary and nothing replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("TESSERA_BINARY", ROOT / "build/bin/tessera"))

SMALL = """
import sys
sys.path.insert(0, {examples!r})
import torch
from minigpt import Model as Block

class Model(Block):
    pass

def get_init_inputs():
    return [64, 4, 32]

def get_inputs():
    return [torch.randn(2, 32, 64)]
"""

UNTRACEABLE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x if float(x.sum()) > 0 else -x

def get_inputs():
    return [torch.randn(4)]
"""


def tessera(home: Path, *arguments) -> subprocess.CompletedProcess:
    """One command with --json; `home` holds its caches and its registry. OpenMP's threads wait asleep, so that this
    ends in time on a machine that builds beside it."""
    env = dict(os.environ, TESSERA_HOME=str(home), TESSERA_PYTHON=sys.executable, OMP_WAIT_POLICY="passive")
    return subprocess.run(
        [BINARY, *map(str, arguments), "--json"], env=env, cwd=home, capture_output=True, text=True, timeout=500
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    assert BINARY.exists(), f"{BINARY} is not built; run ./dev build, or name it in TESSERA_BINARY"
    return tmp_path_factory.mktemp("tessera")


@pytest.fixture(scope="module")
def optimize(home):
    model = home / "model.py"
    model.write_text(SMALL.format(examples=str(ROOT / "examples")))

    def run(output: str):
        done = tessera(
            home, "optimize", model, "--effort", "quick", "--peers", "eager", "--ablation", "false", "-o", home / output
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)["report"], done.stderr

    return run


@pytest.fixture(scope="module")
def first(optimize):
    return optimize("first")


def active(report: dict) -> dict[str, str]:
    """The kind of the placed kernel of every active pattern."""
    return {p["id"]: p["winners"][0]["kind"] for p in report["patterns"] if p["active"]}


def test_module_is_optimized(first, home):
    report, progress = first
    assert report["schema"] == "tessera.report/1"
    assert report["verification"]["ok"] is True, report["verification"]
    assert "synthesized" in active(report).values(), report["patterns"]
    assert report["module"]["times"]["tessera"]["ms"] > 0 and report["module"]["times"]["eager"]["ms"] > 0
    assert " tune " in progress
    assert json.loads((home / "first/report.json").read_text()) == report
    assert (home / "first/report.html").read_text().lstrip().lower().startswith("<!doctype html")
    assert json.loads((home / "first/plan.json").read_text())["steps"]


def test_second_run_reuses_everything(first, optimize):
    report, progress = optimize("second")
    assert report["verification"]["ok"] is True
    assert " tune " not in progress and " build " not in progress, progress
    assert " reuse " in progress
    searched = [p for p in report["patterns"] if p.get("trial_count")]
    assert not searched and active(report)


def refused(home: Path, *arguments) -> tuple[int, dict]:
    done = tessera(home, "optimize", *arguments)
    return done.returncode, json.loads(done.stdout or done.stderr)


def test_missing_file(home):
    code, diagnostic = refused(home, home / "absent.py")
    assert code == 3 and diagnostic["code"] == "TS0001" and "absent.py" in diagnostic["message"]


def test_missing_class(first, home):
    code, diagnostic = refused(home, f"{home / 'model.py'}:Modell")
    assert code == 3 and "Modell" in diagnostic["message"]
    assert "Model" in diagnostic["found"] + " ".join(diagnostic["help"])


def test_untraceable_module(home):
    (home / "untraceable.py").write_text(UNTRACEABLE)
    code, diagnostic = refused(home, home / "untraceable.py")
    assert code == 3 and diagnostic["help"], diagnostic
