"""tessera.optimize, the torch.compile backend and the tracer process, with a stand-in for the engine."""

from __future__ import annotations

import copy
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import tessera
import torch
from composing import Mlp, compile_kernel
from tessera import backend as backend_module
from tessera.common.errors import fail
from tessera.common.protocol import Connection
from torch import nn

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def engine(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("engine")
    binary = folder / "tessera"
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_engine.py"} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("TESSERA_BINARY", str(binary))
    monkeypatch.setenv("FAKE_KERNEL", compile_kernel(tmp_path_factory.getbasetemp()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_optimize():
    m, events = Mlp().eval(), []
    ref = copy.deepcopy(m)
    with pytest.warns(UserWarning, match="a warning"):
        c = tessera.optimize(m, torch.randn(8, 16), progress=events.append, effort="quick", measure=True, jobs=2)
    assert isinstance(c, tessera.ComposedModule) and c.status()["active"] == ["p01", "p02"]
    assert c.report["options"]["effort"] == "quick" and c.report["options"]["jobs"] == 2
    assert c.report["verification"]["ok"] and c.report["module"]["times"]["tessera"]["ms"] > 0
    assert events[0]["message"] == "working" and any("timing" in e["message"] for e in events)
    x = torch.randn(8, 16)
    with torch.no_grad():
        torch.testing.assert_close(c(x), ref(x), rtol=1e-5, atol=1e-5)
    assert m.count == 1  # verification and measuring left no trace


def test_progress_says_when(monkeypatch, capsys):
    monkeypatch.setenv("FAKE_ENGINE", "plain")
    tessera.optimize(Mlp().eval(), torch.randn(8, 16))
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("tessera ")]
    seconds = [float(re.fullmatch(r"tessera +(\d+\.\d) s \w+.*: .+", line)[1]) for line in said]
    assert seconds and seconds == sorted(seconds)


def test_a_graph_that_is_refused_runs_and_the_help_is_of_use_there():
    class Rotated(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(4, dtype=torch.complex64))

        def forward(self, x):
            return (x * self.w).abs()

    m, x = Rotated().eval(), torch.randn(4)
    fast = torch.compile(m, backend=backend_module.tessera)
    with torch.no_grad(), pytest.warns(UserWarning, match="a graph goes to Inductor") as said:
        torch.testing.assert_close(fast(x), m(x))
    (text,) = {str(w.message) for w in said if "a graph goes to Inductor" in str(w.message)}
    assert "TS0205" in text and "torch.view_as_real(w)" in text and 'backend="tessera"' not in text


@pytest.mark.parametrize(
    "inputs", [(torch.ones(8, 16),), [torch.ones(8, 16)], {"x": torch.ones(8, 16)}, ((), {"x": torch.ones(8, 16)})]
)
def test_forms_of_inputs(inputs, monkeypatch):
    monkeypatch.setenv("FAKE_ENGINE", "plain")
    c = tessera.optimize(Mlp().eval(), inputs, progress=False)
    with torch.no_grad():
        c(torch.ones(8, 16)), c(x=torch.ones(8, 16))
    assert c.status()["served"] == 2


@pytest.mark.parametrize("mood, code, words", [("die", "TS0712", "a last word"), ("refuse", "TS0301", "install it")])
def test_failures_of_the_engine(monkeypatch, mood, code, words):
    monkeypatch.setenv("FAKE_ENGINE", mood)
    with pytest.raises(tessera.Error, match=words) as e:
        tessera.optimize(Mlp().eval(), torch.randn(8, 16), progress=False)
    assert e.value.diagnostic["code"] == code


def test_processes_of_the_engine_find_the_package_that_is_imported_here(monkeypatch):
    """However it came to sys.path: a notebook's sys.path.insert is not in $PYTHONPATH."""
    monkeypatch.delenv("TESSERA_PYTHONPATH", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("FAKE_ENGINE", "plain")
    for of_user in (None, str(HERE)):
        if of_user:
            monkeypatch.setenv("TESSERA_PYTHONPATH", of_user)
        report = tessera.optimize(Mlp().eval(), torch.ones(8, 16), progress=False).report
        assert report["pythonpath"] == (of_user or str(Path(tessera.__file__).resolve().parents[1]))


def test_wrong_arguments(monkeypatch, tmp_path):
    for args, code in (
        ((Mlp(), 3), "TS0008"),
        ((lambda x: x, torch.ones(1)), "TS0009"),
        ((Mlp(), torch.ones(8, 16, device="meta")), "TS0014"),
        ((Mlp(), torch.ones(8, 17)), "TS0007"),
    ):
        with pytest.raises(tessera.Error) as e:
            tessera.optimize(*args, progress=False)
        assert e.value.diagnostic["code"] == code
    monkeypatch.setenv("TESSERA_BINARY", str(tmp_path / "none"))
    with pytest.raises(tessera.Error) as e:
        tessera.optimize(Mlp().eval(), torch.randn(8, 16))
    assert e.value.diagnostic["code"] == "TS0715"


def test_interrupt_keeps_the_best(monkeypatch):
    monkeypatch.setenv("FAKE_ENGINE", "wait")

    def interrupt(event):
        if event["message"] == "working":
            os.kill(os.getpid(), signal.SIGINT)

    c = tessera.optimize(Mlp().eval(), torch.randn(8, 16), progress=interrupt)
    assert c.report["stopped"] and c.status()["active"] == ["p01", "p02"]


def test_backend():
    class Plain(Mlp):
        def forward(self, x):
            return self.drop(x + self.fc2(nn.functional.gelu(self.fc1(x))))

    os.environ["FAKE_ENGINE"] = "plain"
    try:
        m = Plain().eval()
        ref = copy.deepcopy(m)
        f = torch.compile(m, backend=backend_module.tessera)
        x = torch.randn(8, 16)
        with torch.no_grad():
            torch.testing.assert_close(f(x), ref(x))
            m.fc1.weight.mul_(2), ref.fc1.weight.mul_(2)
            torch.testing.assert_close(f(x), ref(x))
            m.fc1.weight = nn.Parameter(ref.fc1.weight * 2)
            ref.fc1.weight.mul_(2)
            torch.testing.assert_close(f(x), ref(x))
    finally:
        del os.environ["FAKE_ENGINE"]


def test_backend_runs_kernels():
    class Plain(Mlp):
        def forward(self, x):
            return x + self.fc2(nn.functional.gelu(self.fc1(x)))

    made = []

    def spy(gm, inputs, **more):
        made.append(backend_module.tessera(gm, inputs, **more))
        return made[-1]

    # The stand-in finds weights by the names of an Mlp, a captured graph has its own: the plan is made here.
    from composing import plan_of_trace
    from tessera import engine

    def run_engine(tracer, options, progress):
        graph = copy.deepcopy(tracer.held.graph)
        for v in graph["values"]:
            for name in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"):
                if name.replace(".", "_parameters_") in v.get("target", "").replace("_modules_", "_"):
                    v["alias"] = name
        held_graph = {
            **graph,
            "values": [{**v, "target": v.get("alias", v.get("target", ""))} for v in graph["values"]],
        }
        plan = plan_of_trace(type("T", (), {"graph": held_graph}), os.environ["FAKE_KERNEL"])
        real = {v["name"]: v.get("target", "") for v in graph["values"]}
        for v in plan["graph"]["values"]:
            v["target"] = real.get(v["name"], "")
        return {"plan": plan, "report": {}}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run_engine", run_engine)
        m = Plain().eval()
        ref = copy.deepcopy(m)
        f = torch.compile(m, backend=spy)
        x = torch.randn(8, 16)
        with torch.no_grad():
            for _ in range(2):
                torch.testing.assert_close(f(x), ref(x), rtol=1e-5, atol=1e-5)
                m.fc1.weight.mul_(2), ref.fc1.weight.mul_(2)
    s = made[0].composed.status()
    assert s["active"] == ["p01", "p02"] and s["served"] == 2 and s["repacks"] == 0


@pytest.fixture
def inductor(monkeypatch):
    """The graphs that Inductor compiles, with its settings, in order."""
    from tessera.running import leftover

    seen, compile_inductor = [], leftover.compile_inductor

    def spy(graph, inputs, options):
        seen.append(options)
        return compile_inductor(graph, inputs, options)

    monkeypatch.setattr(leftover, "compile_inductor", spy)
    torch.compiler.reset()
    return seen


def test_backend_gives_what_it_does_not_take_to_inductor(inductor):
    m = nn.Linear(4, 4)
    f = torch.compile(m, backend=backend_module.tessera)
    f(torch.randn(2, 4)).sum().backward()
    assert m.weight.grad is not None and len(inductor) == 1
    (graph,) = backend_module.status(f)
    assert graph["runner"] == "inductor" and "gradients" in graph["reason"] and graph["status"] is None
    torch.compiler.reset()
    f = torch.compile(m, backend=backend_module.tessera, dynamic=True)
    with torch.no_grad():
        for rows in (3, 5):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(f(x), m(x))
    assert len(inductor) == 2 and "dynamic" in backend_module.status(f)[0]["reason"]


def test_backend_knows_what_became_of_a_compiled_method(inductor):
    m = nn.Linear(4, 4)
    m.forward = torch.compile(m.forward, backend=backend_module.tessera)
    m(torch.randn(2, 4))
    (graph,) = backend_module.status(m.forward)
    assert graph["runner"] == "inductor"
    assert backend_module.status(nn.Linear(4, 4).forward) == []


def test_backend_passes_the_mode_to_inductor(inductor):
    f = torch.compile(nn.Linear(4, 4), backend=backend_module.tessera, mode="max-autotune-no-cudagraphs")
    f(torch.randn(2, 4))
    assert inductor[0]["max_autotune"] is True
    torch.compiler.reset()
    f = torch.compile(nn.Linear(4, 4), backend=backend_module.tessera, mode="max-autotone")
    with pytest.raises(Exception, match="max-autotone"):
        f(torch.randn(2, 4))


def test_backend_keeps_no_values_that_parameters_may_outdate(inductor):
    f = torch.compile(nn.Linear(4, 4), backend=backend_module.tessera, options={"frozen": True})
    with pytest.raises(Exception, match="frozen"), torch.no_grad():
        f(torch.randn(2, 4))


@pytest.fixture
def traced(monkeypatch):
    """Counts the modules and graphs that are traced."""
    from tessera import api
    from tessera.tracing import captured

    count = []
    for place, name in ((api, "hold"), (captured, "hold_graph")):
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, real=real, **k: count.append(1) or real(*a, **k))
    return count


def test_options_are_checked_before_anything_is_traced(traced):
    with pytest.raises(tessera.Error, match="did you mean `effort`") as e:
        tessera.optimize(Mlp().eval(), torch.randn(8, 16), efort="max", strict=True, progress=False)
    assert e.value.diagnostic["code"] == "TS0041" and not traced
    tessera.optimize(Mlp().eval(), torch.randn(8, 16), effort="max", progress=False)
    assert len(traced) == 1


def test_backend_refuses_options_it_does_not_know_before_anything_is_traced(traced, inductor):
    torch.compiler.reset()
    f = torch.compile(nn.Linear(4, 4), backend=backend_module.tessera, options={"efort": "max"})
    with pytest.raises(Exception, match="did you mean `effort`"), torch.no_grad():
        f(torch.randn(2, 4))
    assert not traced and not inductor


def test_backend_spends_one_budget_a_model(inductor, monkeypatch):
    from tessera import engine

    asked, now = [], [0.0]

    def run_engine(tracer, options, progress):
        asked.append((options["seconds"], options["spent"]))
        now[0] += 35.0
        raise fail("TS0999", "test.none", "nothing found")

    class Broken(nn.Module):
        def forward(self, x):
            x = torch.relu(x)
            torch._dynamo.graph_break()
            x = torch.tanh(x)
            torch._dynamo.graph_break()
            return torch.sigmoid(x)

    monkeypatch.setattr(engine, "run_engine", run_engine)
    monkeypatch.setattr(backend_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    f = torch.compile(Broken(), backend=backend_module.tessera, options={"seconds": 3.0})
    with torch.no_grad(), pytest.warns(UserWarning, match="nothing found"):
        f(torch.randn(2, 4))
    # Half of what is left for each, whatever a graph took beside its search; three quarters of a second are no search.
    assert asked == [(3.0, pytest.approx(1.5)), (3.0, pytest.approx(2.25))]
    rows = [(g["runner"], g["reason"]) for g in backend_module.status(f)]
    assert [runner for runner, _ in rows] == ["inductor"] * 3 + ["python"] * 2 and "are spent" in rows[2][1]
    assert all("test_api.py:" in reason and "graph break" in reason for _, reason in rows[3:])
    again = torch.compile(Broken(), backend=backend_module.tessera)
    assert all(g["runner"] == "python" for g in backend_module.status(again))


def test_backend_gives_a_graph_that_is_likely_the_only_one_more_of_the_seconds():
    shares = []

    def backend(gm, inputs):
        shares.append(backend_module.share_of(gm))
        return gm.forward

    class Whole(nn.Module):
        def forward(self, x):
            x = torch.relu(x)
            x += 1  # of its own: nothing stays
            return x.tanh()

    class Caching(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(8, 4))

        def forward(self, x):
            self.cache[2:4] = x
            return self.cache.sum(0)

    class Broken(nn.Module):
        def forward(self, x):
            x = torch.relu(x)
            torch._dynamo.graph_break()
            return torch.tanh(x)

    for module in (Whole(), Caching(), Broken()):
        torch.compiler.reset()
        with torch.no_grad():
            torch.compile(module, backend=backend)(torch.randn(2, 4))
    # Behind a break nothing is known to follow.
    assert shares == [0.8, 0.5, 0.5, 0.8]


def test_tracer_process(tmp_path):
    model = tmp_path / "model.py"
    model.write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport torch\nfrom composing import Mlp\n"
        "class Model(Mlp):\n    def __init__(self):\n        super().__init__()\n        self.eval()\n"
        "def get_inputs():\n    return [torch.randn(8, 16)]\nprint('noise')\n"
    )
    env = os.environ | {"PYTHONPATH": str(HERE.parent)}
    p = subprocess.Popen(
        [sys.executable, "-m", "tessera.tracer_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
    )
    c = Connection(p.stdout, p.stdin)
    try:
        with pytest.raises(tessera.Error) as e:
            c.call("verify_module", {"plan": {}})
        assert e.value.diagnostic["code"] == "TS0706"
        with pytest.raises(tessera.Error) as e:
            c.call("trace", {"path": str(model), "class": "None"})
        assert e.value.diagnostic["code"] == "TS0003"
        graph = c.call("trace", {"path": str(model), "class": "", "precision": "auto", "device": "cpu"})["graph"]
        plan = {
            "schema": "tessera.plan/1",
            "graph": graph,
            "leftover": [],
            "steps": [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]],
        }
        assert c.call("verify_module", {"plan": plan, "seeds": 2, "leftover": "eager"})["ok"]
        r = c.call("measure_module", {"plan": plan, "peers": ["eager"], "seconds": 0.1})
        assert r["times"]["eager"]["ms"] > 0
        files = c.call("export_module", {"plan": plan, "folder": str(tmp_path / "out")})["files"]
        assert len(files) == 3
    finally:
        p.stdin.close()
        assert p.wait(timeout=30) == 0
