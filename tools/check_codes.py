#!/usr/bin/env python3
"""Refuses an error code that no test names: check_codes.py [--root DIR]. Exit 1 with a line for each.

The catalogue are the records of src/diag/explain_*.cpp. A test is a file *_test.cpp or a file under testdata/ in src/, and every
file of python/tests/ and tests/. EXCEPTIONS says why a code has none; an exception that a test names is refused as well.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

EXCEPTIONS = {
    "TS0239": "no command proposes with the registry off",
    "TS0325": "needs a GPU, on a machine without the headers of CUTLASS",
    "TS0503": "no test triggers it yet: a module that is right at its size, and wrong when it is optimized again at another",
    "TS0900": "a fault of ours that nothing foresees: no input is known that brings one about",
}

RECORD = re.compile(r'^    \{"(TS\d{4})",\s*"[\w.]+",', re.MULTILINE)
TEST = re.compile(r"^(src/.*(_test\.cpp$|/testdata/)|python/tests/|tests/)")
# They name codes because these are in the catalogue: no program comes to say them there.
SAMPLES = re.compile(r"^(src/diag/.*_test\.cpp|python/tests/test_codes\.py)$")
CODE = re.compile(r"\bTS\d{4}\b")
# Code{"TS0415", "realize.unproved"}: what a test file makes itself, it does not bring about.
MADE = re.compile(r'\bCode(?: \w+)?\{\s*"(TS\d{4})"')


def files_of(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(f for f in listed.stdout.splitlines() if (root / f).is_file())


def catalogue(root: Path) -> set[str]:
    return {code for f in (root / "src/diag").glob("explain_*.cpp") for code in RECORD.findall(f.read_text())}


def named(root: Path) -> dict[str, str]:
    """code -> the first test that names it"""
    found: dict[str, str] = {}
    for name in files_of(root):
        if TEST.match(name) and not SAMPLES.match(name):
            text = (root / name).read_text(errors="replace")
            for code in set(CODE.findall(text)) - set(MADE.findall(text)):
                found.setdefault(code, name)
    return found


def faults(root: Path, exceptions: dict[str, str]) -> list[str]:
    codes, tests = catalogue(root), named(root)
    if not codes:
        return ["src/diag/explain_*.cpp: no record is found, expected the catalogue of codes"]
    out = [
        f"{code}: no test names it; a test that brings it about says its code, or EXCEPTIONS why there is none"
        for code in sorted(codes - set(tests) - set(exceptions))
    ]
    for code, reason in sorted(exceptions.items()):
        if code not in codes:
            out.append(f"{code}: an exception, but the catalogue has no such code")
        elif code in tests:
            out.append(f"{code}: an exception, but {tests[code]} names it; take the exception out")
        elif not reason.strip():
            out.append(f"{code}: an exception without a reason")
    return out


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    found = faults(parser.parse_args().root, EXCEPTIONS)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
