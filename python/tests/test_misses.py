"""How wrong elements lie, and what was found in their place."""

from __future__ import annotations

import pytest
import torch
from tessera.judging import misses
from tessera.judging.deviation import reference_of

VALUE = {"name": "y"}
ALLOWED = {"rms": 1e-5, "max": 1e-4}


def said(change, shape=(12, 20)) -> dict | None:
    torch.manual_seed(0)
    right = torch.randn(shape)
    out = right.clone()
    result = change(out)
    return misses.describe(
        VALUE, out if result is None else result, reference_of(right.double(), right), ALLOWED, "normal"
    )


def test_what_is_right_has_nothing_to_say():
    assert said(lambda y: None) is None


@pytest.mark.parametrize(
    ("change", "lies", "index", "count"),
    [
        (lambda y: y[3, 7].add_(1), "one element", [3, 7], 1),
        (lambda y: y[10:].add_(torch.rand(2, 20) + 1), "tail of rows", [10, 0], 40),
        (lambda y: y[:, 16:].add_(torch.rand(12, 4) + 1), "tail of columns", [0, 16], 48),
        (lambda y: y[2:4].add_(torch.rand(2, 20) + 1), "rows", [2, 0], 40),
        (lambda y: y[:, 5:7].add_(torch.rand(12, 2) + 1), "columns", [0, 5], 24),
        (lambda y: y[1::4].add_(torch.rand(3, 20) + 1), "every n-th", [1, 0], 60),
        (lambda y: y[4:8, 4:12].add_(torch.rand(4, 8) + 1), "a block", [4, 4], 32),
        (lambda y: y[8:, 12:].add_(torch.rand(4, 8) + 1), "tail of block", [8, 12], 32),
        (lambda y: y.add_(torch.rand(12, 20) + 1), "everywhere", [0, 0], 240),
        (lambda y: [y[i, (7 * i) % 20].add_(1) for i in range(12)] and None, "scattered", [0, 0], 12),
    ],
)
def test_how_they_lie(change, lies, index, count):
    found = said(lambda y: (change(y), None)[1])
    assert (found["lies"], found["index"], found["count"]) == (lies, index, count), found
    assert found["of"] == 240 and found["expected"] != found["found"]


NOISE = torch.rand(32, 40) + 1


@pytest.mark.parametrize(
    ("change", "lies", "details"),
    [
        (lambda y: y + NOISE * torch.eye(32, 40), "a diagonal", "where the index of dim 1 is that of dim 0"),
        (
            lambda y: y + NOISE * torch.ones(32, 40).triu(3).tril(3),
            "a diagonal",
            "where the index of dim 1 is that of dim 0 + 3",
        ),
        (lambda y: y + NOISE * torch.ones(32, 40).triu(1), "a triangle", "minus that of dim 0 is 1 or more"),
        (lambda y: y + NOISE * torch.ones(32, 40).tril(-3), "a triangle", "minus that of dim 0 is -3 or less"),
        (lambda y: y + NOISE * torch.ones(32, 40).triu(-2).tril(5), "a band", "minus that of dim 0 is -2 to 5"),
        (lambda y: y + NOISE * (torch.arange(1280).reshape(32, 40) * 2654435761 % 997 < 300), "scattered", ""),
    ],
)
def test_diagonals(change, lies, details):
    found = said(change, (32, 40))
    assert found["lies"] == lies and details in found["details"], found


@pytest.mark.parametrize(("change", "by", "dim"), [(lambda y: y.roll(-9, 0), -9, 0), (lambda y: y.roll(13, 1), 13, 1)])
def test_shifts_of_any_length(change, by, dim):
    found = said(change, (32, 40))
    assert found["relation"] == "shifted", found
    assert found["relation_details"].endswith(f"shifted by {by} along dim {dim}")


@pytest.mark.parametrize(
    ("change", "relation"),
    [
        (lambda y: y * 0, "zero"),
        (lambda y: y * 0.5, "scaled"),
        (lambda y: y * torch.linspace(0.3, 0.9, 12)[:, None], "scaled_rows"),
        (lambda y: y + 3, "offset"),
        (lambda y: y * 0 + 7, "constant"),
        (lambda y: torch.roll(y, 1, 1), "shifted"),
        (lambda y: y.t().contiguous().reshape(y.shape), "transposed"),
        (lambda y: y.bfloat16().float(), "rounded"),
        (
            lambda y: torch.cat([y.half().reshape(-1), torch.zeros(240).half()]).view(torch.float32).reshape(y.shape),
            "other_type",
        ),
        (lambda y: y.reshape(-1)[:120].double().view(torch.float32).reshape(y.shape), "other_type"),
        (lambda y: y + torch.randn(y.shape), ""),
    ],
)
def test_what_was_found(change, relation):
    found = said(change)
    assert found["relation"] == relation, found
    assert bool(found["relation_details"]) == bool(relation)


def test_infinities_and_integers():
    found = said(lambda y: y[5, 5].fill_(float("nan")).numel() * 0 or None)
    assert found["found"] == "nan" and found["lies"] == "one element"
    right = torch.arange(12)
    found = misses.describe(VALUE, right + (right > 8), reference_of(right, right), {"rms": 0.0, "max": 0.0}, "normal")
    assert (found["index"], found["found"], found["count"]) == ([9], "10", 3)
    none = torch.empty(0, 4)
    assert misses.describe(VALUE, none, reference_of(none.double(), none), ALLOWED, "normal") is None


@pytest.mark.parametrize(
    ("change", "relation", "words"),
    [
        (lambda y: y * 1.001, "nearly_scaled", "1 + 0.001 times"),
        (lambda y: y * (1 - torch.linspace(1e-4, 3e-3, 12)[:, None]), "nearly_scaled_rows", "all below 1"),
        (lambda y: y * (1 + torch.linspace(1e-4, 3e-3, 20)), "nearly_scaled_rows", "line along dim 0"),
        (lambda y: y * (1 + 1e-3 * torch.rand(12, 20)), "one_way", "towards larger values: no rounding does so"),
        (lambda y: y * (1 + 1e-3 * (torch.rand(12, 20) - 0.5)), "rounded", "as if rounded"),
        # Cut, not rounded: one way, with no digits left behind.
        (lambda y: (y.view(torch.int32) & -65536).view(torch.float32), "rounded", "as if rounded"),
    ],
)
def test_a_constant_is_told_from_a_rounding(change, relation, words):
    found = said(change)
    assert found["relation"] == relation and words in found["relation_details"], found
