"""`tessera explain`, and the way to it from an error."""

from __future__ import annotations

import json
import subprocess

from core import BINARY, environment, tessera


def said(home, *arguments) -> subprocess.CompletedProcess:
    """As people call it, without --json."""
    return subprocess.run(
        [BINARY, *arguments], env=environment(home), cwd=home, capture_output=True, text=True, timeout=60
    )


def test_a_code(tmp_path):
    done = said(tmp_path, "explain", "TS0202")
    assert done.returncode == 0 and done.stdout.startswith("TS0202 graph.untraceable\n")
    for heading in ("What it means", "Why it comes up", "What to do", "Example"):
        assert f"\n{heading}\n  " in done.stdout
    (e,) = json.loads(tessera(tmp_path, "explain", "graph.untraceable").stdout)["codes"]
    assert e["code"] == "TS0202" and all(e[field] for field in ("means", "arises", "remedy", "example"))


def test_a_family_and_all(tmp_path):
    done = said(tmp_path, "explain", "TS02")
    assert done.stdout.startswith("TS02  graph") and "  TS0202  graph.untraceable\n" in done.stdout
    assert "TS0301" not in done.stdout
    everything = said(tmp_path, "explain").stdout
    assert "TS0001" in everything and "TS0960" in everything


def test_an_unknown_code_names_the_nearest(tmp_path):
    done = tessera(tmp_path, "explain", "TS0207")
    d = json.loads(done.stdout)
    assert done.returncode == 3 and d["code"] == "TS0048" and d["help"][0] == "did you mean `TS0201`?", d


def test_an_error_points_to_it(tmp_path):
    done = said(tmp_path, "report", "absent.json")
    assert done.returncode == 3 and done.stderr.endswith("  = more: tessera explain TS0031\n"), done.stderr
