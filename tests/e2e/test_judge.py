#!/usr/bin/env -S python3 -m pytest
"""`tessera judge`: what is right passes, and of every cheat of tests/judge/cheats what it is, is said.

Cheats are judged in folders, beside one reference; each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from core import BINARY, ROOT, environment, tessera

FOLDER = ROOT / "tests/judge"
ALL = sorted(p.stem for p in (FOLDER / "cheats").glob("*.py"))
# One of each kind; the others under TESSERA_TEST_ALL=1: each starts a process of its own.
ONE_OF_EACH = [
    "caches_by_a_few_elements",
    "changes_its_input",
    "counts_its_calls",
    "ends_its_process",
    "lazy_result",
    "library_by_another_name",
    "lower_precision",
    "one_buffer_for_all",
    "reads_files",
    "replaces_the_clock",
    "slows_the_clock",
]
CHEATS = ALL if os.environ.get("TESSERA_TEST_ALL") else ONE_OF_EACH
SAID = re.compile(r"^Said: ([\w ]+): ?(.*)$", re.MULTILINE)


def judge(home: Path, file: Path, *more: str, code: int) -> dict:
    done = tessera(
        home, "judge", file, "--reference", FOLDER / "reference.py", "--peers", "eager", "--rounds", "3", *more
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    doctor = json.loads(tessera(folder, "doctor").stdout)
    if not any(m["works"] for m in doctor["sandbox"]["mechanisms"]):
        pytest.skip(f"no sandbox on this machine: {doctor['sandbox']}")
    return folder


@pytest.fixture(scope="module")
def cheats(home) -> dict[str, dict]:
    """By name, from folders of a few, so that no command takes long."""
    found = {}
    for begin in range(0, len(CHEATS), 6):
        folder = home / f"cheats{begin}"
        folder.mkdir()
        for name in CHEATS[begin : begin + 6]:
            shutil.copy(FOLDER / "cheats" / f"{name}.py", folder)
        judged = judge(home, folder, "--claim", "synthesized", code=1)
        assert judged["schema"] == "tessera.judged_folder/1"
        found |= {Path(j["file"]).stem: j for j in judged["judged"]}
    return found


def test_there_are_at_least_twenty_cheats_and_each_says_what_it_is():
    assert len(ALL) >= 20 and set(ONE_OF_EACH) <= set(ALL)
    assert all(SAID.search((FOLDER / "cheats" / f"{name}.py").read_text()) for name in ALL)


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_fails_and_what_it_is_is_said(cheats, name):
    said = SAID.search((FOLDER / "cheats" / f"{name}.py").read_text())
    judged = cheats[name]
    assert not judged["passed"], judged
    assert judged["failure"] in said[1].split(), judged["cause"]
    wrong = json.dumps([judged["cause"], judged["verdict"]["wrong"]])
    assert said[2] in wrong, judged["cause"]


@pytest.mark.skipif("caches_by_content" not in CHEATS, reason="under TESSERA_TEST_ALL=1")
def test_what_is_looked_up_by_content_gains_nothing(cheats):
    assert cheats["caches_by_content"]["speedups"]["eager"] < 1.5


def test_a_kernel_of_its_own_passes(home):
    judged = judge(home, FOLDER / "honest/own_kernel.py", "--claim", "synthesized", code=0)
    assert judged["schema"] == "tessera.judged/1" and judged["passed"] and judged["failure"] == "none"
    assert judged["work"] == {"label": "own", "by_library": [], "names": []}
    kinds = [t["inputs"] for t in judged["trials"]]
    assert kinds == ["given", "normal", "twin", "positive", "large", "non_finite", "given", "normal"]
    assert all(t["ok"] and t["errors"]["rms"] <= t["errors"]["budget_rms"] for t in judged["trials"])
    measured, clock = judged["verdict"]["measured"], judged["clock"]
    assert measured["floor_ms"] < measured["ms"] == clock["outside_ms"]
    # No ratio is given of times that others on the machine disturb.
    ratio = measured["peers"][0]["ms"] / measured["ms"]
    assert judged["speedups"].get("eager", ratio) == pytest.approx(ratio)
    disturbed = measured["elsewhere"] > 0 or measured["unreliable"] or measured["peers"][0].get("unreliable")
    assert "eager" in judged["speedups"] or disturbed


def test_a_program_apart_from_its_package_finds_it_by_pythonpath(home, tmp_path):
    for name in ("tessera", "tessera-sandbox"):
        shutil.copy(BINARY.parent / name, tmp_path)
    words = [FOLDER / "honest/pytorch.py", "--reference", FOLDER / "reference.py", "--peers", "eager", "--rounds", "3"]
    done = subprocess.run(
        [tmp_path / "tessera", "judge", *words, "--json"],
        env=environment(home, PYTHONPATH=str(ROOT / "python")), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and json.loads(done.stdout)["passed"], done.stdout


def test_pytorch_in_another_order_passes_as_a_librarys_work(home, tmp_path):
    """In one file with its reference: the form in which KernelBench's problems and solutions may come."""
    both = tmp_path / "both.py"
    both.write_text((FOLDER / "reference.py").read_text() + "\n\n" + (FOLDER / "honest/pytorch.py").read_text())
    done = tessera(home, "judge", both, "--peers", "eager", "--rounds", "3")
    judged = json.loads(done.stdout)
    assert done.returncode == 0, judged
    assert judged["passed"] and judged["work"]["label"] == "library"
    assert {"matmul", "gelu"} <= set(judged["work"]["by_library"])


def test_what_cannot_be_judged_is_refused_with_what_to_do(home, tmp_path):
    source = (FOLDER / "reference.py").read_text()
    (tmp_path / "none.py").write_text("import torch\n")
    judged = judge(home, tmp_path / "none.py", code=1)
    assert judged["failure"] == "bad_source" and "no module class `ModelNew`" in judged["cause"]
    (tmp_path / "raises.py").write_text("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n\n\n1 / 0\n")
    judged = judge(home, tmp_path / "raises.py", code=1)
    assert judged["failure"] == "bad_source" and judged["verdict"]["place"]["line"] == 8
    drops = tmp_path / "drops.py"
    drops.write_text(source.replace("self.linear(x))", "nn.functional.dropout(self.linear(x), 0.5))"))
    done = tessera(home, "judge", drops, "--peers", "eager")
    assert done.returncode != 0 and json.loads(done.stdout or done.stderr)["code"] == "TS0540"
    turns = tmp_path / "turns.py"  # every second module that is made is another
    made = source.replace("outer)\n\n", "outer)\n        MADE.append(self)\n\n")
    made = made.replace("self.linear(x))", "[torch.sin, torch.tanh][len(MADE) % 2](self.linear(x)))")
    assert made.count("MADE") == 2
    turns.write_text(made + "\n\nMADE = []\n")
    done = tessera(home, "judge", turns, "--peers", "eager")
    assert done.returncode != 0 and json.loads(done.stdout or done.stderr)["code"] == "TS0541"
    done = tessera(home, "judge", FOLDER / "honest", "--peers", "eager")
    assert done.returncode == 3 and json.loads(done.stdout or done.stderr)["code"] == "TS0072"


def test_without_a_sandbox_nothing_runs(home, monkeypatch):
    nothing = {"TESSERA_SANDBOX_LAUNCHER": "/bin/false"}
    done = tessera(home, "judge", FOLDER / "honest/pytorch.py", "--reference", FOLDER / "reference.py", env=nothing)
    assert done.returncode == 3 and json.loads(done.stdout or done.stderr)["code"] == "TS0717"
