"""Constants that are wrong in the last digits: what is off is a multiple of an input, or of each row."""

from __future__ import annotations

import pytest
import torch
from tessera.judging.problem import Problem
from tessera.judging.verify import verify

ROWS, COLUMNS = 24, 64


def _value(name: str, shape: list[int], origin: str = "node") -> dict:
    strides = [1] * len(shape)
    for d in reversed(range(len(shape) - 1)):
        strides[d] = strides[d + 1] * shape[d + 1]
    return {"name": name, "dtype": "float32", "shape": shape, "strides": strides, "origin": origin}


def _node(name: str, op: str, **arguments) -> dict:
    encoded = {k: {"value": v} if isinstance(v, str) else v for k, v in arguments.items()}
    return {"name": name, "op": op, "outputs": [name], "arguments": encoded}


def _problem(inputs: dict[str, list[int]], nodes: list[dict], shapes: dict[str, list[int]]) -> Problem:
    values = [_value(n, shape, "user_input") for n, shape in inputs.items()]
    values += [_value(n["name"], shapes.get(n["name"], [ROWS, COLUMNS])) for n in nodes]
    graph = {
        **{"schema": "tessera.graph/1", "name": "test", "device": "cpu", "precision": "fp32", "values": values},
        **{"inputs": list(inputs), "nodes": nodes, "outputs": [nodes[-1]["name"]]},
    }
    pattern = {"id": "p01", "rule": "proposed", "nodes": [n["name"] for n in nodes], "body": {}, "signature": "test"}
    pattern |= {"inputs": list(inputs), "outputs": [nodes[-1]["name"]]}
    return Problem(graph, pattern, "cpu", "fp32")


def gated() -> Problem:
    """s c + (1 - s) h, s = sigmoid(a)."""
    shape = [ROWS, COLUMNS]
    nodes = [
        _node("s", "aten.sigmoid.default", self="a"),
        _node("rest", "aten.rsub.Scalar", self="s", other=1.0),
        _node("new", "aten.mul.Tensor", self="s", other="candidate"),
        _node("old", "aten.mul.Tensor", self="rest", other="history"),
        _node("y", "aten.add.Tensor", self="new", other="old"),
    ]
    return _problem({"a": shape, "candidate": shape, "history": shape}, nodes, {})


def normalized() -> Problem:
    """x / (|x| + 1e-6) + bias."""
    nodes = [
        _node("norm", "aten.linalg_vector_norm.default", self="x", ord=2.0, dim=[-1], keepdim=True),
        _node("more", "aten.add.Scalar", self="norm", other=1e-6),
        _node("unit", "aten.div.Tensor", self="x", other="more"),
        _node("y", "aten.add.Tensor", self="unit", other="bias"),
    ]
    one = [ROWS, 1]
    return _problem({"x": [ROWS, COLUMNS], "bias": [COLUMNS]}, nodes, {"norm": one, "more": one})


class Runner:
    def __init__(self, compute):
        self._compute = compute

    def prepare(self, inputs, outputs):
        def call() -> None:
            outputs[0].copy_(self._compute(*inputs))

        return call


def wrong(problem: Problem, compute) -> dict:
    with torch.no_grad():
        return verify(problem, Runner(compute), "full")["wrong"]


def _gate(one: float, factor: float = 1.0):
    def compute(a, candidate, history):
        s = torch.sigmoid(a)
        return factor * s * candidate + (one - s) * history

    return compute


def test_what_is_right_has_nothing_wrong():
    with torch.no_grad():
        assert verify(gated(), Runner(_gate(1.0)), "full")["ok"]


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (_gate(1.001), "a constant is wrong: found - expected is 0.001 x t2 (history)"),
        (_gate(1.5), "a constant is wrong: found - expected is 0.5 x t2 (history)"),
        (_gate(1.0, 1.0005), "a constant is wrong: found - expected is 0.0005 x %new"),
    ],
)
def test_what_is_off_is_a_multiple_of_an_input_or_of_a_value(compute, words):
    found = wrong(gated(), compute)
    assert (found["relation"], found["relation_details"], found["depends"]) == ("wrong_constant", words, [])


def test_an_epsilon_gives_each_row_a_factor_near_one():
    """The bias is no part of what is a multiple: it is taken off."""
    found = wrong(normalized(), lambda x, b: x / (x.norm(dim=-1, keepdim=True) + 1e-3) + b)
    assert found["relation"] == "nearly_scaled_rows", found
    assert "all below 1" in found["relation_details"] and "t1 (bias) taken off both" in found["relation_details"]


def test_a_value_that_is_wrong_in_no_such_way_fits_nothing():
    found = wrong(gated(), lambda a, c, h: torch.sigmoid(a * 1.001) * c + (1 - torch.sigmoid(a)) * h)
    assert found["relation"] not in ("wrong_constant", "nearly_scaled", "nearly_scaled_rows"), found
