#!/usr/bin/env python3
"""Writes units, C++ files that include several others: `units.py FOLDER FILE...`, files below src/ or tests/ (option
TESSERA_UNITY).

Prints the files to compile in their place, separated by semicolons. A name that a file defines for itself and that another
file has as well gets another one, by a macro around the file. Where a macro would change more than that name, the files go to
different units: in one, the compiler would refuse it or, worse, call the other's function. C++ is read as clang-format leaves
it: what stands at the first column is at the top.

FOLDER remembers the units. A file that was edited or added since they were made is compiled by itself from then on, so that an
edit costs its unit once and the file afterwards. They are made anew where most files have left.
"""

import functools
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

MOST = 16  # files of a unit: more save little, and a file that leaves compiles all of its unit
ROOT = Path(__file__).resolve().parent.parent
# Where the paths in `#include "..."` begin.
INCLUDED_FROM = (ROOT / "src", ROOT / "tests")
RAW = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)")
ALIAS = re.compile(r"(?:using|namespace) (?:(\w+) = |[\w:]*::(\w+);)")
# A type by its own name alone: types are capitalized.
MENTION = re.compile(r"(?<![\w:.>])[A-Z]\w*[a-z]\w*")
# The word before the first parenthesis, brace, `=`, `;` or array bound that no template's argument list holds.
OTHER = re.compile(r"[^=({;]*?(?:<[^()]*>)?[^=({;]*?\b(\w+)(?:\[.*?\])*\s*(?:\(|=|\{|;)")
TESTS = {"TEST", "TEST_F", "TEST_P", "INSTANTIATE_TEST_SUITE_P"}  # named by their arguments

# A test's suite and name, and a matcher, become parts of longer names, which no macro changes.
PASTED = re.compile(r"(?:TEST\w*|MATCHER\w*|INSTANTIATE_\w+)\(\s*(\w+)(?:,\s*(\w+))?")

OWN, FOR_ALL, MENTIONED = "own", "for all", "mentioned"


def names(text: str) -> dict[str, str]:
    """What a file defines for itself, OWN, what for all, and what types it mentions besides; for an alias the line, which
    another file may repeat."""
    text = RAW.sub('""', text)
    # clang-format leaves a short one's end without a comment.
    text = re.sub(r"^namespace \{\n(.*)\n\}$", r"namespace {\n\1\n}  // namespace", text, flags=re.M)
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


def as_included(file: Path) -> str:
    """A file's path as it stands in an `#include`."""
    return str(next(file.relative_to(folder) for folder in INCLUDED_FROM if file.is_relative_to(folder)))


def headers_of(text: str) -> dict[str, Path]:
    """The headers of ours that a text includes: by their paths there, the files."""
    names = re.findall(r'^#include "(.*\.h)"$', RAW.sub('""', text), re.M)
    found = {
        name: next((folder / name for folder in INCLUDED_FROM if (folder / name).exists()), None) for name in names
    }
    return {name: file for name, file in found.items() if file}


@functools.cache
def words_of_headers(file: Path) -> frozenset[str]:
    """What stands, but in comments, in the headers that a file includes, and in theirs."""
    text = re.sub(r"//[^\n]*|/\*[\s\S]*?\*/", "", file.read_text())
    result = set(re.findall(r"\w+", text)) if file.suffix == ".h" else set()
    for header in headers_of(file.read_text()).values():
        result |= words_of_headers(header)
    return frozenset(result)


@functools.cache
def types_of_headers(file: Path, folder: str) -> frozenset[tuple[str, str]]:
    """The types of the folder's headers that a file includes, or a header of it: each with its namespace."""
    text, result, space = file.read_text(), set(), ""
    for line in text.splitlines() if file.suffix == ".h" else ():
        if opened := re.match(r"namespace ([\w:]+) \{", line):
            space = opened[1]
        elif named := re.match(r"(?:struct|class|enum class|enum|union|using) (\w+)", line):
            result.add((named[1], space))
    for name, header in headers_of(text).items():
        if name.startswith(folder + "/"):
            result |= types_of_headers(header, folder)
    return frozenset(result)


def not_its_own(file: Path) -> set[str]:
    """Names that a macro around the file may not change: those that it uses as a member or of a namespace, and those of its
    headers."""
    text = RAW.sub('""', file.read_text())
    result = {word for match in PASTED.finditer(text) for word in match.groups()}
    result |= set(re.findall(r"(?:\.|->|::)\s*~?(\w+)", text)) | set(re.findall(r"^\s*#\s*define (\w+)", text, re.M))
    return result | words_of_headers(file)


def renamed(files: dict[Path, dict[str, str]]) -> dict[Path, dict[str, str]]:
    """Other names for those that a file has for itself and another file has too: by file, what each becomes."""
    shared = Counter(name for defined in files.values() for name in defined)
    result = {}
    for file, defined in files.items():
        kept = not_its_own(file)
        result[file] = {
            name: f"{name}_of_{file.stem}"
            for name, kind in defined.items()
            if kind == OWN and shared[name] > 1 and name not in kept
        }
    return result


def clash(some: dict[str, str], others: dict[str, str]) -> bool:
    """A name that means one thing in one of them and another in the other. A type that a file has for itself is another
    than the one that files mention; of a function that is for all, files may have several forms."""
    return any(
        name in others and (kind == OWN or (others[name] != kind and {kind, others[name]} != {MENTIONED, FOR_ALL}))
        for name, kind in some.items()
    )


def all_names(file: Path) -> dict[str, str]:
    defined = names(file.read_text())
    for name, space in types_of_headers(file, Path(as_included(file.resolve())).parts[0]):
        known = defined.setdefault(name, MENTIONED)
        by_a_shorter_name = known.startswith("using ") and f"{space}::{name};".endswith(known.removeprefix("using "))
        if known not in (MENTIONED, FOR_ALL) and not by_a_shorter_name:
            defined[name] = OWN
    return defined


def units(files: dict[Path, dict[str, str]], most: int = MOST) -> list[list[Path]]:
    """Each file in the first unit that has room and none of its names."""
    result: list[tuple[list[Path], dict[str, str]]] = []
    for file, defined in files.items():
        for members, taken in result:
            if len(members) < most and not clash(defined, taken):
                break
        else:
            members, taken = [], {}
            result.append((members, taken))
        members.append(file)
        taken.update({name: kind for name, kind in defined.items() if taken.get(name) != FOR_ALL})
    return [members for members, _ in result]


def included(member: Path, other_names: dict[str, str]) -> str:
    before = "".join(f"#define {name} {other}\n" for name, other in other_names.items())
    behind = "".join(f"#undef {name}\n" for name in other_names)
    return f'{before}#include "{as_included(member)}"\n{behind}'


def made(files: list[Path]) -> list[dict[Path, dict[str, str]]]:
    """Units of the files: by file, the other names that it gets there."""
    defined = {file: all_names(file) for file in files}
    others = renamed(defined)
    return [
        {file: others[file] for file in members}
        for members in units({file: with_other_names(defined[file], others[file]) for file in files})
    ]


def with_other_names(defined: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    return {others.get(name, name): kind for name, kind in defined.items()}


def left(remembered: list[dict[Path, dict[str, str]]], unchanged: set[Path]) -> list[dict[Path, dict[str, str]]]:
    """What is left of units after edits: without files that were edited, or whose names an edited header made clash."""
    result = []
    for unit in remembered:
        members: dict[Path, dict[str, str]] = {}
        taken: dict[str, str] = {}
        for file, others in unit.items():
            if file not in unchanged or (others and not_its_own(file) & others.keys()):
                continue
            defined = with_other_names(all_names(file), others)
            if not clash(defined, taken):
                members[file] = others
                taken.update({name: kind for name, kind in defined.items() if taken.get(name) != FOR_ALL})
        result.append(members)
    return result


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def of_folder(folder: Path, files: list[Path]) -> list[dict[Path, dict[str, str]]]:
    """The units that the folder remembers, of those of the files that still are what they were; else new ones."""
    memory = folder / "units.json"
    if memory.exists():
        known = json.loads(memory.read_text())
        unchanged = {file for file in files if known["files"].get(str(file.relative_to(ROOT))) == digest(file)}
        if known["script"] == digest(Path(__file__)) and 2 * len(unchanged) >= len(files):
            return left([{ROOT / name: others for name, others in unit.items()} for unit in known["units"]], unchanged)
    result = made(files)
    known = {
        "script": digest(Path(__file__)),
        "files": {str(file.relative_to(ROOT)): digest(file) for file in files},
        "units": [{str(file.relative_to(ROOT)): others for file, others in unit.items()} for unit in result],
    }
    memory.write_text(json.dumps(known))
    return result


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    compiled, files = [], [Path(name) for name in sys.argv[2:]]
    for i, unit in enumerate(of_folder(folder, files)):
        members = list(unit)
        if len(members) <= 1:
            compiled += members
            continue
        # By the path within src/ or tests/: the same in every checkout, so that they share what ccache has.
        # Headers come first: none is read with the names of a file before it, nor changed by a macro.
        texts = [RAW.sub('""', member.read_text()) for member in members]
        headers = {f'#include "{header}"' for text in texts for header in headers_of(text)}
        headers |= {line for text in texts for line in re.findall(r"^#include <.*>$", text, re.M)}
        text = "\n".join([*sorted(headers), *(included(member, others) for member, others in unit.items())])
        source = folder / f"unit_{i}.cpp"
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        compiled += [source]
        files = [file for file in files if file not in unit]
    compiled += [file for file in files if file not in compiled]
    print(";".join(str(path) for path in compiled), end="")


if __name__ == "__main__":
    main()
