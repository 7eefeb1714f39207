"""`tessera report --html`, with the plotly that its Python has or has not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from core import BINARY, environment

REPORT = {
    "schema": "tessera.report/1",
    "name": "net",
    "rewrites": [],
    "patterns": [],
    "leftover": [{"op": "aten.mm", "node": "y", "reason": "no rule takes it"}],
    "rejections": [],
    "verification": {},
    "module": {"times": {"tessera": {"ms": 2.3, "ci95": 0.1}, "eager": {"ms": 6.28, "ci95": 0.1}}},
}


@pytest.fixture
def render(tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(REPORT))

    def run(python: str, html: str = "page.html") -> subprocess.CompletedProcess:
        command = [BINARY, "report", tmp_path, "--html", tmp_path / html]
        env = environment(tmp_path, TESSERA_PYTHON=python)
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=False)

    return run


def test_a_python_without_plotly_gives_a_page_with_tables_and_says_how_to_get_plots(render, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    done = render(str(bare))
    assert done.returncode == 0, done.stderr
    assert "TS0709" in done.stderr and f"{bare} -m pip install plotly" in done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "js-plotly-plot" not in page and "6.28" in page and "pip install plotly" in page
    assert "a kind of subgraph that a kernel may take" in page  # the glossary's `rule`


def test_a_python_with_plotly_draws(render, tmp_path):
    pytest.importorskip("plotly")
    done = render(sys.executable)
    assert done.returncode == 0 and "TS0709" not in done.stderr + done.stdout, done.stderr
    assert "js-plotly-plot" in (tmp_path / "page.html").read_text()


def test_a_page_that_cannot_be_written_is_an_error(render):
    done = render(sys.executable, "no/such/folder.html")
    assert done.returncode == 3 and "TS0711" in done.stderr, done.stderr
