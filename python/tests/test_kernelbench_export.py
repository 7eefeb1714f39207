"""The file that `tessera export --kernelbench` writes, loaded as KernelBench's evaluator loads one: its text is executed among
what the reference's text has defined, built after the same seed, then moved and cast."""

from __future__ import annotations

import pytest
import tessera
import torch
from composing import ROOT, compile_kernel, plan_of_trace
from tessera.running import kernelbench_export
from tessera.running.export import export_module
from tessera.tracing.held import hold
from tessera.tracing.loading import load_problem

TASK = f"""
import sys
sys.path.insert(0, {str(ROOT / "python/tests")!r})
import torch
from composing import Mlp


class Model(Mlp):
    def __init__(self, width, hidden):
        super().__init__(width, hidden)
        self.drop.p = 0.0


def get_init_inputs():
    return [16, 32]


def get_inputs():
    return [torch.rand(8, 16)]
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """(the folder, names of what the reference's text defines)"""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "task.py").write_text(TASK)
    loaded = load_problem(str(folder / "task.py"))
    held = hold(loaded.module, loaded.args, loaded.kwargs, None, loaded.path, loaded.name)
    plan = plan_of_trace(held.traced, compile_kernel(folder))
    out = folder / "out"
    export_module(held.traced, held.args, held.kwargs, plan, str(out))
    files = kernelbench_export.write(str(out), held.path, "Model", plan)
    assert [f.rsplit("/", 1)[1] for f in files] == ["original.py", "model_new.py"]
    return out


def evaluated(folder, seed: int = 42):
    """Model and ModelNew as the evaluator makes them, and what draws their inputs."""
    context: dict = {}
    exec(TASK, context)  # as the evaluator does
    model_class, init = context["Model"], context["get_init_inputs"]()
    torch.manual_seed(seed)
    with torch.no_grad():
        model = model_class(*init)
    exec((folder / "model_new.py").read_text(), context)
    with torch.no_grad():
        torch.manual_seed(seed)
        new = context["ModelNew"](*init)
    device = torch.device("cpu")
    return (
        model.to(device=device, dtype=torch.float32),
        new.to(device=device, dtype=torch.float32),
        context["get_inputs"],
    )


def test_weights_and_names_are_the_references(exported):
    model, new, _ = evaluated(exported)
    assert hasattr(new, "forward") and type(new).__name__ == "ModelNew"
    ours, theirs = new.state_dict(), model.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[n], theirs[n]) for n in theirs)


def test_results_are_the_references_and_its_kernels_gave_them(exported):
    model, new, get_inputs = evaluated(exported)
    assert new.tessera_status() is None
    for trial in range(3):
        torch.manual_seed(trial)
        x = get_inputs()[0]
        with torch.no_grad():
            expected = model(x)
            assert torch.allclose(expected, new(x), atol=1e-4, rtol=1e-4)
        assert torch.allclose(expected, new(x), atol=1e-4, rtol=1e-4)  # timed runs are not under no_grad
    status = new.tessera_status()
    assert status["active"] == ["p01", "p02"] and status["served"] == status["calls"] == 6
    assert list(new.state_dict()) == list(model.state_dict())


def test_two_seeds_are_two_modules(exported):
    (_, one, get_inputs), (other, two, _) = evaluated(exported, 1), evaluated(exported, 2)
    x = get_inputs()[0]
    with torch.no_grad():
        assert not torch.allclose(one(x), two(x))
        assert torch.allclose(other(x), two(x), atol=1e-4, rtol=1e-4)


def test_the_original_never_runs_in_the_kernels_place(exported):
    _, new, _ = evaluated(exported)
    with pytest.raises(tessera.Error) as e:
        new(torch.rand(4, 16))
    assert e.value.diagnostic["code"] == "TS0522"
