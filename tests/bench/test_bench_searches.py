"""What `anytime` and the second run make of searches, with stand-ins for them."""

import os
import time
from types import SimpleNamespace

import places  # noqa: F401  isort: skip
import fresh
import pytest
import run
import tessera
import torch
from standins import Composed, Small
from suites import anytime, blocks, tables
from tessera.tracing import held


@pytest.fixture
def searched(quick, monkeypatch):
    """A search that improves at 30 s and at its end: plans name the sleep of a call."""
    asked = {}
    plans = {seconds: {"steps": [], "sleep": 0.004 if seconds < 30 else 0.002} for seconds in anytime.CHECKPOINTS}

    def optimize(module, inputs, **options):
        asked.update(options)
        moments = [{"seconds": s, "plan": plans[s]} for s in options["checkpoints"]]
        return Composed(module, plan={"steps": [], "sleep": 0.001, "leftover_runner": "inductor"}, checkpoints=moments)

    def hold(module, args, kwargs):
        def compose(plan, leftover):
            assert leftover == plan.get("leftover_runner", "eager")
            return Composed(module, plan["sleep"], plan=plan)

        return SimpleNamespace(compose=compose)

    monkeypatch.setattr(tessera, "optimize", optimize, raising=False)
    monkeypatch.setattr(held, "hold", hold)
    return asked


STOPPED = {"plan": {"steps": [], "sleep": 0.003}, "report": {"checkpoints": []}, "seconds_to_optimize": 33.3}


def test_the_plans_of_all_moments_are_measured_together(searched):
    found = anytime.measure_module(
        "minigpt", "bf16", Small().eval(), lambda: (torch.randn(2, 16),), {"jobs": 2}, STOPPED, "cpu"
    )
    assert searched == {"checkpoints": [15, 30, 60, 120, 240], "jobs": 2}
    assert [(r["stop"], r["search_seconds"]) for r in found] == [
        ("checkpoint", 15), ("checkpoint", 30), ("checkpoint", 60), ("checkpoint", 120), ("checkpoint", 240),
        ("end", 7.0), ("real", 30),
    ]  # fmt: skip
    ms = [r["synchronized"]["tessera"]["ms"] for r in found]
    # Equal plans are one and the same figure.
    assert ms == [pytest.approx(x, abs=0.2) for x in (4, 2, 2, 2, 2, 1, 3)] and ms[1] == ms[2] == ms[3] == ms[4]
    assert [r["same_plan_as"] for r in found] == [15, 30, 30, 30, 30, 7.0, 30]
    assert found[6]["seconds_to_optimize"] == 33.3 and found[0]["seconds_to_optimize"] < 30
    part = found[5]["synchronized"]
    assert part["ratio"] == pytest.approx(part["eager"]["ms"] / part["tessera"]["ms"])  # of the better of the two
    inductors = [part[name]["ms"] for name in ("inductor", "inductor-max-autotune")]
    assert part["ratio_best_inductor"] == pytest.approx(min(inductors) / part["tessera"]["ms"])
    assert all(anytime.line(r) for r in found) and found[0]["runner"] == "kernels"
    goals = anytime.summary(found)
    assert any(text.startswith("minigpt at 30 (real)") for text in goals), goals
    assert any(text.startswith("minigpt at end (end)") and "goal 1.8" in text for text in goals), goals


def test_a_product_without_checkpoints_is_told_plainly(quick, monkeypatch):
    monkeypatch.setattr(fresh, "run", lambda request, environment: {"report": {"kind": "none"}, "plan": {}})
    options = SimpleNamespace(**run.options_of(run.parse(["anytime", "minigpt"])))
    with pytest.raises(anytime.NoCheckpoints, match=r"no plans of earlier moments.*the option `checkpoints"):
        anytime.measure("minigpt", "bf16", options)
    with pytest.raises(anytime.NoCheckpoints):
        anytime.checkpoints_of({"checkpoints": [{"seconds": 3}]})
    refusals = {
        "Error: error[TS0013]: there is no option `checkpoints`": anytime.NoCheckpoints,
        "it died": fresh.Failed,
    }
    for text, kind in refusals.items():

        def refused(request, environment, text=text):
            raise fresh.Failed(text)

        monkeypatch.setattr(fresh, "run", refused)
        with pytest.raises(kind, match=text.split("[")[0]):
            anytime.measure("minigpt", "bf16", options)
    assert anytime.checkpoints_of({"checkpoints": []}) == []


def test_the_search_that_is_stopped_starts_from_nothing(quick, monkeypatch):
    seen = {}

    def run_fresh(request, environment):
        seen.update(request, home=environment["TESSERA_HOME"], other=os.environ.get("TESSERA_HOME"))
        raise fresh.Failed("enough")

    monkeypatch.setattr(fresh, "run", run_fresh)
    options = SimpleNamespace(**run.options_of(run.parse(["anytime", "minigpt", "--jobs", "4"])))
    with pytest.raises(fresh.Failed):
        anytime.measure("minigpt", "bf16", options)
    assert seen["optimize"] == {"jobs": 4, "seconds": 30, "checkpoints": [15]}
    assert seen["home"] != seen["other"]


# blocks


def test_the_second_run_has_a_row(monkeypatch):
    asked = {}

    def again(request, environment):
        asked.update(request)
        report = {"kind": "mixed", "stage_seconds": {"evaluate": 0.1}}
        return {"seconds_to_optimize": 6.789, "seconds_to_first_result": 7.0, "built": [], "report": report, "plan": {}}

    monkeypatch.setattr(fresh, "run", again)
    args = run.parse(["blocks", "llama-1x2048", "--effort", "max", "--no-resizes"])
    options = SimpleNamespace(**run.options_of(args))
    first = {"seconds_to_optimize": 460.0, "device": "a GPU", "commit": "c", "search_seconds": 400.0, "ms": 1.2}
    made = blocks.second_run("llama-1x2048", "bf16", options, first)
    assert asked["optimize"] == {"precision": "bf16", "resizes": False, "effort": "max"}
    assert made["peer"] == "second run" and made["seconds_to_optimize"] == 6.79 and made["built"] == 0
    assert made["first_seconds_to_optimize"] == 460.0 and made["device"] == "a GPU" and "ms" not in made
    assert "callable in 6.79 s, 0 files compiled" in blocks.line(made)
    assert blocks.summary([made]) == ["slowest second run: 6.8 s"]

    def broken(request, environment):
        raise fresh.Failed("it died")

    monkeypatch.setattr(fresh, "run", broken)
    assert "it died" in blocks.line(blocks.second_run("llama-1x2048", "bf16", options, first))


def test_a_fresh_process_says_what_it_compiled(monkeypatch, tmp_path):
    for name in ("TESSERA_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "old.so").write_text("")
    asked = {}

    def optimize(module, inputs, **options):
        asked.update(options)
        time.sleep(0.05)
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "new.so").write_text("")
        (tmp_path / "cache" / "note.json").write_text("")
        return Composed(module)

    monkeypatch.setattr(tessera, "optimize", optimize, raising=False)
    monkeypatch.setattr(blocks, "build", lambda case, precision, device: (Small(), (torch.randn(2, 16),)))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = fresh.optimized({"suite": "blocks", "case": "x", "precision": "fp32", "optimize": {"seconds": 5}})
    assert found["built"] == ["new.so"] and asked == {"seconds": 5}
    assert 0.05 <= found["seconds_to_optimize"] <= found["seconds_to_first_result"]


def test_a_fresh_process_that_fails_says_why():
    with pytest.raises(fresh.Failed, match="no such case"):
        fresh.run({"suite": "blocks", "case": "none", "precision": "bf16", "optimize": {}}, dict(os.environ))


def test_rows_of_a_report():
    report = {
        "kind": "mixed",
        "module": {"times": {"tessera": {"ms": 2.0, "ci95": 0.1}, "eager": {"ms": 3.0}}, "absent": {"tensorrt": "not here"}},
        "verification": {"max_error": 0.1, "rms_error": 0.01, "baseline_rms_error": 0.02},
        "patterns": [
            {"rule": "gemm", "active": True, "winners": [
                {"kind": "library", "label": "l", "evidence": {"ms": 1.0}},
                {"kind": "synthesized", "label": "s", "evidence": {"ms": 1.1}},
            ]},
            {"rule": "row_norm", "active": False, "winners": []},
        ],
    }  # fmt: skip
    cublas, rt = tables.of_report("L1-1", "bf16", report, ["cublas", "tensorrt"], "synthesized")
    assert cublas["ratio"] == 1.5 and cublas["kernels"][0]["label"] == "s" and len(cublas["kernels"]) == 1
    assert rt["ratio"] is None and rt["absent"] == "not here"
    assert "why" not in cublas
    assert tables.search_seconds({"stage_seconds": {"evaluate": 12.34}}, 0) == 12.3
    assert tables.search_seconds({"stage_seconds": {"evaluate": 12.34}}, 30.0) == 30.0


def test_a_row_without_a_kernel_of_the_kind_says_why():
    patterns = [
        {"id": "p01", "rule": "gemm", "active": False, "inactive_because": "8 gave wrong results", "winners": []},
        {"id": "p02", "rule": "gemm", "active": False, "inactive_because": "8 gave wrong results", "winners": []},
        {
            "id": "p03",
            "rule": "row_norm",
            "active": True,
            "winners": [{"kind": "library", "label": "l", "evidence": {"ms": 1.0}}],
        },
    ]
    (row,) = tables.of_report("L1-1", "fp32", {"patterns": patterns}, ["eager"], "synthesized")
    assert row["why"] == "p01 gemm, p02 gemm: 8 gave wrong results; p03 row_norm: its kernel is not synthesized"
    (row,) = tables.of_report("L1-1", "fp32", {"patterns": patterns}, ["eager"], "")
    assert "why" not in row
    (row,) = tables.of_report("L1-1", "fp32", {"patterns": []}, ["eager"], "")
    assert row["why"] == "no pattern was found"
