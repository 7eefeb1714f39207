"""What the suites make of what they measure, with stand-ins for tessera and Inductor on a small module."""

import functools
import os
import time
from types import SimpleNamespace

import places  # noqa: F401  isort: skip
import accuracy
import beside
import clock
import device as devices
import fresh
import pytest
import run
import tessera
import torch
from suites import anytime, blocks, breadth, tables
from tessera import held

import doors


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.linear(x).relu()


class Time:
    """Passes by 0.1 ms when it is asked for, and as a stand-in says."""

    now = 0.0

    @classmethod
    def read(cls) -> float:
        cls.now += 1e-4
        return cls.now


class Composed(torch.nn.Module):
    """Stands for a composed module: right unless `wrong`, slower by `seconds` a call."""

    def __init__(self, module, seconds=0.0, wrong=0.0, plan=None, checkpoints=None):
        super().__init__()
        self.inner, self.seconds, self.wrong = module, seconds, wrong
        self.plan, self.leftover = plan or {"steps": []}, "eager"
        self.report = {"kind": "mixed", "stage_seconds": {"evaluate": 7.0}, "toolchain": {"nvcc_version": "13"}}
        self.report["patterns"] = [{"rule": "gemm", "summary": "s", "active": False, "inactive_because": "slower"}]
        if checkpoints is not None:
            self.report["checkpoints"] = checkpoints

    def forward(self, x):
        Time.now += self.seconds
        return self.inner(x) + self.wrong

    def status(self):
        kinds = (("synthesized", True), ("library", True), ("synthesized", False))
        return {
            "patterns": [{"kind": kind, "active": active} for kind, active in kinds],
            "runner": "kernels",
            "leftover_by": "eager",
            "fallbacks": [{"kind": "grad", "count": 1}],
        }


@pytest.fixture
def quick(monkeypatch):
    """Few rounds, and doors that compile nothing."""
    for name, value in (("LEAST_ROUNDS", 5), ("MOST_ROUNDS", 9), ("WARM_SECONDS", 0.0), ("TURN_MS", 4.0), ("TURNS", 3)):
        monkeypatch.setattr(clock, name, value)
    monkeypatch.setattr(beside, "Clock", functools.partial(clock.Clock, now=Time.read))
    asked = {}

    def optimize(module, inputs, device, options):
        asked["optimize"] = options
        return doors.of_composed(Composed(module, 0.004), 31.5)

    def compiled(module, inputs, device, options):
        asked["compile"] = (options, os.environ.get("TESSERA_HOME"))
        of = doors.of_composed(Composed(module, 0.001, wrong=0.25), 2.0)
        whole = {"runner": "inductor", "reason": "nothing to gain", "status": None}
        return doors.Opened(of.way, of.seconds, lambda: [*of.states(), whole], of.report)

    def inductor(module, inputs, device, mode=None):
        return doors.Opened(Composed(module, 0.002), 20.0)

    monkeypatch.setattr(doors, "optimize", optimize)
    monkeypatch.setattr(doors, "compile", compiled)
    monkeypatch.setattr(doors, "inductor", inductor)
    return asked


def measured(*arguments, module=None, products=True, draw=lambda: (torch.randn(2, 16),)):
    args = run.parse(["breadth", "L1-14", *arguments])
    options = SimpleNamespace(**run.options_of(args))
    return breadth.measure_module("L1-14", "fp32", (module or Small()).eval(), draw, products, options, "cpu")


def test_a_row_of_breadth(quick):
    first, second = measured("--jobs", "3")
    assert quick["optimize"] == {"jobs": 3, "seconds": 30.0} and quick["compile"][0] == {"jobs": 3, "seconds": 30.0}
    assert (first["case"], first["precision"], first["door"]) == ("L1-14", "fp32", "optimize")
    assert (
        first["search_seconds"] == 30.0 and first["seconds_to_optimize"] == 31.5 and first["inductor_seconds"] == 20.0
    )
    for mode in ("synchronized", "back_to_back"):
        # Eager takes no time of its own, the stand-in for Inductor 2 ms, ours 4 ms and 1 ms.
        assert first[mode]["best"] == second[mode]["best"] == "eager"
        assert first[mode]["ratio"] == first[mode]["eager"]["ms"] / first[mode]["tessera"]["ms"] < 0.1
        assert first[mode]["tessera"]["ms"] == pytest.approx(4.0, abs=0.2)
        assert first[mode]["inductor"]["ms"] == pytest.approx(2.0, abs=0.2)
        assert second[mode]["tessera"]["ms"] == pytest.approx(1.0, abs=0.2)
    assert first["kernels"] == {"synthesized": 1, "library": 1} and first["ours"]
    assert (first["runner"], first["leftover"]) == ("kernels", "eager")
    assert second["runner"] == "inductor+kernels" and second["graphs"] == 2 and second["why"] == "nothing to gain"
    assert first["fallbacks"] == {"grad": 1}
    assert first["inactive"] == [{"rule": "gemm", "summary": "s", "because": "slower"}]
    # What is wrong shows, beside what eager is off.
    assert first["errors"]["tessera"]["rms_error"] == first["errors"]["eager"]["rms_error"] < 1e-5
    assert second["errors"]["tessera"]["rms_error"] > 0.1
    assert second["started_from"] == "what `optimize` left"
    assert "0.25" not in breadth.line(first) and "kind" in first and first["toolchain"] == {"nvcc_version": "13"}


def test_the_second_door_can_start_from_nothing(quick, monkeypatch, tmp_path):
    monkeypatch.setenv("TESSERA_HOME", str(tmp_path / "tessera"))
    measured()
    assert quick["compile"][1] == str(tmp_path / "tessera")
    _, second = measured("--second-door", "empty")
    assert second["started_from"] == "nothing" and quick["compile"][1] not in (None, str(tmp_path / "tessera"))
    (only,) = measured("--doors", "compile")
    assert only["door"] == "compile" and only["started_from"] == "nothing"


def test_each_way_has_a_copy_of_its_own(quick, monkeypatch):
    seen, module = [], Small()
    before = {n: getattr(doors, n) for n in ("optimize", "compile", "inductor")}
    for name, door in before.items():
        monkeypatch.setattr(doors, name, lambda copy, *more, door=door: seen.append(copy) or door(copy, *more))
    measured(module=module)
    weights = {m.linear.weight.data_ptr() for m in (*seen, module)}
    assert len(weights) == 4 and all(torch.equal(m.linear.weight, module.linear.weight) for m in seen)


def test_a_door_that_does_not_open_costs_its_own_row_alone(quick, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("no kernel\nmore")

    monkeypatch.setattr(doors, "optimize", broken)
    first, second = measured()
    assert first["failed"] == "RuntimeError: no kernel" and second["ratio"] and breadth.line(first)
    monkeypatch.setattr(doors, "inductor", broken)
    second = measured()[1]
    assert second["synchronized"]["best"] == "eager" and second["absent"]["inductor"] == "RuntimeError: no kernel"


def test_the_list_of_products_is_held_to_what_a_forward_calls(quick):
    with pytest.raises(breadth.Unlisted, match="linear"):
        measured(products=False)
    with pytest.raises(breadth.Unlisted):
        measured(module=torch.nn.ReLU(), products=True)


def test_flags_that_changed_are_no_measurement(quick, monkeypatch):
    def careless(module, inputs, device, options):
        torch.set_float32_matmul_precision("medium")
        return doors.of_composed(Composed(module))

    monkeypatch.setattr(doors, "optimize", careless)
    try:
        with pytest.raises(breadth.FlagsChanged):
            measured()
    finally:
        torch.set_float32_matmul_precision("highest")


def row(case, sync, b2b, **more):
    modes = {"synchronized": {"ratio": sync}, "back_to_back": {"ratio": b2b}}
    return {"case": case, "door": "optimize", "search_seconds": 30.0, "products": False, "ours": False, **modes, **more}


def test_the_summary_of_breadth():
    found = [row("L1-14", 1.0, 2.0, products=True, ours=True), row("L1-33", 4.0, 0.5, memory_ratio=1.25)]
    found += [row("L2-70", 1.0, 1.0, products=True), {"case": "L3-8", "search_seconds": 30.0, "failed": "reason"}]
    text = breadth.summary(found)
    assert text[0] == "optimize, 30 s: 3 of 32 cases, failed: L3-8"
    assert "synchronized: geomean 1.587" in text[1] and "below 0.98: none" in text[1]
    assert "back_to_back: geomean 1.000" in text[2] and "below 0.98: L1-33 0.500" in text[2]
    assert "products (2 of 12)" in text[3] and "1 run kernels of ours (50%" in text[3]
    assert "1.250" in text[4]


def test_errors_are_relative_and_of_all_results():
    right = [torch.tensor([3.0, 4.0]).double(), torch.tensor([1, 2])]
    off = [torch.tensor([3.0, 4.5]), torch.tensor([1, 2])]
    assert accuracy.errors(off, right) == {"rms_error": pytest.approx(0.1), "max_error": pytest.approx(0.5 / 3.5)}
    assert accuracy.errors([right[0].float(), torch.tensor([1, 4])], right)["rms_error"] > 0.5
    nan = accuracy.errors([torch.tensor([3.0, float("nan")]), right[1]], right)
    assert nan["rms_error"] != nan["rms_error"] and nan["max_error"] != nan["max_error"]
    with pytest.raises(ValueError, match="shapes"):
        accuracy.errors(off[:1], right)


def test_errors_in_parts_are_those_of_the_whole(monkeypatch):
    d, r = torch.randn(100), torch.randn(100).double()
    whole = accuracy.errors([d], [r])
    monkeypatch.setattr(accuracy, "CHUNK", 7)
    assert accuracy.errors([d], [r]) == pytest.approx(whole)


def test_a_forward_that_draws_has_no_errors():
    class Noise(torch.nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    x = (torch.randn(8),)
    assert beside.errors(Noise(), {"eager": Noise()}, x)["absent"].startswith("the forward draws")
    assert "rms_error" in beside.errors(Small(), {"eager": Small()}, (torch.randn(1, 16),))["eager"]


def test_graphs_are_timed_on_inputs_that_are_copied_in(monkeypatch):
    """Without a GPU: what captures and replays is stood in for."""
    replayed = []

    class Captured:
        def __init__(self, way, static, pool):
            if way == "refuses":
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            self.way, self.static = way, static

        def __call__(self, *ignored):
            replayed.append((self.way, float(self.static[0])))
            Time.now += 0.002 if self.way == "slow" else 0.001

    monkeypatch.setattr(devices, "Captured", Captured)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    for name, value in (("LEAST_ROUNDS", 6), ("WARM_SECONDS", 0.0), ("TURNS", 1)):
        monkeypatch.setattr(clock, name, value)
    sets, absent = [(torch.tensor(1.0), 7), (torch.tensor(2.0), 7)], {}
    ways = {"ours": "quick", "eager": "slow", "inductor": "refuses"}
    found = beside._captured_times(ways, sets, clock.Clock(lambda: None, Time.read), 1e-6, absent)
    assert absent == {"inductor": "not captured: RuntimeError: operation not permitted when stream is capturing"}
    assert {x for way, x in replayed} == {1.0, 2.0} and float(sets[0][0]) == 1.0, "a set was written over"
    for mode in ("graph_synchronized", "graph_back_to_back"):
        part = beside.compared(found[mode], "ours")
        assert part["best"] == "eager" and part["ratio"] == pytest.approx(2.0, rel=0.1) and "inductor" not in part
    assert beside.compared(found["graph_synchronized"], "inductor") is None


def test_memory_is_what_a_way_keeps_and_what_a_call_needs(monkeypatch):
    allocated = iter((100, 100, 160, 130))
    monkeypatch.setattr(devices, "settled", lambda: next(allocated))
    monkeypatch.setattr(devices, "peak_of", lambda way, inputs: way)
    module, x = torch.nn.Linear(4, 4, bias=False), torch.zeros(2, 4)
    memory = beside.Memory(module, (x,), "cuda")
    memory.made("eager")
    memory.made("ours")  # 60 more are allocated than before
    memory.made("inductor")  # some was freed: it keeps nothing
    assert memory.figures({"eager": 8, "ours": 5, "inductor": 9}) == {
        "eager": 64 + 32 + 8, "ours": 64 + 32 + 60 + 5, "inductor": 64 + 32 + 9
    }  # fmt: skip
    assert beside.Memory(module, (x,), "cpu").figures({"eager": 8}) is None


def test_input_sets_rotate_beyond_the_cache():
    small = devices.draw_sets(lambda: (torch.randn(8), 3))
    assert len(small) == devices.MOST_SETS and not torch.equal(small[0][0], small[1][0]) and small[0][1] == 3
    again = devices.draw_sets(lambda: (torch.randn(8), 3))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(small, again, strict=True)), "seeds are fixed"
    assert len(devices.draw_sets(lambda: (torch.empty(devices.SET_BYTES // 8),))) == 2


# anytime


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
    with pytest.raises(anytime.NoCheckpoints, match="no plans of earlier moments.*the option `checkpoints"):
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
    assert tables.search_seconds({"stage_seconds": {"evaluate": 12.34}}, 0) == 12.3
    assert tables.search_seconds({"stage_seconds": {"evaluate": 12.34}}, 30.0) == 30.0
