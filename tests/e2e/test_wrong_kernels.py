"""Twenty wrong kernels of twenty classes, each with ten edits of which one is right: whether a verdict is enough to find it.

The model is scripted (chooser.py): it reads verdicts and patches, and nothing else. CI takes two classes through it.
TESSERA_TEST_ALL=1 takes all, and holds the set of edits of each to what it must be.
docs/diagnosis.md has the table, which is held to what the model needs. TESSERA_UPDATE_PAGES=1 writes its rows anew."""

from __future__ import annotations

import json
import os
import re
from fractions import Fraction
from pathlib import Path

import pytest
from chooser import Chooser
from core import ROOT
from wrong_kernels import CLASSES, FOLDER, Wrong, judge, load, sweep

ALL = bool(os.environ.get("TESSERA_TEST_ALL"))
LEAN = ("missing_fence", "swapped_operands")
TURNS = 3
PAGE = ROOT / "docs/diagnosis.md"


def right_of(name: str) -> int:
    """Which edit is right. The model is never told."""
    return json.loads((FOLDER / name / "edits.json").read_text())["right"]


def rows() -> dict[str, list[str]]:
    found = re.findall(r"^\| `(\w+)` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in found}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("wrong")


def solve(wrong: Wrong, home: Path) -> tuple[int, dict]:
    """The turns that the model needs, and the first verdict."""
    chooser = Chooser(wrong.edits)
    first = verdict = judge(wrong, home, wrong.text, f"{wrong.name}_as_it_is")
    assert not verdict["passed"], "the kernel is wrong"
    for turn in range(1, len(wrong.edits) + 1):
        picked = chooser.pick(verdict)
        verdict = judge(wrong, home, wrong.texts[picked], f"{wrong.name}_{picked}")
        if right(verdict):
            return turn, first
    raise AssertionError(f"no edit of {wrong.name} is right")


def right(verdict: dict) -> bool:
    return verdict["passed"]


def row_of(wrong: Wrong, turns: int, verdict: dict) -> list[str]:
    told = verdict.get("advice") or [{"symptom": d["message"]} for d in verdict["diagnostics"][:1]]
    return [
        "`try`, host" if wrong.judged == "host" else "`check`",
        f"`{verdict['failure']}`",
        told[0]["symptom"] if told else "none",
        str(turns) if turns <= TURNS else f"{turns} (not found)",
        f"{TURNS} of {len(wrong.edits)}",
    ]


def test_there_are_twenty_classes_with_ten_edits_of_which_several_touch_the_faulty_line():
    assert len(CLASSES) == 20
    assert set(rows()) == set(CLASSES), "docs/diagnosis.md has a row for each class"
    for name in CLASSES:
        wrong = load(name)
        assert len(wrong.edits) == 10 and len(set(wrong.texts)) == 10, name
        faulty = {c.line for c in wrong.edits[right_of(name)].changes}
        near = [e for e in wrong.edits if any(abs(c.line - line) <= 1 for c in e.changes for line in faulty)]
        assert len(near) >= 3, name


@pytest.mark.parametrize("name", CLASSES)
def test_one_edit_is_right_and_no_other(name, home):
    if not ALL:
        pytest.skip("under TESSERA_TEST_ALL=1: some forty seconds each")
    wrong = load(name)
    answer = right_of(name)
    if wrong.judged == "checker":
        passed = [i for i, text in enumerate(wrong.texts) if right(judge(wrong, home, text, f"{name}_{i}"))]
        assert passed == [answer]
        return
    outcomes = sweep(wrong, home, answer)
    assert outcomes[0] == "measured", outcomes
    assert len(outcomes) == 10 and "measured" not in outcomes[1:], outcomes


@pytest.mark.parametrize("name", CLASSES)
def test_the_verdict_is_enough_to_find_it(name, home):
    if name not in LEAN and not ALL:
        pytest.skip("under TESSERA_TEST_ALL=1")
    wrong = load(name)
    turns, verdict = solve(wrong, home)
    made = row_of(wrong, turns, verdict)
    if os.environ.get("TESSERA_UPDATE_PAGES"):
        text = PAGE.read_text()
        line = f"| `{name}` | " + " | ".join(made) + " |"
        PAGE.write_text(re.sub(rf"^\| `{name}` \|.*$", lambda _: line, text, flags=re.MULTILINE))
    assert rows()[name] == made


def test_eighteen_of_twenty_are_found_in_three_turns_and_six_blind():
    found = [name for name, row in rows().items() if row[3].isdigit() and int(row[3]) <= TURNS]
    assert len(found) >= 18
    # Of all orders of ten edits, the right one is among the first three in 3 * 9! of 10!.
    assert sum(Fraction(TURNS, len(load(name).edits)) for name in CLASSES) == 6
    assert f"{len(found)} of 20" in PAGE.read_text()


def test_a_model_that_is_told_nothing_finds_about_as_many_as_chance():
    """The same scorer, with a verdict that says only that something is wrong: the patches alone do not give it away."""
    blank = {"failure": "wrong_result", "passed": False}
    found = 0
    for name in CLASSES:
        chooser = Chooser(load(name).edits)
        found += right_of(name) in [chooser.pick(blank) for _ in range(TURNS)]
    assert found <= 10, found
