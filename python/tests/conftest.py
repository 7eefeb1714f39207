from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory):
    """A cache of the tests' own, so that they neither read nor fill the user's."""
    if "TESSERA_HOME" not in os.environ:
        os.environ["TESSERA_HOME"] = str(tmp_path_factory.mktemp("home"))
