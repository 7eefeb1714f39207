"""A kernel by hand whose time is not known at once is timed again, and what stays unknown is said."""

from __future__ import annotations

import json

from core import tessera

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x) * 2


def get_inputs():
    return [torch.randn(64, 48)]
"""
BEGIN = "(void)workspace, (void)stream;"


def test_a_kernel_of_uneven_time_is_timed_again(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    skeleton = json.loads(tessera(tmp_path, "try", "model.py", "p01", "--skeleton").stdout)["text"]
    assert BEGIN in skeleton
    # About every second run takes ten times as long as the others.
    uneven = (
        " static unsigned runs = 0; const unsigned turns = (++runs * 2654435761u >> 16) % 2 ? 200000 : 2000000;"
        " for (volatile unsigned i = 0; i < turns; i = i + 1) {}"
    )
    (tmp_path / "uneven.cpp").write_text(skeleton.replace(BEGIN, BEGIN + uneven))
    done = tessera(tmp_path, "try", "model.py", "p01", "--source", "uneven.cpp", "--peers", "eager")
    verdict = json.loads(done.stdout)
    assert verdict["passed"], verdict
    assert done.stderr.count("once more") == 2, done.stderr
    assert verdict["measured"]["unreliable"] and not verdict["reliable"]
