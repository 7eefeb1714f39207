"""tools/check_sizes.py: files and functions that are too long are refused, and data does not count."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools/check_sizes.py"
LINES = "  run();\n"
DATA = '{"a", 1},\n'


def faults(tmp_path: Path, name: str, text: str, most: int = 0) -> list[str]:
    """`most`: lines of the product; 0: any."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    command = [sys.executable, TOOL, "--root", tmp_path, "--most", str(most)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == (1 if done.stdout else 0) and not done.stderr, done.stderr
    return done.stdout.splitlines()


FUNCTION = "Result<int> f(int a,\n              int b) {{\n{}}}\n"
METHOD = "class A {{\n public:\n  int f() const {{\n{}  }}\n}};\n"
TOO_LONG = {
    "a function": (
        "src/a/b.cpp",
        "namespace x {\n" + FUNCTION.format(58 * LINES) + "}\n",
        "src/a/b.cpp:2: a function of 61 lines",
    ),
    "a method": ("src/a/b.h", METHOD.format(60 * LINES), "src/a/b.h:3: a function of 62 lines"),
    "the second one": (
        "src/b.cpp",
        FUNCTION.format(LINES) + FUNCTION.format(70 * LINES),
        "src/b.cpp:5: a function of 73",
    ),
    "a file": ("src/b.cpp", 401 * "int x;\n", "src/b.cpp:1: 401 lines"),
    "a Python function": ("python/b.py", "def f():\n" + 60 * "    g()\n", "python/b.py:1: `f` has 61 lines"),
    "a Python file": ("tools/b.py", 401 * "g()\n", "tools/b.py:1: 401 lines"),
    "what follows a text": (
        "src/b.cpp",
        'auto t = R"x(\n' + LINES + ')x";\n' + 400 * "int x;\n",
        "src/b.cpp:1: 401 lines",
    ),
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_what_is_too_long_is_refused(tmp_path, case):
    name, text, fault = TOO_LONG[case]
    (found,) = faults(tmp_path, name, text)
    assert found.startswith(fault), found


FINE = {
    "a function": FUNCTION.format(57 * LINES),
    "text of a kernel": 'constexpr const char* file = R"cuda(\n' + 500 * LINES + ')cuda";\n',
    "a table": "static const std::vector<Op> all = {\n" + 500 * DATA + "};\n",
    "many functions": 12 * FUNCTION.format(28 * LINES),
    "a namespace": "namespace a {\n" + 300 * "int f();\n" + "}\n",
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_data_does_not_count(tmp_path, case):
    assert faults(tmp_path, "src/b.cpp", FINE[case]) == []
    assert faults(tmp_path, "docs/b.cpp", 1000 * LINES) == []


def test_a_folder_of_many_files_is_refused(tmp_path):
    (tmp_path / "src/a").mkdir(parents=True)
    for i in range(59):
        (tmp_path / f"src/a/f{i}.cpp").write_text("int x;\n")
    assert not faults(tmp_path, "src/a/f59.cpp", "int x;\n")
    assert faults(tmp_path, "src/a/one_more.h", "int y;\n") == ["src/a: 61 files, expected at most 60"]


def test_a_large_folder_that_shrank_has_its_figure_lowered(tmp_path):
    (found,) = faults(tmp_path, "src/check/one.cpp", "int x;\n")
    assert found.startswith("src/check: 1 files; lower its figure")


def test_a_product_that_grows_is_refused_and_its_tests_are_not(tmp_path):
    code = "int x;\n\n" * 150
    assert not faults(tmp_path, "src/a/b.cpp", code, most=150)
    assert not faults(tmp_path, "src/a/b_test.cpp", code, most=150)
    (found,) = faults(tmp_path, "src/a/c.cpp", "int y;\n", most=150)
    assert found == "src: 151 lines without tests, expected at most 150"
    (found,) = faults(tmp_path, "src/a/c.cpp", "int y;\n", most=1000)
    assert found.startswith("src: 151 lines without tests; lower the figure")
