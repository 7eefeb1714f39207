"""PyTorch's own samples of its ops, by family: 16 in every run of the tests, 300 under TESSERA_TEST_ALL=1."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import opinfo  # noqa: E402
import road  # noqa: E402

pytest.importorskip("expecttest", reason="torch.testing._internal needs it")
SAMPLES = 300 if os.environ.get("TESSERA_TEST_ALL") else 16
# No OpInfo knows the recurrent layers' functions.
FAMILIES = sorted(set(opinfo.families().values()) - {"recurrent"})


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_equal_eager(family):
    if road.tool() is None:
        pytest.skip("graph_tool is not built: ninja -C build graph_tool")
    counts = opinfo.family_counts(family, SAMPLES)
    print(f"{family}: {counts.right} right, {len(counts.wrong)} wrong, {len(counts.refused)} refused")
    assert counts.right and not counts.wrong, "\n".join(counts.wrong)
