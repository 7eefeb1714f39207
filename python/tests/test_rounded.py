"""What the class tf32 costs by itself, and the budgets that stand on it."""

import subprocess
import sys

import torch
import torch.nn.functional as F
from evaluator_client import GRAPH, PATTERN
from tessera.judging import rounded
from tessera.judging.deviation import larger_errors
from tessera.judging.problem import Problem
from tessera.judging.verify import verify
from tessera.running.library import view_of
from test_library import attention


def test_rounds_to_the_nearest_tf32_value():
    step = 2.0**-10
    x = torch.tensor([1.0, 1 + step / 4, 1 + step / 2, 1 + 3 * step / 4, -1 - step / 2, 1e-3, 0.0])
    got = rounded.round_to_tf32(x)
    assert got[:5].tolist() == [1.0, 1.0, 1 + step, 1 + step, -1 - step]
    assert torch.equal(got, rounded.round_to_tf32(got))
    assert ((got - x).abs() <= x.abs() * step / 2).all()
    odd = torch.tensor([float("inf"), -float("inf"), float("nan")])
    assert torch.equal(rounded.round_to_tf32(odd).nan_to_num(), odd.nan_to_num())
    assert rounded.round_to_tf32(x[::2]).shape == (4,)


def relative(got, want):
    return ((got.double() - want).norm() / want.norm()).item()


def test_every_spelling_of_a_product_is_rounded():
    torch.manual_seed(0)
    a, b, bias = torch.randn(4, 64, 96), torch.randn(4, 96, 32), torch.randn(32)
    w = torch.randn(32, 96)
    image, kernel = torch.randn(2, 8, 12, 12), torch.randn(16, 8, 3, 3)
    calls = {
        "matmul": (torch.matmul, (a, b)),
        "mm": (torch.mm, (a[0], b[0])),
        "addmm": (torch.addmm, (bias, a[0], b[0])),
        "linear": (F.linear, (a, w, bias)),
        "einsum": (lambda x, y: torch.einsum("bik,bkj->bij", x, y), (a, b)),
        "baddbmm": (torch.baddbmm, (torch.zeros(4, 64, 32), a, b)),
        "mv": (torch.mv, (a[0], b[0, :, 0])),
        "convolution": (F.conv2d, (image, kernel)),
        "attention": (F.scaled_dot_product_attention, (a[None], a[None] * 1.1, a[None] - 0.2)),
    }
    for name, (call, inputs) in calls.items():
        with torch.no_grad():
            want = call(*(t.double() for t in inputs))
            with rounded.products():
                error = relative(call(*inputs), want)
            assert 1e-4 < error < 1e-3, (name, error)  # tf32's half ulp is 4.9e-4
            assert relative(call(*inputs), want) < 1e-5, name  # and nothing stays rounded afterwards


class Rounding:
    """Attention whose operands a candidate brings into another type before each product."""

    def __init__(self, problem, into):
        self.problem, self.into = problem, into

    def prepare(self, tensors, outputs):
        body, into = self.problem.pattern["body"], self.into
        group = body["heads"] // body["kv_heads"]

        def run():
            q, k, v = (view_of(body[name], tensors) for name in ("q", "k", "v"))
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            s = into(q) @ into(k).mT * body["scale"]
            s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
            return [(into(s.softmax(-1)) @ into(v)).transpose(1, 2).contiguous()]

        return run


def test_attention_in_tf32_passes_where_eager_stays_at_fp32_and_less_than_tf32_does_not():
    graph, pattern = attention(causal=True)
    for precision, into, right in (
        ("tf32", rounded.round_to_tf32, True),
        ("fp32", rounded.round_to_tf32, False),
        ("tf32", lambda t: t.bfloat16().float(), False),
    ):
        problem = Problem(graph, pattern, "cpu", precision)
        reply = verify(problem, Rounding(problem, into), "quick")
        assert reply["ok"] == right, (precision, reply)


class Parts:
    """relu(X W^T) of operands that are taken apart, as kernels for tensor cores make it at the accuracy of fp32."""

    def __init__(self, spoil=lambda x, y: y):
        self.spoil = spoil

    def prepare(self, tensors, outputs):
        x, w = tensors

        def run():
            highs = [rounded.round_to_tf32(t) for t in (x, w)]
            lows = [t - high for t, high in zip((x, w), highs, strict=True)]
            sums = highs[0] @ highs[1].T + highs[0] @ lows[1].T + lows[0] @ highs[1].T
            return [self.spoil(x, sums.relu())]

        return run


def test_an_infinite_operand_may_count_as_nan_where_kernels_take_operands_apart():
    problem = Problem(GRAPH, PATTERN, "cpu", "fp32")
    data = problem.dataset("non_finite", 3)
    (parts,), (eager,) = Parts().prepare(data.tensors, None)(), problem.run(data.tensors, None)
    assert int((eager.isfinite() & parts.isnan()).sum()) > 4  # relu(-inf) is 0, relu(inf - inf) is not
    assert verify(problem, Parts(), "full")["ok"]
    for precision in ("tf32", "bf16"):
        refused = verify(Problem(GRAPH, PATTERN, "cpu", precision), Parts(), "quick")
        assert (refused["ok"], refused["kind"]) == (False, "non_finite"), refused


def test_what_no_infinite_operand_reaches_stays_finite_and_infinities_are_not_swallowed():
    def beside(x, y):
        return y.masked_fill_(x.isfinite().all(1)[:, None], torch.nan)

    def swallowed(x, y):
        return y.nan_to_num_(0.0, 0.0, 0.0)

    for spoil, words in (
        (beside, "not finite where eager is finite"),
        (swallowed, "finite where eager has inf or NaN"),
    ):
        reply = verify(Problem(GRAPH, PATTERN, "cpu", "fp32"), Parts(spoil), "quick")
        assert not reply["ok"] and words in reply["reason"], reply


def test_the_larger_error_counts():
    eager = [{"rms": 1e-7, "max": 5e-6, "peak": 3.0}]
    assert larger_errors(eager, []) is eager
    assert larger_errors(eager, [{"rms": 3e-4, "max": 1e-6, "peak": 1.0}]) == [{"rms": 3e-4, "max": 5e-6, "peak": 3.0}]


def test_no_compiler_of_pytorch_s_is_imported_for_it():
    """Dynamo takes seconds to import, which a search would spend before its first kernel."""
    text = (
        "import sys, torch; from tessera.judging import rounded\n"
        "for changed in (rounded.products, rounded.infinite_operands):\n"
        "    with changed(): torch.ones(2, 2) @ torch.ones(2, 2)\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
