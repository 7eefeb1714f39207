#!/usr/bin/env python3
"""Writes units, C++ files that include several others: `units.py FOLDER FILE...`, files below src/ (option TESSERA_UNITY).

Prints the files to compile in their place, separated by semicolons. Files that define a name for themselves which another
file of the unit has as well go to different ones: in one, the compiler would refuse it or, worse, call the other's function.
C++ is read as clang-format leaves it: what stands at the first column is at the top.
"""

import functools
import re
import sys
from pathlib import Path

MOST = 8  # files of a unit: more save little, and an edit compiles all of its unit
SRC = Path(__file__).resolve().parent.parent / "src"
RAW = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)")
ALIAS = re.compile(r"(?:using|namespace) (?:(\w+) = |[\w:]*::(\w+);)")
# A type by its own name alone: types are capitalized.
MENTION = re.compile(r"(?<![\w:.>])[A-Z]\w*[a-z]\w*")
# The word before the first parenthesis, brace, `=`, `;` or array bound that no template's argument list holds.
OTHER = re.compile(r"[^=({;]*?(?:<[^()]*>)?[^=({;]*?\b(\w+)(?:\[.*?\])*\s*(?:\(|=|\{|;)")
TESTS = {"TEST", "TEST_F", "TEST_P", "INSTANTIATE_TEST_SUITE_P"}  # named by their arguments

OWN, FOR_ALL, MENTIONED = "own", "for all", "mentioned"


def names(text: str) -> dict[str, str]:
    """What a file defines for itself, OWN, what for all, and what types it mentions besides; for an alias the line, which
    another file may repeat."""
    text = RAW.sub('""', text)
    result, anonymous = dict.fromkeys(MENTION.findall(text), MENTIONED), False
    result["using namespace"] = "".join(re.findall(r"^using namespace .*", text, re.M))
    for line in text.splitlines():
        if macro := re.match(r"#define (\w+)", line):
            result[macro[1]] = OWN
        if line == "namespace {" or line == "}  // namespace":
            anonymous = line == "namespace {"
            continue
        if not line[:1].isalpha():
            continue
        own = anonymous or re.match(r"static |constexpr |const ", line)
        line = re.sub(r"^template <.*?>\s*", "", line)
        if alias := ALIAS.match(line):
            result[alias[1] or alias[2]] = line
        elif named := TYPE.match(line) or (not line.startswith(("using ", "namespace ")) and OTHER.match(line)):
            member = line[: named.start(1)].endswith("::")
            result |= {} if named[1] in TESTS or member else {named[1]: OWN if own else FOR_ALL}
    return result


def headers_of(text: str) -> list[str]:
    return [name for name in re.findall(r'^#include "(.*\.h)"$', RAW.sub('""', text), re.M) if (SRC / name).exists()]


@functools.cache
def types_of_headers(file: Path, folder: str) -> frozenset[str]:
    """The types of the folder's headers that a file includes, or a header of it."""
    text = file.read_text()
    result = (
        set(re.findall(r"^(?:struct|class|enum class|enum|union|using) (\w+)", text, re.M))
        if file.suffix == ".h"
        else set()
    )
    for header in headers_of(text):
        if header.startswith(folder + "/"):
            result |= types_of_headers(SRC / header, folder)
    return frozenset(result)


def clash(some: dict[str, str], others: dict[str, str]) -> bool:
    """A name that means one thing in one of them and another in the other. A type that a file has for itself is another
    than the one that files mention; of a function that is for all, files may have several forms."""
    return any(
        name in others and (kind == OWN or (others[name] != kind and {kind, others[name]} != {MENTIONED, FOR_ALL}))
        for name, kind in some.items()
    )


def units(files: list[Path], most: int = MOST) -> list[list[Path]]:
    """Each file in the first unit that has room and none of its names."""
    result: list[tuple[list[Path], dict[str, str]]] = []
    for file in files:
        defined = names(file.read_text())
        for name in types_of_headers(file, file.resolve().relative_to(SRC).parts[0]):
            known = defined.setdefault(name, MENTIONED)
            defined[name] = known if known in (MENTIONED, FOR_ALL) else OWN
        for members, taken in result:
            if len(members) < most and not clash(defined, taken):
                break
        else:
            members, taken = [], {}
            result.append((members, taken))
        members.append(file)
        taken.update({name: kind for name, kind in defined.items() if taken.get(name) != FOR_ALL})
    return [members for members, _ in result]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    compiled = []
    for i, members in enumerate(units([Path(name) for name in sys.argv[2:]])):
        if len(members) == 1:
            compiled.append(members[0])
            continue
        # By the path within src/: the same in every checkout, so that they share what ccache has.
        # Headers come first: none is read with the names of a file before it.
        headers = {f'#include "{header}"' for member in members for header in headers_of(member.read_text())}
        text = "\n".join([*sorted(headers), *(f'#include "{member.relative_to(SRC)}"' for member in members), ""])
        unit = folder / f"unit_{i}.cpp"
        if not unit.exists() or unit.read_text() != text:
            unit.write_text(text)
        compiled.append(unit)
    print(";".join(str(path) for path in compiled), end="")


if __name__ == "__main__":
    main()
