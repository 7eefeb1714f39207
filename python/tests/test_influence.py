"""Which mistake a wrong result looks like, and on which parts of the inputs it depends otherwise than it must."""

from __future__ import annotations

import pytest
import torch
from evaluator_client import GRAPH, PATTERN
from tessera.judging.problem import Problem
from tessera.judging.verify import verify


class Runner:
    """A kernel in torch: relu(x w^T) with a mistake."""

    def __init__(self, compute):
        self._compute = compute

    def prepare(self, inputs, outputs):
        def call() -> None:
            outputs[0].copy_(self._compute(*inputs))

        return call


def wrong(compute) -> dict:
    with torch.no_grad():
        return verify(Problem(GRAPH, PATTERN, "cpu", "fp32"), Runner(compute), "full")["wrong"]


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w.T)


def test_a_right_kernel_has_nothing_wrong():
    with torch.no_grad():
        assert verify(Problem(GRAPH, PATTERN, "cpu", "fp32"), Runner(product), "full")["ok"]


@pytest.mark.parametrize(
    ("compute", "relation", "words"),
    [
        (lambda x, w: product(x, w.reshape(64, 16).T), "transposed_input", "t1 (w) transposed"),
        (lambda x, w: product(x[:1].expand(32, 64), w), "first_for_all", "t0 (x)"),
        (lambda x, w: product(-x, w), "negated_input", "t0 (x) negated"),
        (lambda x, w: product(x, w * 0 + 1), "left_out", "t1 (w) left out: as if it were 1"),
        (lambda x, w: product(x.bfloat16().float(), w), "rounded_input", "t0 (x) rounded to bfloat16"),
        (lambda x, w: product(x, w) * (1 + x[:, :1].abs()), "scaled_rows", "each wrong row is a multiple"),
    ],
)
def test_the_mistake_that_it_looks_like(compute, relation, words):
    found = wrong(compute)
    assert found["relation"] == relation and words in found["relation_details"], found


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        # The first 40 of 64, which are told two by two.
        (lambda x, w: product(x[:, :40], w[:, :40]), {(0, 1, 40, 63): 0, (1, 1, 40, 63): 0}),
        (lambda x, w: product(x, w) + 0.1 * x.roll(1, 0)[:, :16], "foreign"),
        (
            lambda x, w: torch.relu(x @ w.T + x[:, 16:32] @ w[:, 16:32].T),
            {(0, 1, 16, 31): 2, (1, 1, 16, 31): 2},
        ),
    ],
    ids=["short", "foreign", "twice"],
)
def test_what_it_depends_on_otherwise(compute, said):
    found = wrong(compute)["depends"]
    if said == "foreign":
        assert any(d["tensor"] == 0 and d["dim"] == 0 and d["weight"] is None for d in found), found
        assert all("must not" in d["text"] for d in found if d["weight"] is None)
        return
    assert {(d["tensor"], d["dim"], d["first"], d["last"]): d["weight"] for d in found} == said, found


def test_what_is_added_depends_on_nothing():
    (found,) = wrong(lambda x, w: product(x, w) + 3)["depends"]
    assert found["tensor"] == -1 and "added" in found["text"]
