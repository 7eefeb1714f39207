"""The modes of torch.compile behind both doors: what reaches Inductor, which feeds CUDA graphs read in place, what stays."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import warnings
from pathlib import Path

import pytest
import tessera
import torch
from composing import Mlp, compile_kernel, plan_of_trace
from tessera import backend
from tessera.common.errors import Error
from tessera.judging import module_check, settling
from tessera.running import leftover, modes
from tessera.running.compose import ComposedModule
from tessera.tracing.captured import FlatCall, hold_graph
from tessera.tracing.held import hold
from test_never_silently_wrong import Two, merged_plan
from torch import nn
from torch._dynamo.mutation_guard import GenerationTracker
from torch._inductor import compile_fx

HERE = Path(__file__).resolve().parent
GRAPHS = {"triton.cudagraphs": True}
HOST, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def compiled(monkeypatch):
    """What Inductor is asked for of each graph: how many inputs, which of them keep their addresses, and its settings."""
    seen, compile_fx_inner = [], compile_fx.compile_fx_inner

    def spy(gm, inputs, **settings):
        config = torch._inductor.config
        asked = {"graphs": config.triton.cudagraphs, "autotune": config.max_autotune}
        seen.append((len(inputs), settings.get("static_input_idxs"), asked))
        return compile_fx_inner(gm, inputs, **settings)

    monkeypatch.setattr(compile_fx, "compile_fx_inner", spy)
    monkeypatch.setattr(compile_fx.compile_fx, "__defaults__", (spy, *compile_fx.compile_fx.__defaults__[1:]))
    torch.compiler.reset()
    with torch._functorch.config.patch(enable_autograd_cache=False):  # a graph that it knows comes by no compiler
        yield seen


def merged(module: nn.Module, mode: str | None, **options) -> ComposedModule:
    return ComposedModule(module, merged_plan(), leftover="inductor", inductor=modes.settings_of(mode), **options)


def same(composed, reference) -> None:
    for _ in range(2):
        x = torch.randn(3, 8)
        torch.testing.assert_close(composed(x), reference(x), rtol=1e-5, atol=1e-5)


# --- the rule --------------------------------------------------------------------------------------------------------


def test_settings_are_those_of_torch_compile():
    assert set(modes.MODES) <= set(torch._inductor.list_mode_options())
    assert modes.settings_of(None) == modes.settings_of("default") == {}
    assert modes.settings_of("reduce-overhead") == GRAPHS and modes.settings_of("max-autotune")["max_autotune"]
    assert not modes.settings_of("max-autotune-no-cudagraphs").get("triton.cudagraphs")


@pytest.mark.parametrize("mode", ["reduce_overhead", "", "max", 3])
def test_another_mode_is_refused_by_both_doors(mode):
    listed = "default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs"
    with pytest.raises(Error, match=listed) as e:
        tessera.optimize(nn.Linear(4, 4), torch.randn(2, 4), mode=mode)
    assert e.value.diagnostic["code"] == "TS0013" and str(mode) in e.value.diagnostic["message"]
    with pytest.raises(Error, match=listed):
        backend.tessera(torch.fx.symbolic_trace(nn.ReLU()), [torch.ones(2)], mode=mode)
    with pytest.raises(Error, match=listed):
        backend.tessera(torch.fx.symbolic_trace(nn.ReLU()), [torch.ones(2)], options={"mode": mode})


def test_the_mode_may_stand_among_the_options(monkeypatch):
    """torch.compile takes a mode or options."""
    seen = []
    monkeypatch.setattr(backend, "_unfit", lambda gm, inputs: "not this one")
    monkeypatch.setattr(backend.leftover, "compile_inductor", lambda gm, inputs, settings: seen.append(settings) or gm)
    options = {"mode": "reduce-overhead", "seconds": 5}
    backend.tessera(torch.fx.symbolic_trace(nn.ReLU()), [torch.ones(2)], options=options)
    assert seen == [GRAPHS] and options["mode"] == "reduce-overhead"


def test_who_may_run_the_rest():
    for wanted in ("auto", "inductor"):
        assert modes.rest_runner(wanted, GRAPHS, GPU) == "inductor"
    with pytest.raises(Error, match="max-autotune-no-cudagraphs"):
        modes.rest_runner("eager", GRAPHS, GPU)
    for settings, device in ((GRAPHS, HOST), ({}, GPU), (modes.settings_of("max-autotune-no-cudagraphs"), GPU)):
        for wanted in ("auto", "eager", "inductor"):
            assert modes.rest_runner(wanted, settings, device) == wanted


def test_graphs_without_trees_copy_their_inputs(compiled):
    """They do not look up where inputs lie."""
    assert (
        modes.records(GRAPHS)
        and not modes.records({})
        and not modes.records({**GRAPHS, "triton.cudagraph_trees": False})
    )
    with torch._inductor.config.patch(GRAPHS):
        assert modes.records({}) and not modes.records({"triton.cudagraphs": False})
        with torch._inductor.config.patch({"triton.cudagraph_trees": False}):
            merged(Two().eval(), None)(torch.randn(3, 8))
    assert compiled[0][1] == []


# --- what reaches Inductor -------------------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path, tmp_path_factory, monkeypatch):
    binary = tmp_path / "tessera"
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_engine.py"} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("TESSERA_BINARY", str(binary))
    monkeypatch.setenv("FAKE_KERNEL", compile_kernel(tmp_path_factory.getbasetemp()))


@pytest.mark.parametrize("mode", [None, *modes.MODES])
def test_optimize_in_every_mode(engine, mode, compiled):
    m = Mlp().eval()
    ref = copy.deepcopy(m)
    c = tessera.optimize(m, torch.randn(8, 16), mode=mode, progress=False)
    assert c._inductor == modes.settings_of(mode) and c.report["options"]["leftover"] == "auto"
    d = c._again(c.original, leftover="inductor")
    for _ in range(3):
        x = torch.randn(8, 16)
        torch.testing.assert_close(d(x), ref(x), rtol=1e-5, atol=1e-5)
    assert len(compiled) == 1
    graphs = mode in ("reduce-overhead", "max-autotune")
    assert compiled[0][2] == {"graphs": graphs, "autotune": (mode or "").startswith("max-autotune")}
    assert compiled[0][1] == ([1, 2, 3, 4, 5] if graphs else [])  # both layers' parameters and the counter


def test_optimize_asks_the_engine_for_inductor_where_there_are_graphs(engine, monkeypatch):
    monkeypatch.setattr(modes, "rest_runner", lambda wanted, settings, device: f"{wanted} {settings} {device}")
    c = tessera.optimize(Mlp().eval(), torch.randn(8, 16), mode="reduce-overhead", leftover="inductor", progress=False)
    assert c.report["options"]["leftover"] == f"inductor {GRAPHS} cpu"


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune-no-cudagraphs"])
def test_the_peer_is_torch_compile_in_the_mode(mode, compiled):
    held = hold(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), (torch.randn(2, 4),), {})
    held.options["inductor"] = modes.settings_of(mode)
    (way,) = settling.Settler(held).prepare(["inductor"])
    assert not way["reason"]
    graphs = mode == "reduce-overhead"
    assert compiled == [(3, compiled[0][1], {"graphs": graphs, "autotune": not graphs})]
    peer = settling.leftovers.whole("inductor", held.module, held.settings)
    assert isinstance(peer(held.args[0]), torch.Tensor)


def test_measured_peers_are_in_the_mode(monkeypatch):
    from tessera.judging import peers

    asked = []
    monkeypatch.setattr(torch, "compile", lambda module, options=None: asked.append(options))
    for name in ("inductor", "inductor-max-autotune"):
        peers.make(name, nn.Linear(4, 4), GRAPHS)
        peers.make(name, nn.Linear(4, 4), {})
    assert asked == [GRAPHS, None, modes.settings_of("max-autotune"), modes.settings_of("max-autotune-no-cudagraphs")]


# --- what CUDA graphs read in place ----------------------------------------------------------------------------------


def test_parameters_are_read_where_they_lie(compiled):
    m = Two().eval()
    c, ref = merged(m, "reduce-overhead"), copy.deepcopy(m)
    same(c, ref)
    assert c._built.feeds == ["x", "bias", "w"] and compiled == [(3, [1, 2], {"graphs": True, "autotune": False})]
    for each in (m, ref):  # at another address: the graph is recorded anew by Inductor, nothing is compiled
        each.a.weight.data = each.a.weight.data * 2
    same(c, ref)
    assert len(compiled) == 1 and not c.status()["fallbacks"]
    same(merged(m, "default"), ref)
    assert compiled[1][:2] == (3, [])


def test_no_cache_of_whole_graphs_answers(compiled, monkeypatch):
    """It knows nothing of which inputs keep their addresses."""
    asked, compile_fx_inner = [], compile_fx.compile_fx_inner

    def inner(*given, **settings):
        asked.append(torch._functorch.config.enable_autograd_cache)
        return compile_fx_inner(*given, **settings)

    monkeypatch.setattr(compile_fx, "compile_fx_inner", inner)
    m = Two().eval()
    with torch._functorch.config.patch(enable_autograd_cache=True):
        same(merged(m, "reduce-overhead"), m)
        assert asked == [False] and torch._functorch.config.enable_autograd_cache


def test_what_lies_unaligned_is_no_longer_read_in_place(compiled):
    """Code is compiled for aligned addresses. Inductor looks only at those of inputs that it copies."""

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8))

        def forward(self, x):
            return x * self.one + self.two

    m = Scale()
    held = hold(m, (torch.randn(3, 8),), {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    held.options["inductor"] = GRAPHS
    c, ref = held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "inductor"), copy.deepcopy(m)
    same(c, ref)
    for offset in (1, 4):
        m.one.data = torch.randn(16)[offset : offset + 8]
        ref.one.data = m.one.data.clone()
        same(c, ref), same(c, ref)
    both, one = [c._built.feeds.index(s.value) for s in c._state.slots], [c._built.feeds.index(c._state.slots[1].value)]
    assert [places for _, places, _ in compiled] == [sorted(both), one, sorted(both)]
    assert not c.status()["fallbacks"]


def test_what_is_concatenated_in_every_call_keeps_its_address():
    seen = []
    for mode in ("reduce-overhead", None):
        m = Two().eval()
        mirror = m.a.weight.detach()  # looks at the memory, which may not be moved
        c, ref = merged(m, mode), copy.deepcopy(m)
        run, c._runner = c._runner, lambda *feeds: seen.append(feeds) or run(*feeds)  # noqa: B023
        with torch.inference_mode():
            same(c, ref)
        m.b.weight.data.mul_(2), ref.b.weight.data.mul_(2)
        same(c, ref)
        wholes = [feeds[c._built.feeds.index("w")] for feeds in seen]
        assert c._feeds.now[1] and len(wholes) == 4
        assert (len({id(t) for t in wholes}) == 1) == (mode is not None)
        seen.clear()
        del mirror


def test_inputs_that_a_graph_changes_while_they_share_memory(compiled):
    """Inductor then sees one input in the place of both."""

    def f(a, b, w):
        a.add_(1)
        return (a * b + w,)

    x, w = torch.arange(8.0), torch.ones(4)
    run = leftover.compile_inductor(torch.fx.symbolic_trace(f), [x[:4], x[:4], w], GRAPHS, [2])
    torch.testing.assert_close(run(x[:4], x[:4], w)[0], (torch.arange(4.0) + 1) ** 2 + 1)
    assert compiled[0][0] < 3 and compiled[0][1] == []


# --- steps -----------------------------------------------------------------------------------------------------------


def test_a_call_begins_a_step_as_torch_compiles_does():
    def steps(composed) -> int:
        composed(x)
        before = GenerationTracker.generation
        composed(x)
        return GenerationTracker.generation - before

    m, x = Two().eval(), torch.randn(3, 8)
    assert steps(torch.compile(m)) == 1
    assert steps(merged(m, "reduce-overhead")) == 1
    assert steps(merged(m, None)) == 0
    assert steps(merged(m, "reduce-overhead", captured=())) == 0  # torch.compile, which makes the call, has begun it


def test_a_graphs_own_memory_is_not_made_in_inference_mode():
    """Outside of it the next call could not write there."""
    x, results = torch.randn(3, 8), {}
    for mode in ("reduce-overhead", None):
        c = merged(Two().eval(), mode)
        with torch.inference_mode():
            results[mode] = c(x)
        torch.testing.assert_close(c(x), results[mode])
    assert not results["reduce-overhead"].is_inference() and results[None].is_inference()


def test_results_are_judged_as_a_recorded_graph_gives_them(tmp_path):
    held = hold(Mlp().eval(), (torch.randn(8, 16),), {})
    plan = plan_of_trace(held.traced, compile_kernel(tmp_path))
    calls = {}
    for name, settings in (("default", {}), ("reduce-overhead", GRAPHS)):
        held.options["inductor"] = settings
        r = module_check.verify_module(held, plan, seeds=1, leftover="inductor")
        assert r["ok"], r["reason"]
        calls[name] = r["status"]["calls"]
    assert calls == {"default": 1, "reduce-overhead": 3} and held.module.count == 0


# --- what stays ------------------------------------------------------------------------------------------------------


def test_copies_keep_the_mode(compiled):
    c = merged(Two().eval(), "max-autotune")
    for each in (copy.deepcopy(c), pickle.loads(pickle.dumps(c)), c.with_patterns()):
        assert each._inductor == modes.settings_of("max-autotune") and each._runner is not c._runner
        same(each, c.original)
    assert [asked for *_, asked in compiled] == [{"graphs": True, "autotune": True}] * 3
    whole = ComposedModule(Two().eval(), merged_plan(), runner="inductor", inductor=GRAPHS)
    assert not isinstance(whole._torch, nn.Module)  # the call of the wrapper around the wrapper is saved
    del compiled[:]
    same(pickle.loads(pickle.dumps(whole)), whole.original)
    assert compiled[0][2]["graphs"]


# --- behind torch.compile --------------------------------------------------------------------------------------------


class Rotated(nn.Module):
    """A parameter, a buffer that stays, and one that changes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("table", torch.randn(8))
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x):
        self.seen += 1
        return self.linear(x) * self.table + self.seen


def captured(compiled, mode: str) -> tuple[nn.Module, list]:
    """The module behind torch.compile, its graph run by a plan without kernels with Inductor for the rest."""
    made = []

    def door(gm, inputs):
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        with unset_fake_temporarily():
            held = hold_graph(gm, inputs, modes.settings_of(mode))
            steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
            composed = held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "inductor")
        made.append((held, composed))
        return FlatCall(composed, held)

    m = Rotated().eval()
    ref, f = copy.deepcopy(m), torch.compile(m, backend=door)
    for _ in range(3):
        x = torch.randn(3, 8)
        torch.testing.assert_close(f(x), ref(x))
    torch.testing.assert_close(m.seen, ref.seen)
    return m, made


def test_a_captured_graph_reads_parameters_and_buffers_where_they_lie(compiled):
    _, made = captured(compiled, "reduce-overhead")
    ((held, composed),) = made
    assert len(held.args) == 3 and len(composed._captured) == 2  # the input moves, both buffers stay
    (x,) = {0, 1, 2} - set(composed._captured)
    assert [(n, sorted(places)) for n, places, _ in compiled] == [(5, sorted({0, 1, 2, 3, 4} - {x}))]


def test_inputs_that_keep_their_addresses_do_so_while_they_are_timed(compiled):
    _, made = captured(compiled, "reduce-overhead")
    ((held, composed),) = made
    sets = [args for args, _ in settling._input_sets(held)]
    for i in range(3):
        places = {args[i].data_ptr() for args in sets}
        assert len(places) == (1 if i in composed._captured else len(sets)) and held.args[i].data_ptr() not in places


def test_the_backend_takes_the_same_rule(engine, monkeypatch, compiled):
    monkeypatch.setitem(os.environ, "FAKE_ENGINE", "plain")
    asked = []
    rule = modes.rest_runner
    monkeypatch.setattr(modes, "rest_runner", lambda *given: asked.append(given) or rule(*given))
    m = nn.Sequential(nn.Linear(8, 8), nn.GELU()).eval()
    f = torch.compile(m, backend=backend.tessera, mode="reduce-overhead")
    x = torch.randn(3, 8)
    torch.testing.assert_close(f(x), m(x))
    assert asked == [("auto", GRAPHS, HOST)]
    monkeypatch.setattr(modes, "rest_runner", lambda wanted, settings, device: rule("eager", settings, GPU))
    torch.compiler.reset()
    f = torch.compile(m, backend=backend.tessera, mode="reduce-overhead")
    with pytest.raises(Exception, match="leftover=`eager` in a mode with CUDA graphs"):
        f(x)
