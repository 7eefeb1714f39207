"""A kernel's library: what is refused before it runs, and what it refuses."""

from __future__ import annotations

import subprocess

import pytest
import torch
from evaluator_client import ROOT, TEMPLATE, K, M, N
from tessera.common.errors import Error
from tessera.running.kernels import Kernel

SOURCE = TEMPLATE.replace("@FAULT@", "")
INTS = [M, N, K]


def kernel(folder, source: str) -> Kernel:
    (folder / "k.cpp").write_text(source)
    command = ["g++", "-O0", "-shared", "-fPIC", "-w", "-I", ROOT / "include", "-o", folder / "k.so", folder / "k.cpp"]
    subprocess.run(command, check=True)
    return Kernel(str(folder / "k.so"))


def tensors() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(N, K), torch.empty(M, N)]


@pytest.mark.parametrize(
    "old, new, ints, code",
    [
        ('"abi":1', '"abi":0', INTS, "TS0311"),
        ("", "", INTS[:2], "TS0312"),
        ("return 64;", "return -1;", INTS, "TS0313"),
        ("return 0;", "return 1;", INTS, "TS0314"),
    ],
)
def test_what_does_not_run_says_why(tmp_path, old, new, ints, code):
    with pytest.raises(Error) as refused:
        kernel(tmp_path, SOURCE.replace(old, new) if old else SOURCE).prepare(tensors(), ints)()
    d = refused.value.diagnostic
    assert d["code"] == code
    assert (d["message"] == "it said no") == (code in ("TS0313", "TS0314"))


def test_a_right_one_runs(tmp_path):
    x, w, y = tensors()
    kernel(tmp_path, SOURCE).prepare([x, w, y], INTS)()
    torch.testing.assert_close(y, torch.relu(x @ w.T))
