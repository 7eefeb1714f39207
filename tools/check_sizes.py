#!/usr/bin/env python3
"""Refuses files over 400 lines, functions over 60, folders over 60 files, and a product that grows: check_sizes.py [--root DIR].
Exit 1 with FILE:LINE or FOLDER for each.

What is data does not count: C++ raw strings (text that kernels are made of) and tables (a braced list that a constant is set to).
Tests count as everything else does. C++ is read as clang-format leaves it: a function ends at the brace that stands where its
first line begins.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

MOST_OF_FILE, MOST_OF_FUNCTION, MOST_OF_FOLDER = 400, 60, 60
# Folders that are over it, with their files. The list only shrinks.
LARGE_FOLDERS = {"src/check": 131, "src/pipeline": 75}
# Lines of src/ that are neither empty nor a test's. It is lowered as code goes, and not raised without a line in ARCHITECTURE.md
# that says for what.
MOST_OF_PRODUCT, ROOM = 102400, 400
CXX = {".cpp", ".h", ".hpp", ".cu", ".cuh"}
FOLDERS = ("src", "include", "python", "bench", "tests", "tools", "examples")
# Loops over tiles with all that a warpgroup keeps in registers; they may be taken apart where the machine code stays as it is.
NOT_YET = ("include/tessera_wgmma/attention.h", "include/tessera_wgmma/split_registers.h")
# Kernels of the kernel language are what it calls data: the text of kernels.
KERNELS = "tests/kernels/"
RAW = re.compile(r'R"([A-Za-z_]*)\(')
TABLE = re.compile(r"^\s*(static |inline |constexpr |const )+[^()]*=\s*\{\{?$")
NOT_A_FUNCTION = re.compile(
    r"^\s*(namespace|class|struct|union|enum|extern \"C\"|if|for|while|switch|do|else|try|return)\b"
)


def without_data(lines: list[str]) -> list[bool]:
    """By line: whether it counts."""
    counts, closing, table = [], None, None
    for line in lines:
        if closing is not None:
            counts.append(False)
            if closing in line:
                closing = None
            continue
        if table is not None:
            counts.append(False)
            if line.startswith(table + "}"):
                table = None
            continue
        counts.append(True)
        if (raw := RAW.search(line)) and f'){raw[1]}"' not in line[raw.end() :]:
            closing = f'){raw[1]}"'
        elif TABLE.match(line):
            table = line[: len(line) - len(line.lstrip())]
    return counts


def cxx_functions(lines: list[str]):
    """(first line, last line), from 0, of what has a parameter list and a body, at the indentation of a namespace or class."""
    at = 0
    while at < len(lines):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        begins = (
            line.strip() and indent in (0, 2) and "(" in line and not line.lstrip().startswith(("//", "#", "}", ")"))
        )
        if not begins or NOT_A_FUNCTION.match(line):
            at += 1
            continue
        open_at = at
        while open_at < len(lines) and not lines[open_at].rstrip().endswith(("{", ";", "}")):
            open_at += 1
        if open_at >= len(lines) or not lines[open_at].rstrip().endswith("{"):
            at = open_at + 1
            continue
        end = open_at + 1
        while end < len(lines) and not re.match(rf"^ {{{indent}}}\}}", lines[end]):
            end += 1
        yield at, end
        at = end + 1 if indent == 0 or end > open_at else at + 1


def cxx_faults(name: str, text: str) -> list[str]:
    lines = text.splitlines()
    counts = without_data(lines)
    faults = []
    if sum(counts) > MOST_OF_FILE:
        faults.append(f"{name}:1: {sum(counts)} lines, expected at most {MOST_OF_FILE}")
    for begin, end in cxx_functions(lines):
        size = sum(counts[begin : end + 1])
        if size > MOST_OF_FUNCTION and name not in NOT_YET:
            faults.append(f"{name}:{begin + 1}: a function of {size} lines, expected at most {MOST_OF_FUNCTION}")
    return faults


def python_faults(name: str, text: str) -> list[str]:
    faults = []
    if (size := len(text.splitlines())) > MOST_OF_FILE:
        faults.append(f"{name}:1: {size} lines, expected at most {MOST_OF_FILE}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = node.end_lineno - node.lineno + 1
            if size > MOST_OF_FUNCTION:
                faults.append(
                    f"{name}:{node.lineno}: `{node.name}` has {size} lines, expected at most {MOST_OF_FUNCTION}"
                )
    return faults


def files_of(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(f for f in listed.stdout.splitlines() if f.startswith(FOLDERS) and (root / f).is_file())


def folder_faults(names: list[str]) -> list[str]:
    """Of the product's folders, and of figures above that are no longer true."""
    product = (n for n in names if n.startswith(("src/", "include/", "python/tessera/")) and "/testdata/" not in n)
    files = Counter(str(Path(name).parent) for name in product)
    faults = []
    for folder, count in sorted(files.items()):
        most = LARGE_FOLDERS.get(folder, MOST_OF_FOLDER)
        if count > most:
            faults.append(f"{folder}: {count} files, expected at most {most}")
    for folder, most in LARGE_FOLDERS.items():
        if 0 < files[folder] < most:
            faults.append(f"{folder}: {files[folder]} files; lower its figure in tools/check_sizes.py, {most}")
    return faults


def product_faults(names: list[str], root: Path, most: int) -> list[str]:
    lines = 0
    for name in names:
        if name.startswith("src/") and Path(name).suffix in CXX and not is_test(name):
            lines += sum(bool(line.strip()) for line in (root / name).read_text(errors="replace").splitlines())
    if lines > most:
        return [f"src: {lines} lines without tests, expected at most {most}"]
    if 0 < lines < most - ROOM:
        return [f"src: {lines} lines without tests; lower the figure in tools/check_sizes.py, {most}"]
    return []


def is_test(name: str) -> bool:
    return name.endswith("_test.cpp") or "/testing/" in name or "/testdata/" in name


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--most", type=int, default=MOST_OF_PRODUCT, help="lines of src/ without tests")
    options = parser.parse_args()
    root, names = options.root, files_of(options.root)
    faults = folder_faults(names) + (product_faults(names, root, options.most) if options.most else [])
    for name in names:
        suffix = Path(name).suffix
        if suffix in CXX:
            faults += cxx_faults(name, (root / name).read_text(errors="replace"))
        elif suffix == ".py" and not name.startswith(KERNELS):
            faults += python_faults(name, (root / name).read_text())
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
