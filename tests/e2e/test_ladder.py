"""The rungs of docs/ladder.md: each is checked and interpreted, and what the page says of a forgotten line is what `check` says.

`python tests/e2e/test_ladder.py` writes what `check` says into the page. kernels/ladder/rungs.json lists the rungs: file and constants,
whether all is proved, what is forgotten, and the constants and sizes of a small launch.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from core import BINARY, ROOT, environment

PAGE = ROOT / "docs/ladder.md"
RUNGS = json.loads((ROOT / "kernels/ladder/rungs.json").read_text())
FORGOTTEN = [r for r in RUNGS if "forgotten" in r]
MARK = "<!-- forgotten: {family} {name} -->\n"
# What the checker does not follow: docs/ladder.md says so.
UNKNOWN = {"k_agreement", "output_once", "placement", "reduction"}
UNKNOWN |= {"degenerate", "dominance", "mask", "rescale"}
THOROUGH = bool(os.environ.get("TESSERA_TEST_ALL"))
SLOWEST = "gemm-by turns"  # as slow as the other rungs together


def program(
    home: Path, command: str, file: Path, constants: dict, *words: str, text: bool = False
) -> subprocess.CompletedProcess:
    sets = [w for name, value in constants.items() for w in ("--set", f"{name}={value}")]
    asked = [BINARY, command, file, *sets, *words, *([] if text else ["--json"])]
    return subprocess.run(
        asked, env=environment(home), cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )


def ids(rung: dict) -> str:
    return f"{rung['family']}-{rung['name']}"


def forgotten(home: Path, rung: dict) -> str:
    """The first finding of the kernel without a line, as the page has it: its places are those of the rung's file."""
    edit = rung["forgotten"]
    whole = (ROOT / rung["file"]).read_text()
    assert whole.count(edit["from"]) >= 1, f"{rung['file']} has no longer: {edit['from']}"
    file = home / Path(rung["file"]).name
    file.write_text(whole.replace(edit["from"], edit["to"], 1))
    done = program(home, "check", file, rung["constants"] | rung.get("forgotten_constants", {}), text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    said = (done.stdout + done.stderr).replace(str(file), file.name)
    first = said[said.index("error") :]
    end = re.search(r"\n(?=error|warning)|\Z", first[5:])
    return first[: 5 + end.start()].rstrip() + "\n"


def block_of(page: str, rung: dict) -> str | None:
    found = re.search(re.escape(MARK.format(**rung)) + r"```text\n(.*?)```\n", page, re.DOTALL)
    return found and found[1]


@pytest.mark.parametrize("rung", RUNGS, ids=ids)
def test_the_rung_is_proved(rung: dict, tmp_path: Path):
    # Attention's tiles as they run take seconds each.
    small = rung["small"]["constants"] if rung["family"] == "attention" and not THOROUGH else {}
    done = program(tmp_path, "check", ROOT / rung["file"], rung["constants"] | small)
    report = json.loads(done.stdout)
    left = {f["kind"] for f in report["findings"] if f["verdict"] != "proved"}
    assert left == (set() if rung["proved"] else UNKNOWN), done.stdout


@pytest.mark.parametrize("rung", RUNGS, ids=ids)
def test_the_rung_runs_and_is_what_it_means(rung: dict, tmp_path: Path):
    """At small tiles: the interpreter's schedules on numbers, and a run beside the meaning on residues."""
    small, constants = rung["small"], rung["constants"] | rung["small"].get("constants", {})
    sizes = [w for name, n in small["sizes"].items() for w in ("--size", f"{name}={n}")]
    done = program(tmp_path, "interpret", ROOT / rung["file"], constants, *sizes, "--schedules", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    equal = json.loads(program(tmp_path, "check", ROOT / rung["file"], constants, "--equivalence").stdout)[
        "equivalence"
    ]
    assert equal["verdict"] == "equal", equal


@pytest.mark.parametrize("rung", FORGOTTEN if THOROUGH else [r for r in FORGOTTEN if ids(r) != SLOWEST], ids=ids)
def test_the_page_shows_what_is_said_of_a_forgotten_line(rung: dict, tmp_path: Path):
    assert block_of(PAGE.read_text(), rung) == forgotten(tmp_path, rung), (
        "python tests/e2e/test_ladder.py writes the page anew"
    )


def test_the_page_has_every_rung():
    page = PAGE.read_text()
    for rung in RUNGS:
        assert Path(rung["file"]).name in page
    assert len(re.findall(r"^### \d", page, re.MULTILINE)) == len(RUNGS)
    assert len(re.findall(r"<!-- forgotten: ", page)) == len(FORGOTTEN)
    for family in ("gemm", "attention"):
        times = re.search(f"<!-- times of {family} -->\n(.*?)<!-- end of times of {family} -->", page, re.DOTALL)
        assert times and ("Not measured yet" in times[1] or "| rung |" in times[1])


def write_page() -> None:
    page = PAGE.read_text()
    for rung in FORGOTTEN:
        mark = MARK.format(**rung)
        with tempfile.TemporaryDirectory() as home:
            block = f"{mark}```text\n{forgotten(Path(home), rung)}```\n"
        page = re.sub(re.escape(mark) + r"(```text\n.*?```\n)?", lambda _, b=block: b, page, flags=re.DOTALL)
    PAGE.write_text(page)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(write_page())
