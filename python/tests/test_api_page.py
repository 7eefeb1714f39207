"""docs/api.md says what the code says: signatures, arguments, codes."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
import tessera
from test_codes import declared

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/api.md").read_text()
SIGNATURES = re.findall(r"<!-- signature: ([\w.]+) -->\n```\n(.*?)```", PAGE, re.DOTALL)


def signature(name: str) -> str:
    """`name(arguments and their defaults) -> result`, without the arguments' types."""
    module, function = name.rsplit(".", 1)
    s = inspect.signature(getattr(importlib.import_module(module), function))
    bare = s.replace(parameters=[p.replace(annotation=p.empty) for p in s.parameters.values()])
    return (
        f"{function}{bare}".replace("'ComposedModule'", "ComposedModule")
        .replace("'Path'", "Path")
        .replace("'list[dict]'", "list[dict]")
        .replace("'KernelFile'", "KernelFile")
    )


def test_signatures_are_found():
    assert {name.rsplit(".", 1)[1] for name, _ in SIGNATURES} == {"optimize", "kernel", "status", "find_binary"}


@pytest.mark.parametrize(("name", "shown"), SIGNATURES)
def test_signature(name, shown):
    assert " ".join(shown.split()) == signature(name)


def test_every_public_name_is_there():
    assert {n for n in tessera.__all__ if n != "__version__" and f"`tessera.{n}`" not in PAGE} == set()


def test_every_argument_of_optimize_is_explained():
    table = PAGE.split("## tessera.optimize")[1].split("##")[0]
    rows = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert rows == set(inspect.signature(tessera.optimize).parameters)


def test_codes_of_all_pages_exist():
    known = set(declared())
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert {c for p in pages for c in re.findall(r"TS\d{4}", p.read_text())} <= known
