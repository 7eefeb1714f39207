"""`tessera optimize` from the model's file to the written module, with the real binary and nothing replaced."""

from __future__ import annotations

import json
import os

import pytest
from core import BINARY, SMALL, tessera


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    assert BINARY.exists(), f"{BINARY} is not built; run ./dev build, or name it in TESSERA_BINARY"
    return tmp_path_factory.mktemp("tessera")


@pytest.fixture(scope="module")
def optimize(home):
    model = home / "model.py"
    model.write_text(SMALL)

    def run(output: str, *more: str):
        arguments = ["--effort", "quick", "--peers", "eager", "--ablation", "false", *more, "-o", home / output]
        done = tessera(home, "optimize", model, *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)["report"], done.stderr

    return run


@pytest.fixture(scope="module")
def first(optimize):
    return optimize("first")


def placed(folder) -> dict[str, dict]:
    """The kernels that the written plan runs, by their pattern."""
    steps = json.loads((folder / "plan.json").read_text())["steps"]
    return {s["pattern"]["id"]: s["candidate"] for s in steps if s["kind"] in ("kernel", "call")}


def kinds(pattern: dict) -> set[str]:
    """Of the kernels that passed their gates; which of them is the fastest is up to the machine."""
    return {w["kind"] for w in pattern["winners"]}


def test_module_is_optimized(first, home):
    report, progress = first
    assert report["schema"] == "tessera.report/1"
    assert report["verification"]["ok"] is True, report["verification"]
    synthesized = {p["rule"] for p in report["patterns"] if "synthesized" in kinds(p)}
    assert synthesized == {"attention", "pointwise", "row_norm"}, report["patterns"]
    assert set(placed(home / "first")) == {p["id"] for p in report["patterns"] if p["active"]}
    for p in report["patterns"]:
        fastest = min((w["evidence"]["ms"] for w in p["winners"]), default=0)
        assert not p["active"] or 0 < fastest < p["eager_ms"], p
        assert p["active"] or p["inactive_because"], p
    assert report["module"]["times"]["tessera"]["ms"] > 0 and report["module"]["times"]["eager"]["ms"] > 0
    assert " tune " in progress
    assert json.loads((home / "first/report.json").read_text()) == report
    assert (home / "first/report.html").read_text().lstrip().lower().startswith("<!doctype html")


def test_second_run_reuses_everything(first, optimize, home):
    # Figures that a busy machine made unreliable are not kept, and such a pattern is searched again: the run after it has them.
    before, folder = first[0], "first"
    for name in ("second", "third", "fourth"):
        report, progress = optimize(name)
        if " tune " not in progress:
            break
        before, folder = report, name
    assert report["verification"]["ok"] is True
    assert " tune " not in progress and " build " not in progress, progress
    assert " reuse " in progress
    searched = [p for p in report["patterns"] if p.get("trial_count")]
    assert not searched
    # Which way the module runs is timed anew where the machine was busy; kernels that are placed both times are the same.
    one, other = placed(home / folder), placed(home / name)
    assert all(one[p] == other[p] for p in one.keys() & other.keys())
    known = [[(w["label"], w["evidence"]) for p in r["patterns"] for w in p["winners"]] for r in (before, report)]
    assert known[0] and known[0] == known[1]


def test_synthesized_kernels_in_their_places(first, optimize, home):
    """Whether they win or not: a module that runs them is verified."""
    report, _ = optimize("synthesized", "--only", "synthesized", "--place-all")
    assert report["verification"]["ok"] is True, report["verification"]
    kernels = placed(home / "synthesized")
    assert {c["kind"] for c in kernels.values()} == {"synthesized"}, kernels
    rules = {p["rule"] for p in report["patterns"] if p["id"] in kernels}
    assert rules == {"attention", "pointwise", "row_norm"}, report["patterns"]


def test_a_page_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x) + 1\n"
        "\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n"
    )
    (tmp_path / "out/report.html").mkdir(parents=True)
    options = ("--seconds", "1", "--peers", "eager", "--leftover", "eager", "-o", "out")
    done = tessera(tmp_path, "optimize", "model.py", *options)
    assert done.returncode == 0 and '"TS0710"' in done.stderr, done.stderr
    assert json.loads((tmp_path / "out/report.json").read_text())["schema"] == "tessera.report/1"


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="two searches: under TESSERA_TEST_ALL=1")
def test_other_sizes(first, home):
    """Optimized again and verified at two other sizes, where the effort is not the least; kept for the next run."""
    arguments = ["optimize", home / "model.py", "--effort", "default", "--peers", "eager", "--ablation", "false"]
    done = tessera(home, *arguments, "-o", home / "sizes")
    assert done.returncode == 0, done.stderr + done.stdout
    resizes = json.loads(done.stdout)["report"]["verification"]["resizes"]
    # A machine that is busy with other work may not come to the second in the 40 s for both, nor to a kernel of the first
    # in half of them.
    sizes = ["batch (dim 0: 2 → 1)", "sequence (dim 1: 32 → 24)"]
    enough = len(resizes) > 1 or sum(r["seconds"] for r in resizes) < 39
    assert [r["size"] for r in resizes][:2] == (sizes if enough else sizes[:1]), resizes
    late = [sum(s["seconds"] for s in resizes[: i + 1]) for i, r in enumerate(resizes) if not r["ok"]]
    reasons = {r["reason"] for r in resizes if not r["ok"]}
    assert all(seconds > 17 for seconds in late) and reasons <= {"the time for other sizes was spent"}, resizes
    verified = [r for r in resizes if r["ok"]]
    assert all(r["ok"] is True and r["kernels"] > 0 and r["rms_error"] < 1e-5 for r in verified), resizes
    again = tessera(home, *arguments, "-o", home / "sizes again")
    found = json.loads(again.stdout)["report"]["verification"]["resizes"]
    # Which way the module runs is timed anew; rows are those of the kernels that it runs with.
    if placed(home / "sizes again") == placed(home / "sizes"):
        assert found == resizes
        assert "at another size" not in again.stderr
    else:
        assert all(r["ok"] is not False or "time" in r["reason"] for r in found), found
    text = (home / "sizes/report.txt").read_text()
    assert "at another size" in text and max(map(len, text.splitlines())) <= 80
    if not verified:
        pytest.skip("this machine is too busy: no other size was verified in the time for them")


ROTARY = """
import torch
from torch import nn
from torch.nn import functional as F


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(64, 32)
        self.register_buffer("cos", torch.randn(48, 16))
        self.register_buffer("sin", torch.randn(48, 16))

    def forward(self, x):
        q, k, v = (p(x).view(2, 48, -1, 16).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 48, 64)]
"""


def test_rotated_queries_and_keys(home):
    """One product, one rotation of all heads, and attention that reads their columns where they are."""
    (home / "rotary.py").write_text(ROTARY)
    options = ["--effort", "quick", "--peers", "eager", "--ablation", "false", "--only", "synthesized", "--place-all"]
    done = tessera(home, "optimize", home / "rotary.py", *options, "-o", home / "rotary")
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)["report"]
    assert report["verification"]["ok"] is True, report["verification"]
    (rotation,) = (p for p in report["patterns"] if p["rule"] == "pointwise" and "neg" in p["summary"])
    (attention,) = (p for p in report["patterns"] if p["rule"] == "attention")
    kernels = placed(home / "rotary")
    assert set(kernels) == {rotation["id"], attention["id"]}, report["patterns"]
    assert {c["kind"] for c in kernels.values()} == {"synthesized"}, kernels
