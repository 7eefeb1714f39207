"""The meaning of a kernel file, computed by torch."""

from __future__ import annotations

import pytest
import torch
from tessera.common.errors import Error
from tessera.judging.meaning import is_plain_product, meaning

A, B, X = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(1, 4)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ("C[b, i, j] = sum(A[b, i, k] * B[b, j, k], k)", lambda: A.double() @ B.double().mT),
        ("C[b, j, i] = sum(A[b, i, k] * B[b, j, k], k)", lambda: (A.double() @ B.double().mT).mT),
        ("C[b, i, j] = relu(sum(A[b, i, k] * B[b, j, k], k) * 0.5 + X[0, j])",
         lambda: ((A.double() @ B.double().mT) * 0.5 + X.double()).relu()),
        ("C[i] = -A[1, i, 0]", lambda: -A.double()[1, :, 0]),
        ("C[i, k] = relu(sum(A[b, i, k], b))", lambda: A.double().sum(0).relu()),
        ("C[i, b] = sum(exp(A[b, i, k]), k) ** 2", lambda: (A.double().exp().sum(-1) ** 2).T),
    ],
)  # fmt: skip
def test_what_is_meant(means, expected):
    found = meaning(means, {"A": A, "B": B, "X": X})
    torch.testing.assert_close(found["C"], expected())
    assert found["C"].dtype == torch.float64


def test_several_outputs():
    found = meaning("C[i] = A[0, i, 0]; D[i] = A[1, i, 0] + 1", {"A": A})
    torch.testing.assert_close(found["D"], A.double()[1, :, 0] + 1)
    assert set(found) == {"C", "D"}
    assert meaning("", {}) == {}


@pytest.mark.parametrize(
    "means",
    [
        "C[i] = nothing(A[0, i, 0])",
        "C[i] = A[0, i, 0]()",
        "C = 1",
        "C[i] = Q[i]",
        "sum(C[s, i], s) = sum(A[s, i, k], k)",
    ],
)
def test_what_cannot_be_computed_is_refused(means):
    with pytest.raises(Error, match="TS0899"):
        meaning(means, {"A": A})


def test_plain_products_are_known():
    assert is_plain_product("C[i, j] = sum(A[i, k] * B[j, k], k)") == ("A", "B")
    assert is_plain_product("C[i, j] = relu(sum(A[i, k] * B[j, k], k))") is None
    assert is_plain_product("C[i, j] = sum(A[i, k] * B[j, k], k); D[i] = A[i, 0]") is None
    assert is_plain_product("C[b, i, j] = sum(A[b, i, k] * B[j, k], k)") == ("A", "B")
    assert is_plain_product("C[i, j] = sum(A[k, i] * B[j, k], k)") is None
    assert is_plain_product("C[j, i] = sum(A[i, k] * B[j, k], k)") is None
    assert is_plain_product("") is None
    assert is_plain_product("sum(P[s, i, j], s) = sum(A[i, k] * B[j, k], k)") is None
