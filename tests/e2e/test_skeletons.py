"""Skeletons of proposed subgraphs: each op that a loop is known for is right, and what is left to the reader is said."""

from __future__ import annotations

import json
import os

import pytest
from core import tessera

MODEL = """
import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x, y):
        moved = torch.flip(torch.roll(x, 3, 1), [0]) + torch.tril(y, -1) - torch.triu(y, 2)
        joined = torch.cat([F.pad(moved, (1, 2), value=0.5), torch.softmax(y, 1)[:, :6]], 1)
        shares = F.log_softmax(joined, 0) * torch.cumprod(joined * 0.01 + 1, 1)
        return shares, torch.sort(x, 1).values * 2, torch.cumsum(x.sum(), 0) * 3


def get_inputs():
    return [torch.randn(24, 20), torch.randn(24, 20)]
"""
NODES = [
    "roll",
    "flip",
    "tril",
    "add",
    "triu",
    "sub",
    "pad",
    "softmax",
    "cat",
    "log_softmax",
    "mul",
    "add_1",
    "cumprod",
    "mul_1",
]


def proposed(tmp_path) -> dict[str, str]:
    (tmp_path / "model.py").write_text(MODEL)
    rows = [
        {"name": "moves", "nodes": NODES, "rationale": ""},
        {"name": "sorted", "nodes": ["sort", "mul_2"], "rationale": ""},
        {"name": "scalar", "nodes": ["sum_1", "cumsum", "mul_3"], "rationale": ""},
    ]
    (tmp_path / "rows.json").write_text(json.dumps({"proposals": rows}))
    found = json.loads(tessera(tmp_path, "discover", "model.py", "--propose", "rows.json").stdout)
    assert all(p["pattern"] for p in found["proposals"]), found["proposals"]
    return {p["name"]: p["pattern"] for p in found["proposals"]}


def test_what_is_moved_joined_and_scanned_is_right_and_what_is_missing_is_named(tmp_path):
    patterns = proposed(tmp_path)
    made = json.loads(tessera(tmp_path, "try", "model.py", patterns["moves"], "--skeleton").stdout)
    assert made["missing"] == []
    (tmp_path / "moves.cpp").write_text(made["text"])
    done = tessera(tmp_path, "try", "model.py", patterns["moves"], "--source", "moves.cpp", "--peers", "eager")
    verdict = json.loads(done.stdout)
    assert done.returncode == 0 and verdict["passed"], verdict
    made = json.loads(tessera(tmp_path, "try", "model.py", patterns["sorted"], "--skeleton").stdout)
    assert made["missing"] == ["aten.sort"] and '#error "aten.sort: ' in made["text"]
    assert "//   t0 input  float32 (24,20):(20,1)  %x" in made["text"]
    (tmp_path / "sorted.cpp").write_text(made["text"])
    done = tessera(tmp_path, "try", "model.py", patterns["sorted"], "--source", "sorted.cpp", "--peers", "eager")
    verdict = json.loads(done.stdout)
    assert verdict["failure"] == "does_not_compile" and "aten.sort" in verdict["cause"], verdict
    made = json.loads(tessera(tmp_path, "try", "model.py", patterns["scalar"], "--skeleton").stdout)
    assert made["missing"] == ["aten.cumsum"], "along the dim that a scalar does not have there is no loop"


def test_a_tensor_that_no_skeleton_loads_is_named(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.cumsum(x, 1) * 2\n"
        "\n\ndef get_inputs():\n    return [torch.zeros(4, 8, dtype=torch.uint8)]\n"
    )
    (tmp_path / "rows.json").write_text('{"proposals": [{"name": "one", "nodes": ["cumsum", "mul"], "rationale": ""}]}')
    found = json.loads(tessera(tmp_path, "discover", "model.py", "--propose", "rows.json").stdout)
    done = tessera(tmp_path, "try", "model.py", found["proposals"][0]["pattern"], "--skeleton")
    d = json.loads(done.stdout or done.stderr)
    assert done.returncode == 3 and d["code"] == "TS0053" and "uint8" in d["message"], d


WINDOWS = """
import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        x = F.pad(F.pad(F.pad(x, (2, 1), mode="reflect"), (1, 1), mode="replicate"), (1, 2), mode="circular")
        spans = x.unfold(2, 4, 3).amax(-1).repeat(2, 1, 1, 2)
        return spans, x.unfold(1, 2, 1).mean(-1).repeat_interleave(2, 2)


def get_inputs():
    return [torch.randn(3, 5, 9)]
"""
OF_WINDOWS = ["pad", "pad_1", "pad_2", "unfold", "amax", "repeat", "unfold_1", "mean", "repeat_interleave"]


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="under TESSERA_TEST_ALL=1")
def test_windows_repeats_and_pads_of_every_mode_are_right(tmp_path):
    (tmp_path / "model.py").write_text(WINDOWS)
    found = json.loads(tessera(tmp_path, "discover", "model.py").stdout)
    assert found["proposable"] == [OF_WINDOWS], found["proposable"]
    rows = [{"name": "windows", "nodes": found["proposable"][0], "rationale": ""}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    found = json.loads(tessera(tmp_path, "discover", "model.py", "--propose", "rows.json").stdout)
    assert found["proposable"] == [], "it is a pattern now"
    pattern = found["proposals"][0]["pattern"]
    made = json.loads(tessera(tmp_path, "try", "model.py", pattern, "--skeleton").stdout)
    assert made["missing"] == []
    (tmp_path / "windows.cpp").write_text(made["text"])
    done = tessera(tmp_path, "try", "model.py", pattern, "--source", "windows.cpp", "--peers", "eager")
    verdict = json.loads(done.stdout)
    assert verdict["passed"] and verdict["errors"]["budget"]["rms"] > 0, verdict
