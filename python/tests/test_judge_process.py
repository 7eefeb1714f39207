"""What the processes of `tessera judge` refuse of a reference (tests/e2e/test_judge.py runs them whole)."""

from __future__ import annotations

import pytest
import torch
from evaluator_client import GRAPH
from tessera.common.errors import Error
from tessera.judge_process import Judge
from tessera.reference_process import form_of


def opened(folder, graph: dict = GRAPH, file: str = "build.bin") -> dict:
    build = {"state": {}, "given": {}, "file": str(folder / file)}
    return Judge().open({"reference": {"graph": graph, "builds": [build]}, "device": "cpu", "folder": str(folder)})


def test_an_argument_that_cannot_be_handed_on_is_named():
    x = torch.randn(2)
    assert form_of((x, [3, "max"]), {}, {id(x): "x"})["args"] == [
        {"tensor": "x"}, {"list": [{"plain": 3}, {"plain": "max"}]}
    ]  # fmt: skip
    with pytest.raises(Error, match="TS0071"):
        form_of(((object(),)), {}, {})


def test_a_reference_whose_state_is_gone_is_refused(tmp_path):
    with pytest.raises(Error, match="TS0542"):
        opened(tmp_path, file="absent.bin")


def test_a_reference_without_results_is_refused(tmp_path):
    (tmp_path / "build.bin").write_bytes(b"")
    assert [v["name"] for v in opened(tmp_path)["outputs"]] == ["relu"]
    with pytest.raises(Error, match="TS0543"):
        opened(tmp_path, GRAPH | {"outputs": []})
