"""Random programs beside eager: some in every run of the tests, 20,000 and more under TESSERA_TEST_ALL=1; and those that failed
once. `python tests/fuzz/fuzz.py` is the same by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import road  # noqa: E402
from behind import Behind, BehindCampaign  # noqa: E402
from budget import Budget, Noise  # noqa: E402
from campaign import Campaign  # noqa: E402
from comparing import differences, runs  # noqa: E402
from generator import generate  # noqa: E402
from kept import kept  # noqa: E402
from placing import KernelCampaign  # noqa: E402
from program import Program  # noqa: E402
from trial import Twin, alone, staged, twin  # noqa: E402
from twin import Seen  # noqa: E402

EVERYTHING = bool(os.environ.get("TESSERA_TEST_ALL"))
COUNT, MINUTES = (20000, 55) if EVERYTHING else (96, 2)
PLACED, PLACED_MINUTES = (1500, 55) if EVERYTHING else (4, 2)
BEHIND, BEHIND_MINUTES = (500, 30) if EVERYTHING else (5, 2)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    if road.tool() is None:
        pytest.skip("graph_tool is not built: ninja -C build graph_tool")
    yield
    torch.set_num_threads(before)


def _wrong(campaign) -> list[str]:
    """What is wrong; a module that is refused with a code is not, nor what eager leaves undefined."""
    failures = [f for f in campaign.found if f.failure.stage not in ("refused", "undefined")]
    return [f"{f.failure}\n{f.program.to_json()}" for f in failures]


def test_programs_equal_eager():
    campaign = Campaign(int(os.environ.get("TESSERA_FUZZ_SEED", "0")), COUNT, MINUTES, shrink_seconds=30)
    print(campaign.run().text())
    assert not _wrong(campaign)


def test_programs_with_kernels_equal_eager():
    campaign = KernelCampaign(50000, PLACED, PLACED_MINUTES, shrink_seconds=0)
    print(campaign.run().text())
    assert not _wrong(campaign)


def test_programs_behind_torch_compile_equal_dynamos():
    Behind.taken.clear()
    campaign = BehindCampaign(60000, BEHIND, BEHIND_MINUTES, shrink_seconds=0)
    print(campaign.run().text())
    assert not _wrong(campaign)
    assert Behind.taken["plan"] >= BEHIND


def test_programs_that_failed_once():
    again = [f"{row['why']}\n{failure}" for row in kept() if (failure := staged(Program(**row["program"])))]
    assert not again, "\n\n".join(again)


class _Tampered:
    """A road whose results are damaged: the fuzzer has to see it."""

    def __init__(self, module, args, damage):
        self.module, self.damage = module, damage

    def composed(self, *args):
        return self.damage(self.module, args, self.module(*args))

    def exact(self, first: int, count: int, targets: str) -> str:
        return "exact"


def _program(steps: list, outputs: list[str], **more) -> Program:
    setup = [["a0", "draw([4, 6], 'float32', 'normal', 1)"]]
    return Program(setup=setup, given=["a0"], steps=steps, outputs=outputs, **more)


def _last_place(module, args, out):
    return (torch.nextafter(out[0], out[0] + 1), *out[1:])


def _copied(module, args, out):
    return (out[0].clone(), *out[1:])


def _transposed(module, args, out):
    return (out[0].t().contiguous().t(), *out[1:])


def _writes(module, args, out):
    args[0].add_(1)
    return out


def _negative_zero(module, args, out):
    return (torch.where(out[0] == 0, -0.0, out[0]), *out[1:])


@pytest.mark.parametrize(
    ("step", "damage", "symptom"),
    [
        ("torch.sin({0})", _last_place, "value"),
        ("torch.relu({0})", _negative_zero, "zero sign"),
        ("{0}[1:]", _copied, "memory"),
        ("torch.exp({0})", _transposed, "strides"),
        ("torch.exp({0})", _writes, "value"),
        ("torch.exp({0})", lambda m, args, out: (out[0].double(),), "dtype"),
        ("torch.exp({0})", lambda m, args, out: [out[0]], "structure"),
    ],
)
def test_damage_is_seen(step, damage, symptom):
    p = _program([["v0", step, ["x0"]]], ["v0"])
    assert runs(p) and alone(p, lambda m, a: _Tampered(m, a, lambda *_: _[2])) is None
    failure = alone(p, lambda m, a: _Tampered(m, a, damage))
    assert failure and symptom in [d.symptom for d in failure.differences]


@pytest.mark.parametrize(
    ("write", "stage"),
    [
        ("{0}.add_({0})", "rewrite"),
        ("{0}.view(6, 4).add_({0}.view(6, 4))", "rewrite"),
        ("{0}[1:].add_({0}[0].clone())", "rewrite"),
        ("{0}.view(4, 6)[:, :4].add_({0}[:, :4].T)", "undefined"),
        ("torch.add({0}, {0}[:1].expand(4, 6), out={0})", "undefined"),
    ],
)
def test_writes_to_what_is_read_elsewhere_are_undefined(write, stage):
    p = _program([["v0", "{0} * 1", ["x0"]], ["v1", write, ["v0"]]], ["v0"])
    failure = alone(p, lambda m, a: _Tampered(m, a, _last_place))
    assert failure and failure.stage == stage


@pytest.mark.parametrize(("step", "seen"), [("torch.trunc({0} / 4)", False), ("torch.relu({0} - 9)", True)])
def test_the_sign_of_a_zero_among_zeros_of_both_is_free(step, seen):
    class Rewritten(_Tampered):
        def exact(self, first: int, count: int, targets: str) -> str:
            return "rewritten"

    p = _program([["v0", step, ["x0"]], ["v1", "torch.max({0}, 1)[0]", ["v0"]]], ["v1"])
    failure = alone(p, lambda m, a: Rewritten(m, a, lambda m, args, out: (torch.where(out[0] == 0, -out[0], out[0]),)))
    assert bool(failure) is seen


def test_the_noise_of_a_budget_goes_where_the_tensors_are():
    given = torch.empty(2, 3, device="meta")
    with Noise(0, [given]):  # under which no default device is in force
        assert (given @ given.T).relu().device.type == "meta"


def test_a_budget_whose_noise_does_not_run_is_no_budget(monkeypatch):
    def broken(self, func, types, args=(), kwargs=None):
        raise RuntimeError("no noise")

    monkeypatch.setattr(Noise, "__torch_dispatch__", broken)
    p = _program([["v0", "{0} * 1", ["x0"]]], ["v0"])
    t = torch.ones(4)
    with pytest.raises(RuntimeError, match="no noise"):
        Budget(p, [(0, None)]).tolerated("r0", t, t + 1)


def test_a_difference_names_what_is_outside_of_the_budget():
    t = torch.tensor([1.0, 2.0, 3.0])
    eager, other = (Seen({"r0": x}, {"r0": x}, {}, None) for x in (t, t + torch.tensor([0.0, 1e-6, 1.0])))
    (found,) = differences(eager, other, lambda _name, e, o: (e - o).abs() < 1e-3)
    assert found.text.startswith("r0: eager [3.0] at [2]") and "got [4.0]" in found.text


def test_a_failure_is_made_small():
    from shrinking import shrunk

    steps = [["v0", "torch.sin({0})", ["x0"]], ["v1", "{0} * 2", ["v0"]], ["v2", "{0} + {1}", ["v1", "x0"]]]
    p = _program(steps, ["v2", "v0"], changes=[{"kind": "values ones", "fill": "ones"}])

    def trial(q):
        return alone(
            q, lambda m, a: _Tampered(m, a, lambda m, args, out: tuple(_last_place(m, args, [o])[0] for o in out))
        )

    small = shrunk(p, trial(p), trial, 20)
    assert len(small.steps) <= 1 and not small.changes and len(small.outputs) == 1


def test_changes_are_undone():
    p = generate(3)
    p.changes = [{"kind": "training", "before": "m.train(not m.training)\nm.register_forward_hook(lambda *a: None)"}]
    one, other = twin(p), Twin(twin(p).module, p)
    one.call(2, p.changes[0])
    assert one.module.training == p.training and not one.module._forward_hooks
    assert one.module._buffers.keys() == other.module._buffers.keys()
