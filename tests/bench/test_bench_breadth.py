"""What `breadth` makes of what it measures, with stand-ins for tessera and Inductor on a small module."""

from types import SimpleNamespace

import places  # noqa: F401  isort: skip
import accuracy
import beside
import clock
import device as devices
import pytest
import run
import torch
from standins import Composed, Small, Time
from suites import breadth

import doors


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


def test_copies_of_recurrent_layers_lie_as_the_originals(monkeypatch):
    module, gathered = torch.nn.Sequential(torch.nn.LSTM(4, 4), torch.nn.Linear(4, 4)), []
    monkeypatch.setattr(torch.nn.RNNBase, "flatten_parameters", lambda layer: gathered.append(layer))
    module[0].flatten_parameters()
    made = devices.copy_of(module)
    assert gathered == [module[0], made[0]] and made[0] is not module[0]


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
    return (
        {
            "case": case,
            "door": "optimize",
            "search_seconds": 30.0,
            "products": False,
            "ours": False,
            "seconds_to_optimize": 40.0,
        }
        | modes
        | more
    )


def test_the_summary_of_breadth():
    plain = {"baseline": [{"runner": "inductor", "seconds": 6.0, "reason": ""}]}
    found = [row("L1-14", 1.0, 2.0, products=True, ours=True), row("L1-33", 4.0, 0.5, memory_ratio=1.25, settled=plain)]
    found += [row("L2-70", 1.0, 1.0, products=True), {"case": "L3-8", "search_seconds": 30.0, "failed": "reason"}]
    text = breadth.summary(found)
    assert text[0] == "optimize, 30 s: 3 of 32 cases, failed: L3-8"
    assert "synchronized: geomean 1.587" in text[1] and "below 0.98: none" in text[1]
    assert "back_to_back: geomean 1.000" in text[2] and "below 0.98: L1-33 0.500" in text[2]
    assert "products (2 of 12)" in text[3] and "1 run kernels of ours (50%" in text[3]
    assert "median 10.0, most 10.0 (L1-14)" in text[4], text[4]  # 4 s of L1-33: 40 - 30 - 6
    assert "1.250" in text[5]
    assert breadth.seconds_beyond(found[1]) == 4.0
    assert breadth.seconds_beyond(found[1] | {"started_from": "what `optimize` left"}) is None


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
