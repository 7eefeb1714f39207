"""FlexAttention in a module: one operator in its graph, PyTorch's call where it runs."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
import torch
from tessera.common import flex_calls
from tessera.common.errors import Error
from tessera.common.reference import Executor, overload
from tessera.running.compose import ComposedModule
from tessera.tracing import flex_attention as flex_attention_of_programs
from tessera.tracing import held as holding
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

BATCH, HEADS, TOKENS, DIM = 2, 2, 128, 16
WIDTH = HEADS * DIM


class Documents(nn.Module):
    """Causal attention within documents, with a slope for each head and a cap on the scores."""

    def __init__(self, lse: bool = False):
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.slope, self.lse = nn.Parameter(0.1 * torch.randn(HEADS)), lse
        self.register_buffer("document", torch.arange(TOKENS) // 48)
        seen = lambda b, h, i, j: (i >= j) & (self.document[i] == self.document[j])  # noqa: E731 - no method may be given
        self.blocks = create_block_mask(seen, None, None, TOKENS, TOKENS, device="cpu")

    def scored(self, score, b, h, i, j):
        return 4 * torch.tanh(score / 4) + torch.where(j > i - 200, self.slope[h] * (j - i), -float("inf"))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (HEADS, DIM)).transpose(1, 2) for f in (self.q, self.k, self.v))
        scored = lambda *of: self.scored(*of)  # noqa: E731
        made = flex_attention(q, k, v, score_mod=scored, block_mask=self.blocks, return_lse=self.lse)
        if self.lse:
            return made[0].flatten(2), made[1] + 1
        return made.transpose(1, 2).flatten(2)


def traced(module, x):
    held = trace_module(module, (x,))
    return held, json.loads(json.dumps(held.graph))


def plan_of(graph: dict) -> dict:
    return {"graph": graph, "steps": [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]]}


@pytest.mark.parametrize("lse", [False, True])
def test_a_graph_has_one_operator_that_computes_what_the_call_does(lse):
    module, x = Documents(lse).eval(), torch.randn(BATCH, TOKENS, WIDTH)
    held, graph = traced(module, x)
    (op,) = [n["op"] for n in graph["nodes"] if "flex_attention" in n["op"]]
    assert op == f"tessera.{next(iter(graph['meta']['calls']))}.default"
    with torch.no_grad():
        wide = copy.deepcopy(module).double()
        want = wide(x.double())
        values = {**held.state(), **held.flatten((x,))}
        made = Executor(graph).run_all(values, torch.float64)
        for got, meant in zip(made.values(), want if lse else (want,), strict=True):
            torch.testing.assert_close(got, meant, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("leftover", ["eager", "inductor"])
def test_a_composed_module_calls_it(leftover):
    module, x = Documents().eval(), torch.randn(BATCH, TOKENS, WIDTH)
    held, graph = traced(module, x)
    composed = ComposedModule(module, plan_of(graph), leftover=leftover, constants=held.constants)
    with torch.no_grad():
        torch.testing.assert_close(composed(x), module(x), rtol=1e-4, atol=1e-4)
        module.slope.add_(1)  # what the functions read is read in the call
        torch.testing.assert_close(composed(x), module(x), rtol=1e-4, atol=1e-4)
    assert composed.status()["fallbacks"] == []


def test_inductor_is_given_the_call_itself():
    _, graph = traced(Documents().eval(), torch.randn(BATCH, TOKENS, WIDTH))
    from tessera.running.plan_graph import build

    main = build(plan_of(graph)).main
    before = str(main.graph)
    opened = flex_calls.opened(main)
    assert [n for n in opened.graph.nodes if n.target is torch.ops.higher_order.flex_attention]
    assert not any("tessera" in str(n.target) for n in opened.graph.nodes)
    assert str(main.graph) == before
    assert flex_calls.opened(opened) is opened


class Given(nn.Module):
    """The mask of blocks, and what it was made of, are inputs, as behind torch.compile."""

    def forward(self, x, blocks, document, unrelated):
        q, k, v = (x.unflatten(-1, (HEADS, DIM)).transpose(1, 2) * s for s in (1, 2, 3))
        block_mask = BlockMask.from_kv_blocks(
            blocks[0],
            blocks[1],
            BLOCK_SIZE=16,
            mask_mod=lambda b, h, i, j: document[i] == document[j],
            seq_lengths=(20 * 16, 20 * 16),
        )
        return flex_attention(q, k, v, block_mask=block_mask).transpose(1, 2).flatten(2) * unrelated[:, None]


def test_masks_are_not_drawn_anew():
    length = 20 * 16
    document = (torch.arange(length) * 37 % length) // 16
    blocks = (
        torch.full((1, 1, 20), 20, dtype=torch.int32),
        torch.arange(20, dtype=torch.int32).flip(0).expand(1, 1, 20, 20),
    )
    given = (torch.randn(1, length, WIDTH), blocks, document, torch.arange(length).flip(0))
    held = holding.hold(Given().eval(), given, {})
    (x, drawn, documents, unrelated), _ = holding.inputs_of(held, 1)
    assert all(map(torch.equal, (*drawn, documents), (*blocks, document)))
    assert not torch.equal(x, given[0]) and not torch.equal(unrelated, given[3])


def test_another_process_learns_it_from_the_graph(tmp_path):
    module, x = Documents().eval(), torch.randn(BATCH, TOKENS, WIDTH)
    held, graph = traced(module, x)
    file = tmp_path / "given.pt"
    torch.save((graph, {**held.state(), **held.flatten((x,))}), file)
    program = """
import sys, torch
from tessera.common.reference import Executor
graph, values = torch.load(sys.argv[1])
torch.save(list(Executor(graph).run_all(values, torch.float64).values()), sys.argv[1] + ".made")
"""
    subprocess.run([sys.executable, "-c", program, str(file)], check=True, timeout=300)
    (made,) = torch.load(f"{file}.made")
    with torch.no_grad():
        torch.testing.assert_close(made, copy.deepcopy(module).double()(x.double()), rtol=1e-11, atol=1e-11)


def test_a_name_says_what_the_call_means():
    x = torch.randn(BATCH, TOKENS, WIDTH)
    first, again = (traced(Documents().eval(), x)[1]["meta"]["calls"] for _ in range(2))
    assert first == again
    other = Documents().eval()
    other.scored = lambda score, b, h, i, j: score
    assert traced(other, x)[1]["meta"]["calls"].keys() != first.keys()
    changed = copy.deepcopy(first)
    (meaning,) = changed.values()
    meaning["functions"][0]["nodes"][0]["options"]["more"] = 1
    before = dict(flex_calls._calls)
    flex_calls.define(changed)  # under the name of another: it gets its own
    assert {name: flex_calls._calls[name] for name in before} == before
    assert len(flex_calls._calls) == len(before) + 1
    assert all(overload(f"tessera.{name}.default") for name in flex_calls._calls)


@pytest.mark.parametrize(
    "op", ["os.system.default", "tessera.anything.default", "c10d.all_reduce_.default", "aten.nothing.default", "aten"]
)
def test_functions_call_atens_ops_alone(op):
    function = {"inputs": 1, "nodes": [{"op": op, "arguments": [], "options": {}}], "result": {"node": 0}}
    meaning = {"functions": [function], "arguments": [], "options": {}, "results": [0], "dtypes": ["float32"]}
    with pytest.raises(Error, match="TS0214"):
        flex_calls.define({"any": meaning})


def test_a_function_with_a_tensor_of_its_own_has_no_word():
    module = nn.Module()
    module.register_buffer("table", torch.ones(3))
    graph = torch.fx.Graph()
    score = graph.placeholder("score")
    graph.output(graph.call_function(torch.ops.aten.add.Tensor, (score, graph.get_attr("table"))))
    with pytest.raises(flex_attention_of_programs._NoWord):
        flex_attention_of_programs._function(torch.fx.GraphModule(module, graph))
