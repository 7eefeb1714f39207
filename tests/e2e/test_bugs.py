"""Public bugs of kernels as pairs: tests/kernels/bugs/. The buggy one is flagged where it is wrong, the fixed one is proved.

Each file says in its first lines what is wrong, where it is public, and by which kind of finding, or code, it is flagged. A
comment `# <-` marks a line that the finding has to name. A file of the language is fixed with FIXED=1; a kernel of the core
has a second file, `..._fixed.py`. Of a kernel that states no meaning all is proved that needs none.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from core import ROOT, tessera

FOLDER = ROOT / "tests/kernels/bugs"
BUGGY = sorted(f for f in FOLDER.glob("*.py") if not f.stem.endswith("_fixed"))

OF_MEANINGS = {"k_agreement", "output_once", "placement", "reduction"}
OF_MEANINGS |= {"mask", "dominance", "rescale", "degenerate"}


def flagged(text: str) -> str:
    (kind,) = re.findall(r"^(?:# )?Flagged: (\w+)", text, re.MULTILINE)
    return kind


def places(diagnostic: dict) -> set[int]:
    return {place["line"] for place in json_places(diagnostic)}


def json_places(value: object) -> list[dict]:
    """Every place in a diagnostic: its own and those of its labels."""
    if isinstance(value, list):
        return [place for one in value for place in json_places(one)]
    if not isinstance(value, dict):
        return []
    own = [value] if isinstance(value.get("line"), int) else []
    return own + [place for one in value.values() for place in json_places(one)]


def test_there_are_enough():
    assert len(BUGGY) >= 12
    cited = {line for f in BUGGY for line in f.read_text().splitlines() if "github.com" in line}
    assert len(cited) >= 12, "each says where it is public"


@pytest.mark.parametrize("file", BUGGY, ids=lambda f: f.stem)
def test_the_bug_is_flagged_at_its_place(file: Path, tmp_path: Path):
    text = file.read_text()
    done = tessera(tmp_path, "check", file)
    kind = flagged(text)
    if kind.startswith("TS"):
        told = (done.stderr or done.stdout).splitlines()
        found = [d for d in map(json.loads, told) if d["code"] == kind]
    else:
        report = json.loads(done.stdout)
        assert (done.returncode, report["verdict"]) == (1, "refuted"), done.stdout
        finding = next(f for f in report["findings"] if f["kind"] == kind)
        assert finding["verdict"] == "refuted", done.stdout
        found = finding["diagnostics"]
    assert found, done.stdout + done.stderr
    marked = {n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# <-")}
    assert marked, "a line is marked"
    assert marked & set().union(*(places(d) for d in found)), json.dumps(found, indent=1)


@pytest.mark.parametrize("file", BUGGY, ids=lambda f: f.stem)
def test_the_repair_is_proved(file: Path, tmp_path: Path):
    repaired = file.with_name(file.stem + "_fixed.py")
    words = [repaired] if repaired.exists() else [file, "--set", "FIXED=1"]
    done = tessera(tmp_path, "check", *words)
    report = json.loads(done.stdout or done.stderr)
    assert "findings" in report, done.stdout + done.stderr
    undecided = {f["kind"] for f in report["findings"] if f["verdict"] != "proved"}
    if "means=" in repaired_text(file):
        assert (done.returncode, report["verdict"], undecided) == (0, "proved", set()), done.stdout
    else:
        assert undecided == OF_MEANINGS, done.stdout


def repaired_text(file: Path) -> str:
    repaired = file.with_name(file.stem + "_fixed.py")
    return (repaired if repaired.exists() else file).read_text()
