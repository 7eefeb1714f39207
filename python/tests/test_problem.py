"""What an evaluator process remembers of its problems, and the copies that keep a host's caches cold."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from evaluator_client import GRAPH, PATTERN, K, N
from tessera.common.errors import Error
from tessera.judging import timing
from tessera.judging.problem import Kept, Problem
from tessera.judging.runners import make_runner


def problem(kept: Kept | None = None) -> Problem:
    return Problem(GRAPH, PATTERN, "cpu", "fp32", kept)


@pytest.mark.parametrize(
    "given, code",
    [
        ({"outputs": ["nobody"]}, "TS0510"),
        ({"inputs": ["x"]}, "TS0221"),  # the weight is neither made nor given
    ],
)
def test_a_pattern_names_values_of_its_graph(given, code):
    with pytest.raises(Error, match=code):
        Problem(GRAPH, PATTERN | given, "cpu", "fp32").dataset("normal", 0)


def test_a_result_of_another_shape_than_the_graph_says_is_refused():
    graph = deepcopy(GRAPH)
    next(v for v in graph["values"] if v["name"] == "relu")["shape"] = [K, N]
    with pytest.raises(Error, match="TS0511"):
        Problem(graph, PATTERN, "cpu", "fp32").dataset("normal", 0)


def test_a_reference_without_room_says_so_and_what_was_kept_goes_first(monkeypatch):
    p = problem(kept := Kept(1 << 30))
    p.dataset("normal", 0)
    forgotten = []
    monkeypatch.setattr(kept, "forget_all", lambda: forgotten.append(True))

    def no_room(*given):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(p, "run", no_room)
    with pytest.raises(Error, match="TS0513"):
        p.dataset("normal", 1)
    assert forgotten


def test_a_candidate_has_a_library_or_a_call():
    with pytest.raises(Error, match="TS0512"):
        make_runner({"label": "neither"}, problem())


def test_problems_share_what_may_be_kept_and_those_used_last_stay():
    size = problem().dataset("normal", 0).nbytes
    kept = Kept(2 * size)
    a, b = problem(kept), problem(kept)
    of_a, of_b = a.dataset("normal", 0), b.dataset("normal", 0)
    assert a.dataset("normal", 0) is of_a and b.dataset("normal", 0) is of_b
    assert a.dataset("normal", 0) is of_a  # used last: b's goes first
    a.dataset("normal", 1)
    assert a.dataset("normal", 0) is of_a
    again = b.dataset("normal", 0)
    assert again is not of_b
    assert torch.equal(again.references[0].value, of_b.references[0].value)
    assert torch.equal(again.tensors[0], of_b.tensors[0])


def test_forgetting_one_problem_leaves_the_others():
    kept = Kept(1 << 30)
    a, b = problem(kept), problem(kept)
    of_a, of_b = a.dataset("normal", 0), b.dataset("normal", 0)
    a.forget()
    assert a.dataset("normal", 0) is not of_a and b.dataset("normal", 0) is of_b
    kept.forget_all()
    assert b.dataset("normal", 0) is not of_b


def test_what_is_larger_than_all_is_made_each_time():
    p = problem(Kept(16))
    assert p.dataset("normal", 0) is not p.dataset("normal", 0)


def test_input_sets_hold_the_same_numbers_at_other_places():
    p = problem()
    first, *others = timing.input_sets(p)
    assert others and first is p.dataset("normal", 0)
    for other in others:
        for one, copy in zip(first.tensors, other.tensors, strict=True):
            assert torch.equal(one, copy) and one.data_ptr() != copy.data_ptr()


def test_the_rules_roles_say_how_weights_are_scaled_and_what_takes_no_number():
    def filled(roles: dict, kind: str) -> list[torch.Tensor]:
        return Problem(GRAPH, {**PATTERN, "roles": roles}, "cpu", "fp32").dataset(kind, 0).tensors

    k = GRAPH["values"][1]["shape"][1]
    upper = {"tensor": 0, "shape": [4, k], "strides": [k, 1]}
    usual, wide = filled({}, "normal"), filled({"fan_in": 4 * k}, "normal")
    assert torch.equal(usual[0], wide[0])
    torch.testing.assert_close(usual[1], 2 * wide[1])
    everywhere, above = filled({}, "non_finite"), filled({"non_finite": [upper]}, "non_finite")
    assert not everywhere[0][4:].isfinite().all()
    assert above[0][4:].isfinite().all() and not above[0][:4].isfinite().all()
