"""A diagnostic's code means one thing: every code is declared under one name, every name has one code, and
`tessera explain` knows each of them and no other."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = re.compile(r'\{\s*"(TS\d{4})",\s*"([\w.]+)"\s*\}')  # Code{"TS0003", "input.no_such_class"}
PYTHON = re.compile(r'"(TS\d{4})",\s*"([\w.]+)"')  # fail("TS0003", "input.no_such_class", ...)
EXPLAINED = re.compile(r'^    \{"(TS\d{4})",\s*"([\w.]+)",', re.MULTILINE)  # a record of src/diag/explain_*.cpp


def sources() -> list[Path]:
    """The engine's, without tests and without the explanations."""
    files = [*(ROOT / "src").rglob("*.cpp"), *(ROOT / "src").rglob("*.h")]
    return [f for f in files if "_test" not in f.name and not f.name.startswith("explain_")]


def declared() -> dict[str, dict[str, set[str]]]:
    """code -> name -> files"""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for files, pattern in ((sources(), CPP), ((ROOT / "python/tessera").rglob("*.py"), PYTHON)):
        for f in files:
            for code, name in pattern.findall(f.read_text()):
                found[code][name].add(str(f.relative_to(ROOT)))
    return found


def test_codes_are_unique():
    codes = declared()
    assert len(codes) > 80  # the patterns find them
    assert not {code: dict(names) for code, names in codes.items() if len(names) > 1}
    by_name = defaultdict(set)
    for code, names in codes.items():
        for name in names:
            by_name[name].add(code)
    assert not {name: found for name, found in by_name.items() if len(found) > 1}


def test_codes_of_the_engine_are_all_found():
    """No declaration hides from the pattern: every quoted code in a source is declared somewhere."""
    known = set(declared())
    for f in sources():
        assert set(re.findall(r'"(TS\d{4})"', f.read_text())) <= known, f


def test_every_code_is_explained_under_its_name_and_nothing_else_is():
    explained = {}
    for f in (ROOT / "src/diag").glob("explain_*.cpp"):
        records = EXPLAINED.findall(f.read_text())
        assert f.name == "explain_test.cpp" or len(records) == len(re.findall(r'\{"TS', f.read_text())) > 0, f
        explained |= dict(records)
    wanted = {code: next(iter(names)) for code, names in declared().items()}
    assert {c: n for c, n in wanted.items() if explained.get(c) != n} == {}, "explain them in src/diag/explain_*.cpp"
    assert {c: n for c, n in explained.items() if c not in wanted} == {}, "nothing reports these codes"
