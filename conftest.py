import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _extensions(tmp_path_factory):
    """Compiled once for all tests and their processes, each of which may have a cache of its own."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    os.environ.setdefault("TESSERA_EXTENSIONS", str(shared / "extensions"))
