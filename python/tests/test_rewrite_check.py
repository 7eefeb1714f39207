"""Rewritten graphs against traced ones: what a rewrite could get wrong unseen is found, what it may rely on is kept."""

from __future__ import annotations

import copy

import decoder_blocks
import pytest
import torch
from graph_tools import canonical
from tessera.common.errors import Error
from tessera.common.reference import Executor
from tessera.judging.module_check import end_to_end, verify_module
from tessera.judging.perturbed import Perturbed, perturb, perturbed_inputs
from tessera.judging.rewrite_check import check_rewrites
from tessera.tracer_process import Tracer
from tessera.tracing.held import hold
from torch import nn
from torch.nn import functional as F

LENGTH, WIDTH = 24, 32


class Block(nn.Module):
    """x + attention(norm(x)), turned by rotary embedding, as at initialization: norms of ones, biases of zeros, and
    projections so small that all scores are nearly equal."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        for p in (self.q, self.k):
            nn.init.normal_(p.weight, std=0.02)
        angles = decoder_blocks.angles(8, LENGTH)
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (decoder_blocks.split_heads(p(y), 8) for p in (self.q, self.k, self.v))
        q, k = (decoder_blocks.halves(t, self.cos, self.sin) for t in (q, k))
        return x + decoder_blocks.merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.fixture(scope="module")
def held():
    torch.manual_seed(0)
    return hold(Block().eval(), (torch.randn(2, LENGTH, WIDTH),), {}, "bf16")


@torch.library.custom_op("tessera_tests::narrow_gelu", mutates_args=())
def narrow_gelu(x: torch.Tensor) -> torch.Tensor:
    """As kernels by hand are: of one type."""
    if x.dtype is not torch.bfloat16:
        raise RuntimeError("narrow_gelu takes bfloat16")
    return F.gelu(x)


@narrow_gelu.register_fake
def _(x):
    return torch.empty_like(x)


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)

    def forward(self, x):
        return self.down(torch.ops.tessera_tests.narrow_gelu(self.up(x)))


def test_an_op_that_does_not_know_fp64_runs_in_its_own_types():
    torch.manual_seed(0)
    held = hold(Narrow().bfloat16().eval(), (torch.randn(4, WIDTH, dtype=torch.bfloat16),), {}, "bf16")
    reply = check_rewrites(held, canonical(held.graph))
    assert (reply["ok"], reply["form"]) == (True, "fp64"), reply
    assert reply["in_own_types"] == ["tessera_tests.narrow_gelu.default"]
    wrong = copy.deepcopy(canonical(held.graph))
    next(n for n in wrong["nodes"] if "narrow_gelu" in n["op"])["op"] = "aten.relu.default"
    node(wrong, "relu")["arguments"] = {"self": node(wrong, "relu")["arguments"]["x"]}
    assert check_rewrites(held, wrong)["ok"] is False
    # Without a type to compute in, what an op refuses is an error.
    values = {**held.traced.state(), **held.traced.flatten(held.args, held.kwargs)}
    with pytest.raises(RuntimeError, match="takes bfloat16"):
        Executor(held.graph).run_all({name: t.float() for name, t in values.items()})


def node(graph: dict, op: str) -> dict:
    return next(n for n in graph["nodes"] if n["op"].startswith(f"aten.{op}"))


def made_from(graph: dict, value: str, op: str) -> dict:
    """The nearest node of this op on the way back along first arguments."""
    producers = {v: n for n in graph["nodes"] for v in n["outputs"]}
    while not (n := producers[value])["op"].startswith(f"aten.{op}"):
        value = next(iter(n["arguments"].values()))["value"]
    return n


def keys_not_rotated(graph: dict) -> None:
    attention = node(graph, "scaled_dot_product_attention")["arguments"]
    rotated = made_from(graph, attention["key"]["value"], "add")
    attention["key"] = made_from(graph, rotated["outputs"][0], "mul")["arguments"]["self"]


def norm_weight_ignored(graph: dict) -> None:
    node(graph, "layer_norm")["arguments"]["weight"] = None


def norm_bias_ignored(graph: dict) -> None:
    node(graph, "layer_norm")["arguments"]["bias"] = None


def eps_off(graph: dict) -> None:
    node(graph, "layer_norm")["arguments"]["eps"] = 1.01e-5


def test_the_graph_itself_is_right(held):
    before = {k: t.clone() for k, t in held.module.state_dict().items()}
    for graph in (held.graph, canonical(held.graph)):
        r = check_rewrites(held, graph)
        assert r["ok"] and r["form"] == "fp64" and r["rms_error"] < 1e-13 and r["seconds"] > 0, r
    assert all(torch.equal(t, before[k]) for k, t in held.module.state_dict().items())


@pytest.mark.parametrize("damage", [keys_not_rotated, norm_weight_ignored, norm_bias_ignored, eps_off])
def test_wrong_rewrites(held, damage):
    graph = copy.deepcopy(held.graph)
    damage(graph)
    assert graph != held.graph
    r = check_rewrites(held, graph)
    assert r["ok"] is False and "relative RMS" in r["reason"] and r["rms_error"] > 1e-8, r


def test_keys_not_rotated_pass_end_to_end_in_bf16_and_not_here(held):
    graph = copy.deepcopy(held.graph)
    keys_not_rotated(graph)
    plan = plan_without_kernels(graph)
    assert not end_to_end(held, held.compose(plan, "eager"), plan, 2)["reason"]
    r = verify_module(held, plan)
    assert not r["ok"] and "rewritten graph" in r["reason"] and r["rewrites"]["ok"] is False, r


def plan_without_kernels(graph: dict) -> dict:
    steps = [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]]
    return {"schema": "tessera.plan/1", "graph": graph, "steps": steps, "leftover": []}


@pytest.mark.parametrize("damage", [norm_weight_ignored, norm_bias_ignored])
def test_at_initialization_they_would_pass(held, damage):
    """Which is why parameters are perturbed: as they are, the wrong graph computes the same."""
    graph = copy.deepcopy(held.graph)
    damage(graph)
    named = {**held.traced.state(), **held.traced.flatten(held.args, held.kwargs)}
    right, wrong = (Executor(g).run_all(named, torch.float64) for g in (held.graph, graph))
    for name in held.graph["outputs"]:
        torch.testing.assert_close(right[name], wrong[name], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", decoder_blocks.BLOCKS)
def test_decoder_blocks(name):
    torch.manual_seed(0)
    h = hold(decoder_blocks.BLOCKS[name]().eval(), (torch.randn(2, decoder_blocks.LENGTH, decoder_blocks.WIDTH),), {})
    r = check_rewrites(h, canonical(h.graph))
    assert r["ok"] and r["rms_error"] < 1e-9, r


class Guarded(nn.Module):
    """Whatever rewrites may rely on: a triangle, a number, equal halves, indices in range; and statistics."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)
        self.table = nn.Embedding(LENGTH, WIDTH)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril())
        self.register_buffer("number", torch.full((WIDTH,), 0.25))
        self.register_buffer("positions", torch.arange(LENGTH))
        self.register_buffer("variances", torch.rand(WIDTH) * 1e-3)

    def forward(self, x):
        y = self.norm(x.transpose(1, 2)).transpose(1, 2) * self.number * self.variances.log()
        y = y + self.table(self.positions)
        scores = (y @ x.transpose(1, 2)).masked_fill(self.mask == 0, float("-inf"))
        return torch.softmax(scores, -1) @ y


def test_what_is_guarded_is_kept():
    torch.manual_seed(0)
    h = hold(Guarded().eval(), (torch.randn(2, LENGTH, WIDTH),), {})
    r = check_rewrites(h, canonical(h.graph))
    assert r["ok"] and r["rms_error"] < 1e-12, r


def test_perturb():
    def new(t, **facts):
        return perturb(t, facts, torch.Generator().manual_seed(0))

    ones, zeros, w = torch.ones(64), torch.zeros(64), torch.randn(64, 64)
    assert (new(ones) > 0.7).all() and new(ones).std() > 0.05
    assert (new(zeros) >= 0).all() and new(zeros).std() > 1e-4
    assert new(-ones).max() < 0 and 0.01 < (new(w) - w).abs().mean() < 0.5
    for kept in (torch.arange(64), ones > 0, torch.full((8, 8), -torch.inf).triu(1), torch.full((8, 8), -1e9).triu(1)):
        assert torch.equal(new(kept), kept)
    assert torch.equal(new(ones.view(8, 8).tril(), lower_triangular=True, diagonal=0), ones.view(8, 8).tril())
    assert torch.equal(new(ones, scalar=1.0), ones)
    low, high = new(torch.cat((w, w), -1), halves_equal=True).chunk(2, -1)
    assert torch.equal(low, high) and not torch.equal(low, w)
    strided = torch.zeros(4, 6).t()
    assert new(strided).stride() == strided.stride() and new(zeros.bfloat16()).dtype == torch.bfloat16
    eight_bits = torch.full((64,), 448.0).to(torch.float8_e4m3fn)
    assert new(eight_bits).float().isfinite().all() and new(eight_bits).float().min() < 448
    assert torch.equal(new(ones), new(ones)) and torch.equal(zeros, torch.zeros(64))


def test_tied_weights_stay_tied():
    w = torch.ones(8, 8)
    p = Perturbed({"a": w, "b": w, "c": w.t(), "d": torch.ones(8, 8)}, {"values": []}, seed=1)
    assert torch.equal(p["a"], p["b"]) and not torch.equal(p["a"], p["d"]) and not torch.equal(p["a"], w)


def test_inputs_of_few_values_get_others():
    x, zeros, tokens = torch.randn(64), torch.zeros(64), torch.zeros(64, dtype=torch.int64)
    made = perturbed_inputs({"x": x, "state": zeros, "tokens": tokens}, {}, seed=1)
    assert made["x"] is x and made["tokens"] is tokens and not torch.equal(made["state"], zeros)


@pytest.mark.parametrize("shared", [False, True])
def test_inputs_of_few_values_keep_their_place(shared):
    """Where the graph addresses them by it."""
    base = torch.zeros(4, 16)
    t = base[1:2, 2::2].expand(3, 7) if shared else base[1:, 2::2]
    made = perturbed_inputs({"x": t}, {"meta": {"memory": {"offsets": {"x": 18}}}}, seed=1)["x"]
    assert made.storage_offset() == t.storage_offset() and made.stride() == t.stride()
    assert made.untyped_storage().nbytes() == base.untyped_storage().nbytes() and not torch.equal(made, t)


def test_what_cannot_be_executed_is_wrong(held):
    graph = copy.deepcopy(held.graph)
    node(graph, "layer_norm")["arguments"]["normalized_shape"] = [WIDTH + 1]
    r = check_rewrites(held, graph)
    assert r["ok"] is False and "cannot be executed" in r["reason"], r


def no_memory_for(monkeypatch, dtypes):
    run = Executor.run_all

    def limited(self, inputs, dtype=None):
        if dtype in dtypes:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")
        return run(self, inputs, dtype)

    monkeypatch.setattr(Executor, "run_all", limited)


def test_little_memory_takes_a_cheaper_form(held, monkeypatch):
    no_memory_for(monkeypatch, {torch.float64})
    r = check_rewrites(held, canonical(held.graph))
    assert r["ok"] and r["form"] == "fp32" and r["bound"] > 1e-6 and "fp64 does not fit" in r["reason"], r
    wrong = copy.deepcopy(held.graph)
    keys_not_rotated(wrong)
    r = check_rewrites(held, wrong)
    assert r["ok"] is False and "relative RMS" in r["reason"], r


def test_no_memory_is_said(held, monkeypatch):
    no_memory_for(monkeypatch, {torch.float64, torch.float32})
    r = check_rewrites(held, held.graph)
    assert r["ok"] is None and r["form"] == "skipped" and "does not fit" in r["reason"], r


def test_a_graph_of_another_module(held):
    other = hold(nn.Linear(4, 4), (torch.randn(2, 4),), {})
    with pytest.raises(Error) as e:
        check_rewrites(held, other.graph)
    assert e.value.diagnostic["code"] == "TS0502"


class Growing(nn.Module):
    """A product that leaves the range of fp64 when its factors are a fifth larger, as long recurrences do."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(LENGTH))

    def forward(self, x):
        return x * self.factor.pow(9000.0)


def test_what_leaves_the_range_is_perturbed_less():
    h = hold(Growing().eval(), (torch.randn(4, LENGTH),), {})
    assert check_rewrites(h, canonical(h.graph))["ok"]
    h = hold(Growing().eval(), (torch.full((4, LENGTH), torch.inf),), {})
    r = check_rewrites(h, canonical(h.graph))
    assert r["ok"] is None and "no finite results" in r["reason"], r


def test_the_tracer_checks_a_graph_once(held, monkeypatch):
    tracer, graph = Tracer(held), canonical(held.graph)
    assert tracer.check_rewrites({"graph": graph})["ok"]
    plan = plan_without_kernels(copy.deepcopy(graph))
    monkeypatch.setattr("tessera.judging.module_check.check_rewrites", lambda *a: pytest.fail("checked again"))
    r = tracer.verify_module({"plan": plan, "seeds": 1})
    assert r["ok"] and r["rewrites"]["ok"] and r["kernels"] == [], r
