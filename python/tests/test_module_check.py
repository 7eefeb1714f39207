"""The composed module end to end: verified against fp64, measured beside its peers."""

from __future__ import annotations

import copy
import importlib.util

import pytest
import torch
from composing import LINEAR, Mlp, compile_kernel, mlp_plan, plan_of_trace
from tessera.common.errors import Error
from tessera.judging import module_times
from tessera.judging.module_check import verify_module
from tessera.judging.module_times import compare_plans, measure_module
from tessera.judging.peers import equal_precision
from tessera.running.export import export_module
from tessera.tracing import held as holding
from tessera.tracing.held import hold, inputs_of, redraw
from torch import nn


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def held():
    torch.manual_seed(0)
    return hold(Mlp().eval(), (torch.randn(8, 16),), {})


def test_right(held, folder):
    state = {k: t.clone() for k, t in held.module.state_dict().items()}
    r = verify_module(held, plan_of_trace(held.traced, compile_kernel(folder)))
    assert r["ok"], r["reason"]
    assert r["active"] == ["p01", "p02"] and 0 < r["rms_error"] < 1e-6 and r["baseline_rms_error"] > 0
    assert all(torch.equal(t, state[k]) for k, t in held.module.state_dict().items())


@pytest.mark.parametrize(
    "damage, why",
    [
        (("acc[j] + r", "acc[j] * 1.0001f + r"), "error"),
        (("acc[j] + r", "acc[0] != acc[0] ? 0 : (1e38f * 1e38f) + r"), "not finite"),
        (("/* damage */", "t(0)[0] += 1;"), "input x was modified"),
        (("/* damage */", "t(2)[0] += 1;"), "input p_fc1_bias was modified"),
        (("/* damage */", "t(l->tensor_count - 1)[m * n] = 0;"), "beside output"),
    ],
)
def test_wrong(held, folder, damage, why):
    assert damage[0] in LINEAR
    source = LINEAR.replace(*damage)
    r = verify_module(held, plan_of_trace(held.traced, compile_kernel(folder, source)))
    assert not r["ok"] and why in r["reason"], r["reason"]


def test_inactive_is_not_right(held, folder):
    plan = plan_of_trace(held.traced, compile_kernel(folder))
    next(s for s in plan["steps"] if s["kind"] == "kernel")["candidate"]["library"] = "/nowhere.so"
    r = verify_module(held, plan)
    assert not r["ok"] and "/nowhere.so is missing" in r["reason"]
    assert [(c["pattern"], c["check"]) for c in r["culprits"]] == [("p01", "active")]
    with pytest.raises(Error) as e:
        measure_module(held, plan, ["eager"], seconds=0.1)
    assert e.value.diagnostic["code"] == "TS0530"


def test_measure(held, folder):
    r = measure_module(
        held, plan_of_trace(held.traced, compile_kernel(folder)), ["eager", "inductor", "tensorrt", "x"], seconds=0.2
    )
    assert {"tessera", "eager", "inductor"} <= set(r["times"])
    assert all(t["ms"] > 0 and t["samples"] >= 5 for t in r["times"].values())
    assert "no peer" in r["absent"]["x"]
    if importlib.util.find_spec("torch_tensorrt") is None:
        assert "not installed" in r["absent"]["tensorrt"]
    assert [a["active"] for a in r["ablation"]] == [["p01"], ["p02"], ["p02"], ["p01"], ["p01", "p02"]]


class Noisy:
    """A clock that is noisy until `quiet` samples were taken."""

    def __init__(self, quiet: int):
        self.quiet, self.taken = quiet, 0

    def warm(self, call):
        call()
        return 1.0, 1.0

    def sample(self, call, host_ms):
        call()
        self.taken += 1
        return 1.0 if self.taken > self.quiet else 1.0 + self.taken // 2 % 2


@pytest.mark.parametrize(("quiet", "seconds"), [(0, 60.0), (12, 60.0), (10**9, 0.1)])
def test_noisy_times_are_taken_longer_or_marked(held, folder, monkeypatch, quiet, seconds):
    clock = Noisy(quiet)
    monkeypatch.setattr(module_times.timing, "HostClock", lambda: clock)
    monkeypatch.setattr(module_times.timing, "MAX_ROUNDS", 5)
    plan = plan_of_trace(held.traced, compile_kernel(folder))
    times = measure_module(held, plan, [], seconds=seconds, ablation=False)["times"]
    assert [t["reliable"] for t in times.values()] == [quiet < 100] * 2
    assert (clock.taken == 10) == (quiet == 0)


def test_measure_refuses_a_wrong_timed_run(held, folder):
    wrong = compile_kernel(folder, LINEAR.replace("acc[j] + r", "acc[j] * 1.01f + r"))
    with pytest.raises(Error) as e:
        measure_module(held, plan_of_trace(held.traced, wrong), [], seconds=0.1)
    assert e.value.diagnostic["code"] == "TS0531"


def test_plans_side_by_side(held, folder):
    right = plan_of_trace(held.traced, compile_kernel(folder))
    wrong = plan_of_trace(held.traced, compile_kernel(folder, LINEAR.replace("acc[j] + r", "acc[j] * 1.01f + r")))
    lost = copy.deepcopy(right)
    next(s for s in lost["steps"] if s["kind"] == "kernel")["candidate"]["library"] = "/nowhere.so"
    a, b, c, d = compare_plans(held, [right, wrong, lost, right], seconds=0.2)["times"]
    assert not a["reason"] and not d["reason"] and a["ms"] > 0 and d["samples"] >= 5
    assert "error" in b["reason"] and "inactive" in c["reason"]


@pytest.mark.parametrize("shape", [(4099,), (64, 64), (1, 1000, 3), (65, 65)])
def test_many_elements_are_redrawn_at_the_cost_of_copies(shape, monkeypatch):
    monkeypatch.setattr(holding, "_fully_shuffled", 1000)
    x = torch.randn(shape)
    y, z = redraw(x, 1), redraw(x, 2)
    torch.testing.assert_close(y.flatten().sort()[0], x.flatten().sort()[0])
    assert (y == x).float().mean() < 0.05 and (y == z).float().mean() < 0.05
    assert torch.equal(redraw(x, 1), y)
    if len(shape) > 1:  # rows are not moved as a whole
        assert not torch.isin(y.sum(-1), x.sum(-1)).all()


def test_redraw_keeps_what_has_an_order():
    x = torch.randn(64, 8).t()
    y = redraw(x, 1)
    assert y.stride() == x.stride() and not torch.equal(x, y)
    torch.testing.assert_close(y.flatten().sort()[0], x.flatten().sort()[0])
    for t in (torch.arange(50), torch.rand(9, 9) > 0.5, torch.zeros(100), torch.full((64, 64), -torch.inf).triu(1)):
        assert torch.equal(redraw(t, 1), t)
    tokens = torch.randint(0, 1000, (4, 64))
    assert not torch.equal(redraw(tokens, 1), tokens)


def test_precision_converts_module_and_inputs():
    h = hold(Mlp().eval(), (torch.randn(8, 16),), {}, "bf16")
    assert h.precision == "bf16" and h.args[0].dtype == torch.bfloat16 == h.module.fc1.weight.dtype
    assert inputs_of(h, 3)[0][0].dtype == torch.bfloat16


def test_export(held, folder, tmp_path):
    plan = plan_of_trace(held.traced, compile_kernel(folder))
    files = export_module(held.traced, held.args, held.kwargs, plan, str(tmp_path))
    assert {"plan.json", "composed.py", "structure.pt"} <= {f.rsplit("/", 1)[1] for f in files}
    spec = importlib.util.spec_from_file_location("composed", tmp_path / "composed.py")
    composed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(composed)
    m, x = copy.deepcopy(held.module), torch.randn(8, 16)
    with torch.no_grad():
        torch.testing.assert_close(composed.load(m, strict=True)(x), held.module(x), rtol=1e-5, atol=1e-5)


def test_plan_of_another_module(held, folder):
    with pytest.raises(Error) as e:
        verify_module(hold(nn.Linear(4, 4), (torch.randn(2, 4),), {}), mlp_plan(compile_kernel(folder)))
    assert e.value.diagnostic["code"] == "TS0215"


@pytest.mark.parametrize("frozen", [False, True], ids=["", "frozen"])
@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_flags_can_be_read_by_everybody(precision, frozen, monkeypatch):
    # As torch.backends.disable_global_flags() leaves it, for the time of the test.
    flags = torch.backends.disable_global_flags.__globals__
    monkeypatch.setitem(flags, "__allow_nonbracketed_mutation_flag", not frozen)
    before = torch.backends.cuda.matmul.fp32_precision, torch.get_float32_matmul_precision()
    with equal_precision(precision):
        assert torch.backends.cuda.matmul.allow_tf32 == torch.backends.cudnn.allow_tf32 == (precision == "tf32")
        assert (torch.backends.cuda.matmul.fp32_precision == "tf32") == (precision == "tf32")
        assert torch.get_float32_matmul_precision() == ("high" if precision == "tf32" else "highest")
    assert (torch.backends.cuda.matmul.fp32_precision, torch.get_float32_matmul_precision()) == before


@pytest.mark.parametrize("of_user", [True, False])
def test_convolutions_are_timed_under_the_users_flag(of_user):
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = of_user
    try:
        with equal_precision("fp32", convolutions=False):
            assert torch.backends.cudnn.allow_tf32 == of_user
            assert not torch.backends.cuda.matmul.allow_tf32
        assert torch.backends.cudnn.allow_tf32 == of_user
    finally:
        torch.backends.cudnn.allow_tf32 = before
