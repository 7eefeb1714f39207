"""The versions that library kernels are bound to."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from tessera.tracing import library_versions
from tessera.tracing.library_versions import machine


def test_a_graph_carries_them():
    assert machine(torch.device("cpu"))["libraries"] == {"torch": torch.__version__}


def test_the_command_prints_the_machine():
    done = subprocess.run(
        [sys.executable, "-m", "tessera.tracing.library_versions"], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout.splitlines()[-1])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert said["libraries"] == machine(device)["libraries"] and said["device_name"]


@pytest.mark.parametrize(
    "text",
    ["580.82.07\n", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Wed Aug 27\nGCC version: gcc 12.2.0\n"],
)
def test_driver(tmp_path, text):
    (tmp_path / "version").write_text(text)
    assert library_versions._driver((str(tmp_path / "none"), str(tmp_path / "version"))) == "580.82.07"


def test_what_cannot_be_found_out_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    assert library_versions._driver((str(tmp_path / "none"),)) == "unknown"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_all_are_known():
    versions = library_versions.library_versions("cuda")
    assert set(versions) == {"torch", "cuda", "cublas", "cudnn", "driver"}
    assert "unknown" not in versions.values(), versions
