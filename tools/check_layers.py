#!/usr/bin/env python3
"""Holds src/ to the layer table (layers.toml): a folder includes only what its row lists, itself, and `base`.

check_layers.py [--root DIR]            exit 1 with FILE:LINE and the rule for every violation
check_layers.py [--root DIR] --update   writes the table into ARCHITECTURE.md between its markers
"""

import argparse
import re
import sys
from pathlib import Path

import tomllib

BEGIN = "<!-- layers:begin -->"
END = "<!-- layers:end -->"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"/]+)/[^"]*"')
SOURCES = {".cpp", ".h", ".cu", ".cuh", ".hpp"}


def read_table(root: Path) -> dict[str, dict]:
    with (root / "layers.toml").open("rb") as f:
        return tomllib.load(f)


def table_faults(table: dict[str, dict]) -> list[str]:
    """The rows themselves: known names, and only rows above (which rules out cycles)."""
    faults, above = [], []
    for name, row in table.items():
        for other in row["may"]:
            if other not in table:
                faults.append(f"layers.toml: [{name}] lists `{other}`, which has no row")
            elif other not in above:
                faults.append(f"layers.toml: [{name}] lists `{other}`, which is not above it")
        above.append(name)
    return faults


def include_faults(root: Path, table: dict[str, dict]) -> list[str]:
    faults = []
    src = root / "src"
    folders = {p.name for p in src.iterdir() if any(f.suffix in SOURCES for f in p.rglob("*"))}
    for name in sorted(folders - table.keys()):
        faults.append(f"src/{name}: has no row in layers.toml")
    for folder in sorted(folders & table.keys()):
        allowed = {folder, "base", *table[folder]["may"]}
        for path in sorted(p for p in (src / folder).rglob("*") if p.suffix in SOURCES):
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                # A first part that is no folder of src/ is a library (fmt/, CLI/) or the folder's own include tree.
                if match and match[1] in folders and match[1] not in allowed:
                    may = ", ".join(table[folder]["may"]) or "nothing"
                    faults.append(
                        f"{path.relative_to(root)}:{number}: `{folder}` may not include `{match[1]}` "
                        f"(layers.toml: it may include {may}, and base)"
                    )
    return faults


def render(table: dict[str, dict]) -> str:
    rows = ["| folder | purpose | may include |", "|---|---|---|"]
    for name, row in table.items():
        may = " ".join(f"`{m}`" for m in row["may"]) or "–"
        rows.append(f"| `{name}` | {row['purpose']} | {may} |")
    return "\n".join(rows)


def page_faults(root: Path, table: dict[str, dict], update: bool) -> list[str]:
    page = root / "ARCHITECTURE.md"
    if not page.exists():
        return ["ARCHITECTURE.md: does not exist"]
    text = page.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        return [f"ARCHITECTURE.md: needs the markers `{BEGIN}` and `{END}`, once each, in this order"]
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    wanted = f"{head}{BEGIN}\n{render(table)}\n{END}{tail}"
    if wanted == text:
        return []
    if update:
        page.write_text(wanted)
        return []
    return ["ARCHITECTURE.md: its layer table is not that of layers.toml; run tools/check_layers.py --update"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--update", action="store_true", help="write the table into ARCHITECTURE.md")
    options = parser.parse_args(arguments)
    table = read_table(options.root)
    faults = table_faults(table) + include_faults(options.root, table)
    faults += page_faults(options.root, table, options.update)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
