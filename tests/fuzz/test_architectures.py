"""Architectures of Transformers beside eager: two in every run of the tests, all thirty under TESSERA_TEST_ALL=1."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from architectures import ARCHITECTURES, tried  # noqa: E402

pytest.importorskip("transformers")
NAMES = list(ARCHITECTURES) if os.environ.get("TESSERA_TEST_ALL") else ["qwen3", "vit"]


@pytest.mark.parametrize("name", NAMES)
def test_as_eager(name):
    done = tried(name)
    assert done.verdict == "right", done.why
    assert done.served[0] == done.served[1]
