"""Error codes and the tests that name them (tools/check_codes.py): a code without a test and without a reason is refused, and so
is a reason that is no longer true."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_codes.py"
spec = importlib.util.spec_from_file_location("check_codes", TOOL)
check_codes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_codes)

# No codes of the catalogue, lest this file name one.
ONE, TWO = "TS" + "9801", "TS" + "9802"


@pytest.fixture
def tree(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write(tmp_path, "src/diag/explain_some.cpp", "".join(f'    {{"{c}", "some.n{c}", R"()"}},\n' for c in (ONE, TWO)))
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def refused(root: Path, exceptions: dict[str, str] | None = None) -> list[str]:
    return [fault[:6] for fault in check_codes.faults(root, exceptions or {})]


@pytest.mark.parametrize(
    "name",
    ["src/a/b_test.cpp", "src/a/testdata/bad/x.txt", "python/tests/test_x.py", "tests/e2e/x.py", "tests/gpu/x.sh"],
)
def test_a_test_that_names_the_code_is_enough(tree, name):
    assert refused(tree) == [ONE, TWO]
    write(tree, name, f'EXPECT_EQ(code, "{ONE}")')
    assert refused(tree) == [TWO]


@pytest.mark.parametrize(
    "name, text",
    [
        ("src/a/b.cpp", f'"{ONE}"'),
        ("bench/suites/x.py", f'"{ONE}"'),
        ("src/diag/explain_test.cpp", f'"{ONE}"'),
        ("python/tests/test_codes.py", f'"{ONE}"'),
        ("src/a/b_test.cpp", f'fail(Code{{"{ONE}", "some.name"}}, "made here"); EXPECT_EQ(code, "{ONE}");'),
        ("src/a/b_test.cpp", f'constexpr Code sample{{"{ONE}", "some.name"}};'),
        ("src/a/b_test.cpp", f'"{ONE}0"'),
    ],
)
def test_what_brings_no_code_about_does_not_count(tree, name, text):
    write(tree, name, text)
    assert refused(tree) == [ONE, TWO]


def test_a_reason_stands_for_a_test_while_there_is_none(tree):
    reasons = {ONE: "needs a GPU", TWO: "needs a full disk"}
    assert refused(tree, reasons) == []
    assert refused(tree, reasons | {TWO: " "}) == [TWO]
    assert refused(tree, reasons | {"TS" + "9803": "of no record"}) == ["TS" + "9803"]
    write(tree, "tests/e2e/x.py", TWO)
    (fault,) = check_codes.faults(tree, reasons)
    assert fault.startswith(f"{TWO}: an exception, but tests/e2e/x.py names it")


def test_a_catalogue_that_is_not_found_is_no_catalogue_without_codes(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert len(check_codes.faults(tmp_path, {})) == 1


def test_the_exceptions_of_this_tree_are_true():
    root = TOOL.parents[1]
    assert len(check_codes.catalogue(root)) > 250
    assert check_codes.faults(root, check_codes.EXCEPTIONS) == []
