"""What the documents show is what the program does: words of the glossary, and every block of code, run in the order of its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
import tomllib
from core import BINARY, ROOT, environment
from pages import blocks_of

PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("*.md")))]
RUN = ("README.md", "docs/tutorial.md", "docs/api.md", "docs/try.md")

# What a reader has already, for pages that do not begin with it. A search of seconds shows as much as one of minutes.
GIVEN = """
import functools, sys
sys.path.insert(0, "examples")
import torch
import tessera
import tessera.backend
from feed_forward import Model, get_inputs
tessera.optimize = functools.partial(tessera.optimize, effort="quick", seconds=2, progress=False)
tessera.backend.SECONDS = 5.0
model, llm, (x,) = Model().eval(), Model().eval(), get_inputs()
"""

WANTED = """raster anchor floor covered prepack way settle headroom leftover canonical signature REUSE ADAPT NEW synthesized library
thoroughness rule pattern realizer candidate evidence plan guard fallback peer ablation refinement trial finals winner
effort epilogue baseline unreliable lost resizes runner registry swizzle knobs"""


def terms() -> set[str]:
    """The words that docs/glossary.md has a row for."""
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    return {w for row in rows for w in re.findall(r"[\w-]+", row)} - {"word"}


@pytest.mark.parametrize("word", WANTED.split())
def test_the_glossary_has(word):
    assert word in terms()


def test_the_glossary_names_every_rule_and_precision():
    text = (ROOT / "docs/glossary.md").read_text()
    rules = {f.stem for f in (ROOT / "src/rules").glob("*.cpp") if not f.stem.endswith("_test")}
    assert {r for r in rules if f"`{r}`" not in text} == set()
    precisions = re.search(r"precision_names\b[^{]*\{+([^}]*)\}", (ROOT / "src/numeric/dtype.cpp").read_text())[1]
    names = re.findall(r'"(\w+)"', precisions)
    assert "bf16" in names and {p for p in names if f"`{p}`" not in text} == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_with_code_is_run(page):
    """By a test here, or block by block by a script that exists."""
    blocks = blocks_of(ROOT, page)
    for b in blocks:
        assert not b.run_by or os.access(ROOT / b.run_by, os.X_OK), f"{page}:{b.line}: no script `{b.run_by}`"
        assert b.run_by or page in RUN, f"{page}:{b.line}: nothing runs this block"


class Reader:
    """Does what a page says, in a folder with the examples, the program as `tessera` and this Python as `python`."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin/tessera").symlink_to(BINARY.resolve())
        (folder / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (folder / "bin/python").chmod(0o755)
        (folder / "examples").symlink_to(ROOT / "examples")
        # torch finds the backend by the entry points of an installed package.
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        (folder / "site/tessera-0.dist-info").mkdir(parents=True)
        (folder / "site/tessera-0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: tessera\nVersion: 0\n")
        (folder / "site/tessera-0.dist-info/entry_points.txt").write_text(
            "".join(
                f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
                for group, entries in project["entry-points"].items()
            )
        )
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        python = f"{ROOT / 'python'}:{folder / 'site'}"
        self.env = environment(folder / "home", PATH=path, PYTHONPATH=python, TESSERA_BINARY=str(BINARY.resolve()))

    def run(self, *command: str) -> str:
        done = subprocess.run(command, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def follow(self, page: str, given: str = "", after: str = "") -> str:
        """Blocks in their order; successive ones of Python are one program. What all of them printed."""
        said = ""
        mine = [b for b in blocks_of(ROOT, page) if not b.run_by]
        for language, blocks in groupby(mine, lambda b: b.language):
            text = "\n".join(b.text for b in blocks)
            if language == "sh":
                said += self.run("bash", "-euc", text)
            else:
                said += self.run("python", "-W", "ignore", "-c", given + text + after)
        return said


@pytest.fixture
def reader(tmp_path) -> Reader:
    return Reader(tmp_path)


def documented(section: str, page: str = "docs/api.md") -> set[str]:
    """The names in the first column of the table below a heading."""
    text = (ROOT / page).read_text().split(f"# {section}\n")[1].split("\n#")[0]
    return {n for row in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for n in re.findall(r"`(\w+)`", row)}


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="a minute and a half: under TESSERA_TEST_ALL=1")
def test_the_tutorial(reader):
    page = (ROOT / "docs/tutorial.md").read_text()
    said = reader.follow("docs/tutorial.md")
    dumped = {f.name for f in (reader.folder / "dump").iterdir()}
    assert dumped == set(re.findall(r"`(\d-[\w.]+)`", page)), "the table of dumped files"
    # What the page shows of the output: the graph, the heads of tables, the plan's steps.
    for line in re.findall(r"^(?:%|id   rule|module   ms|hash  ).*$", page, re.MULTILINE):
        assert " ".join(line.split()) in re.sub(r" +", " ", said), line
    steps = json.loads((reader.folder / "dump/4-plan.json").read_text())["steps"]
    assert any(s["kind"] == "kernel" for s in steps)
    report, fields = json.loads((reader.folder / "dump/5-report.json").read_text()), "docs/report.md"
    assert documented("The report itself", fields) - {"checkpoints", "mind"} == set(report)
    assert documented("A pattern", fields) == {key for p in report["patterns"] for key in p}
    assert "['p" in said and "'kind': 'shape', 'count': 1" in said and "TS0202 graph.untraceable" in said


def test_the_tutorials_snippet_reads_every_kind_of_step(reader):
    """Which kinds a plan has depends on what was fastest on the machine that follows the page."""
    ours = {"pattern": {"id": "p10"}, "inputs": ["x"], "candidate": {"label": "tile_row"}}
    steps = [
        {"kind": "kernel"} | ours,
        {"kind": "call"} | ours,
        {"kind": "aten", "node": "silu"},
        {"kind": "prepack", "nodes": ["cat"]},
    ]
    (reader.folder / "dump").mkdir()
    (reader.folder / "dump/4-plan.json").write_text(json.dumps({"steps": steps}))
    (snippet,) = (b.text for b in blocks_of(ROOT, "docs/tutorial.md") if "4-plan.json" in b.text)
    said = reader.run("bash", "-euc", snippet).splitlines()
    assert said == ["kernel p10 ['x'] -> tile_row", "call p10 ['x'] -> tile_row", "aten silu", "prepack ['cat']"]


def test_the_page_of_try(reader):
    said = reader.follow("docs/try.md")
    assert "wrote norm.cpp" in said and "right on all inputs" in said and "of eager" in said


def test_the_api_page(reader):
    after = """
import json
print("STATUS", json.dumps(fast.status()))
print("GRAPHS", json.dumps([sorted(g) for g in tessera.status(compiled)]))
"""
    said = reader.follow("docs/api.md", GIVEN, after)
    assert "more: tessera explain TS0041" in said
    status = json.loads(re.search("^STATUS (.*)$", said, re.MULTILINE)[1])
    assert documented("status()") == set(status)
    page = (ROOT / "docs/api.md").read_text()
    of_pattern = re.search(r"^\| `patterns` \| of each: (.*) \|$", page, re.MULTILINE)[1]
    assert all(set(p) == set(re.findall(r"`(\w+)`", of_pattern)) for p in status["patterns"])
    assert json.loads(re.search("^GRAPHS (.*)$", said, re.MULTILINE)[1]) == [["reason", "report", "runner", "status"]]
    known = reader.run("tessera", "optimize", "--help")
    options = re.search(r"with `_` for `-`: (.*); and", page)[1]
    assert {o for o in re.findall(r"`(\w+)`", options) if f"--{o.replace('_', '-')}" not in known} == set()


def test_the_readme(reader):
    after = """
with torch.no_grad():
    torch.testing.assert_close(fast(x), Model.forward(fast.original, x))
    model(x), llm(x)
"""
    assert "tessera.status/1" in reader.follow("README.md", GIVEN, after)
