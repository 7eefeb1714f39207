"""Products of e4m3 operands (aten._scaled_mm): traced, their meaning in fp64, their budget, and a module of them."""

import pytest
import torch
from tessera.common.reference import Executor
from tessera.judging.problem import Problem
from tessera.judging.runners import make_runner
from tessera.judging.verify import verify
from tessera.tracing.held import hold, inputs_of
from tessera.tracing.tracer import trace_module
from torch import nn

M, N, K = 32, 48, 64


class Scaled(nn.Module):
    """y = scale_a scale_b (a b^T) + bias, in bf16; the weight is a buffer of e4m3."""

    def __init__(self, rowwise: bool):
        super().__init__()
        self.register_buffer("weight", torch.randn(N, K).to(torch.float8_e4m3fn))
        self.register_buffer("scale_b", torch.full((1, N) if rowwise else (), 0.25))
        self.bias = None if rowwise else nn.Parameter(torch.randn(N, dtype=torch.bfloat16))

    def forward(self, a, scale_a):
        return torch._scaled_mm(
            a, self.weight.t(), scale_a=scale_a, scale_b=self.scale_b, bias=self.bias, out_dtype=torch.bfloat16
        )


def made(rowwise: bool):
    torch.manual_seed(0)
    scale = torch.rand(M, 1) + 0.5 if rowwise else torch.tensor(0.5)
    return Scaled(rowwise), (torch.randn(M, K).to(torch.float8_e4m3fn), scale)


@pytest.mark.parametrize("rowwise", [False, True])
def test_the_meaning_is_the_product_of_what_the_operands_hold(rowwise):
    module, (a, scale) = made(rowwise)
    traced = trace_module(module, (a, scale), {})
    values = {**traced.state(), **traced.flatten((a, scale), {})}
    (got,) = Executor(traced.graph, "cpu").run_all(values, torch.float64).values()
    want = (a.double() @ module.weight.double().t()) * scale.double() * module.scale_b.double()
    want = want if rowwise else want + module.bias.double()
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, want)


def problem_of(module, args):
    traced = trace_module(module, args, {})
    graph = traced.graph
    inputs = [v["name"] for v in graph["values"] if v["origin"] not in ("node", "intermediate")]
    pattern = {"id": "p", "rule": "gemm", "nodes": [n["name"] for n in graph["nodes"]], "inputs": inputs}
    return Problem(graph, {**pattern, "outputs": graph["outputs"], "body": {}}, "cpu", "fp8")


def test_torch_itself_is_within_the_budget_on_every_distribution():
    problem = problem_of(*made(False))
    reply = verify(problem, make_runner({"call": {"function": "aten", "arguments": {}}}, problem), "full")
    assert reply["ok"], reply
    assert reply["budget"]["rms"] < 0.01  # the operands' own rounding is no excuse: they are given as e4m3


def test_a_lost_scale_is_caught():
    problem = problem_of(*made(False))

    class Unscaled:
        def prepare(self, tensors, outputs):
            doubled = [t * 2.0 if t.dim() == 0 else t for t in tensors]
            return lambda: problem.run(doubled, None)

    reply = verify(problem, Unscaled(), "quick")
    assert not reply["ok"] and reply["kind"] == "wrong_result", reply


def test_a_constant_that_a_pattern_holds_as_a_number_is_no_input():
    module, args = made(False)
    whole = problem_of(module, args)
    pattern = {**whole.pattern, "inputs": [n for n in whole.pattern["inputs"] if "scale_b" not in n]}
    assert len(pattern["inputs"]) == len(whole.pattern["inputs"]) - 1
    problem = Problem(whole.executor_graph, pattern, "cpu", "fp8")
    reply = verify(problem, make_runner({"call": {"function": "aten", "arguments": {}}}, problem), "quick")
    assert reply["ok"], reply


def test_inputs_of_eight_bits_are_redrawn():
    module, args = made(False)
    held = hold(module, args, {})
    (a, _), _ = inputs_of(held, 3)
    assert a.dtype == torch.float8_e4m3fn and a.shape == (M, K)
    assert not torch.equal(a.float(), args[0].float())
    assert torch.equal(a.float().flatten().sort().values, args[0].float().flatten().sort().values)
