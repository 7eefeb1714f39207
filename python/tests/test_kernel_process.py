"""What `tessera run` and `tessera bench` say of a result; the launch itself is a product by torch here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tessera import kernel_process
from tessera.common.errors import Error
from test_interface import PRODUCT

REPORT = {
    "kernel": "product",
    "library": "/nowhere.so",
    "hash": "0",
    "arch": "sm_90a",
    "interface": PRODUCT,
    "means": "C[i, j] = sum(A[i, k] * B[j, k], k)",
    "verdict": "proved",
}
SIZES = {"M": 16, "N": 24, "K": 8}


@pytest.fixture(autouse=True)
def _on_the_host(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(kernel_process, "DEVICE", "cpu")
    monkeypatch.setattr(kernel_process.Prepared, "launch", launch)


def launch(prepared) -> None:
    t = prepared.tensors
    t["C"].copy_(t["A"].float() @ t["B"].float().T)


def asked(**sizes) -> dict:
    return {"report": REPORT, "sizes": sizes, "seed": 0}


def test_a_right_result_is_right():
    reply = kernel_process.run(asked(**SIZES))
    assert reply["right"] and "product: right" in reply["text"]
    (row,) = reply["data"]["outputs"]
    assert 0 < row["error"] <= row["budget"] < 0.01 and reply["data"]["ints"] == {**SIZES, "S": 8}


@pytest.mark.parametrize("value", [float("nan"), 1e6])
def test_a_wrong_element_is_named(monkeypatch, value):
    def wrong(prepared) -> None:
        launch(prepared)
        prepared.tensors["C"][3, 5] = value

    monkeypatch.setattr(kernel_process.Prepared, "launch", wrong)
    for method in (kernel_process.run, kernel_process.bench):
        reply = method(asked(**SIZES))
        assert not reply["right"] and "at [3, 5]" in reply["text"]
        assert reply["data"]["outputs"][0]["at"] == [3, 5]


def test_sizes_that_are_wrong_are_refused():
    for sizes, code in [({"M": 16}, "TS0039"), ({**SIZES, "Q": 1}, "TS0039"), ({**SIZES, "M": 12}, "TS0894")]:
        with pytest.raises(Error, match=code):
            kernel_process.run(asked(**sizes))


def test_times_are_told_beside_the_peer(monkeypatch):
    class Clock:
        def __init__(self, device):
            pass

        def warm(self, call):
            call()
            return 0.5, 0.01

        def sample(self, call, host_ms):
            return 0.5 if call.__name__ == "launch" else 1.0

    monkeypatch.setattr(kernel_process, "CudaClock", Clock)
    monkeypatch.setattr(kernel_process, "under_load", lambda clock, subjects: [])
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    reply = kernel_process.bench(asked(**SIZES))
    ours, peer = reply["data"]["times"]
    assert (ours["name"], ours["ms"], peer["name"], peer["ms"]) == ("product", 0.5, "torch.matmul", 1.0)
    assert (
        reply["data"]["flops"] == 2 * 16 * 24 * 8 and "2.000x" in reply["text"] and "the host decides" in reply["text"]
    )


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(is_available=lambda: False))
    with pytest.raises(Error, match="TS0713"):
        kernel_process.run(asked(**SIZES))
