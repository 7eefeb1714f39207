"""A diagnostic's code means one thing: every code is declared under one name, and every name has one code."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = re.compile(r'\{\s*"(TS\d{4})",\s*"([\w.]+)"\s*\}')  # Code{"TS0003", "input.no_such_class"}
PYTHON = re.compile(r'"(TS\d{4})",\s*"([\w.]+)"')  # fail("TS0003", "input.no_such_class", ...)


def declared() -> dict[str, dict[str, set[str]]]:
    """code -> name -> files"""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    sources = [f for suffix in ("*.cpp", "*.h") for f in (ROOT / "src").rglob(suffix) if "_test" not in f.name]
    for files, pattern in ((sources, CPP), ((ROOT / "python/tessera").rglob("*.py"), PYTHON)):
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


def test_codes_of_the_core_are_all_found():
    """No declaration hides from the pattern: every quoted code in a source is declared somewhere."""
    known = set(declared())
    for f in [*(ROOT / "src").rglob("*.cpp"), *(ROOT / "src").rglob("*.h")]:
        if "_test" not in f.name:
            assert set(re.findall(r'"(TS\d{4})"', f.read_text())) <= known, f
