#!/usr/bin/env python3
"""Holds src/ and python/tessera/ to the layer table (layers.toml).

A folder of src/ includes only what its row lists, itself, and `base`; nothing of tests/, which may include all of src/. A room of python/tessera/ imports only what its row
under [python] lists, and itself; imports inside functions count. No files of python/tessera/ import each other in a circle.
A permission that no file uses is struck.

check_layers.py [--root DIR]            exit 1 with FILE:LINE and the rule for every violation
check_layers.py [--root DIR] --update   writes the tables into ARCHITECTURE.md between their markers
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomllib

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"/]+)(/[^"]*)"')
SOURCES = {".cpp", ".h", ".cu", ".cuh", ".hpp"}
PACKAGE = "tessera"  # of Python; also the row of the files that lie in no room


@dataclass(frozen=True)
class Use:
    """A line of a file of `name` that takes something of `other`: folders of src/, or rooms of the package."""

    place: str
    name: str
    other: str


def read_tables(root: Path) -> tuple[dict[str, dict], dict[str, dict]]:
    """The rows of src/, and those of the package's rooms."""
    with (root / "layers.toml").open("rb") as f:
        folders = tomllib.load(f)
    rooms = folders.pop("python", {})
    return folders, rooms


def table_faults(rows: dict[str, dict], prefix: str = "") -> list[str]:
    """The rows themselves: known names, and only rows above (which rules out cycles)."""
    faults, above = [], []
    for name, row in rows.items():
        for other in row["may"]:
            if other not in rows:
                faults.append(f"layers.toml: [{prefix}{name}] lists `{other}`, which has no row")
            elif other not in above:
                faults.append(f"layers.toml: [{prefix}{name}] lists `{other}`, which is not above it")
        above.append(name)
    return faults


def unused_faults(rows: dict[str, dict], used: dict[str, set[str]], prefix: str = "") -> list[str]:
    """Permissions that nobody needs. `used`: by name, what its files take."""
    return [
        f"layers.toml: [{prefix}{name}] lists `{other}`, which none of its files uses: strike it"
        for name, row in rows.items()
        for other in row["may"]
        if other not in used.get(name, ())
    ]


def used_of(uses: list[Use]) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {}
    for use in uses:
        used.setdefault(use.name, set()).add(use.other)
    return used


# --- src/ ----------------------------------------------------------------------------------------------------------


def folders_of(root: Path, part: str = "src") -> set[str]:
    folders = (root / part).iterdir() if (root / part).is_dir() else ()
    return {p.name for p in folders if any(f.suffix in SOURCES for f in p.rglob("*"))}


def includes(root: Path) -> list[Use]:
    """A first part that is no folder of src/ is a library (fmt/, CLI/), the folder's own include tree, or, where the file
    lies there, of tests/: its path."""
    uses, folders = [], folders_of(root)
    for folder in sorted(folders):
        for path in sorted(p for p in (root / "src" / folder).rglob("*") if p.suffix in SOURCES):
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if not (match := INCLUDE.match(line)):
                    continue
                place = f"{path.relative_to(root)}:{number}"
                if match[1] in folders and match[1] != folder:
                    uses.append(Use(place, folder, match[1]))
                elif match[1] not in folders and (root / "tests" / (match[1] + match[2])).exists():
                    uses.append(Use(place, folder, f"tests/{match[1]}"))
    return uses


def include_faults(root: Path, rows: dict[str, dict]) -> list[str]:
    faults = [f"src/{name}: has no row in layers.toml" for name in sorted(folders_of(root) - rows.keys())]
    for use in includes(root):
        if use.name in rows and use.other not in ("base", *rows[use.name]["may"]):
            may = ", ".join(rows[use.name]["may"]) or "nothing"
            faults.append(
                f"{use.place}: `{use.name}` may not include `{use.other}` (layers.toml: it may include {may}, and base)"
            )
    # Paths within src/ and those within tests/ stand alike in an `#include`.
    twice = folders_of(root) & folders_of(root, "tests")
    return faults + [f"tests/{name}: has the name of a folder of src/; rename it" for name in sorted(twice)]


# --- python/tessera/ -----------------------------------------------------------------------------------------------


def modules_of(root: Path) -> dict[str, Path]:
    """The package's files by the names that they are imported under."""
    found = {}
    for path in sorted((root / "python" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / "python").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str, path: Path) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or (len(parts) == 2 and path.name == "__init__.py") else PACKAGE


def imports_of(module: str, path: Path, modules: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, module of the package) of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # `from . import x` in a package's __init__.py is relative to the package itself.
            up = node.level - (path.name == "__init__.py")
            base = module.split(".")[: -up or None] if node.level else []
            named = [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
        else:
            continue
        for name in named:
            while name and name not in modules:  # a name that a module defines
                name = name.rpartition(".")[0]
            if name:
                yield node.lineno, name


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Some circles, of which none shares a file with another; none only where there is none."""
    left, found = {name: set(others) for name, others in edges.items()}, []
    while left:
        ends = {name for name, others in left.items() if not others & left.keys()}
        if not ends:
            path, name = [], min(left)
            while name not in path:
                path.append(name)
                name = min(left[name] & left.keys())
            found.append(path[path.index(name) :])
            ends = set(found[-1])
        for name in ends:
            del left[name]
    return found


def import_faults(root: Path, rows: dict[str, dict]) -> list[str]:
    modules = modules_of(root)
    rooms = {module: room_of(module, path) for module, path in modules.items()}
    faults = [f"python/{PACKAGE}/{room}: has no row in layers.toml" for room in sorted({*rooms.values()} - rows.keys())]
    uses, edges = [], {module: set() for module in modules}
    for module, path in modules.items():
        for number, other in imports_of(module, path, modules):
            edges[module].add(other)
            if rooms[other] != rooms[module]:
                uses.append(Use(f"{path.relative_to(root)}:{number}", rooms[module], rooms[other]))
    for use in uses:
        if use.name in rows and use.other not in rows[use.name]["may"]:
            may = ", ".join(rows[use.name]["may"]) or "nothing"
            faults.append(f"{use.place}: `{use.name}` may not import `{use.other}` (layers.toml: it may import {may})")
    for circle in circles(edges):
        names = [str(modules[module].relative_to(root)) for module in circle]
        faults.append(f"{names[0]}: imports in a circle: {' -> '.join([*names, names[0]])}")
    return faults + unused_faults(rows, used_of(uses), "python.")


# --- ARCHITECTURE.md -----------------------------------------------------------------------------------------------


def render(rows: dict[str, dict], what: str, verb: str) -> str:
    lines = [f"| {what} | purpose | may {verb} |", "|---|---|---|"]
    for name, row in rows.items():
        may = " ".join(f"`{m}`" for m in row["may"]) or "–"
        lines.append(f"| `{name}` | {row['purpose']} | {may} |")
    return "\n".join(lines)


def page_faults(root: Path, tables: dict[str, str], update: bool) -> list[str]:
    """`tables`: by the name in their markers."""
    page = root / "ARCHITECTURE.md"
    if not page.exists():
        return ["ARCHITECTURE.md: does not exist"]
    text = wanted = page.read_text()
    for name, table in tables.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            return [f"ARCHITECTURE.md: needs the markers `{begin}` and `{end}`, once each, in this order"]
        head, rest = wanted.split(begin)
        _, tail = rest.split(end)
        wanted = f"{head}{begin}\n{table}\n{end}{tail}"
    if wanted == text:
        return []
    if update:
        page.write_text(wanted)
        return []
    return ["ARCHITECTURE.md: its tables are not those of layers.toml; run tools/check_layers.py --update"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--update", action="store_true", help="write the tables into ARCHITECTURE.md")
    options = parser.parse_args(arguments)
    root = options.root
    folders, rooms = read_tables(root)
    faults = table_faults(folders) + include_faults(root, folders) + unused_faults(folders, used_of(includes(root)))
    tables = {"layers": render(folders, "folder", "include")}
    if rooms or (root / "python" / PACKAGE).is_dir():
        faults += table_faults(rooms, "python.") + import_faults(root, rooms)
        tables["rooms"] = render(rooms, "room", "import")
    faults += page_faults(root, tables, options.update)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
