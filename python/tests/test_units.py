"""Units of several files (tools/units.py): an edited or a new file is compiled by itself from the next build on, and the units
of the others stay as they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("units", Path(__file__).resolve().parents[2] / "tools" / "units.py")
units = importlib.util.module_from_spec(spec)
spec.loader.exec_module(units)

BODY = """#include "part/{header}.h"
namespace tessera {{
namespace {{
int helper() {{ return {number}; }}
}}  // namespace
int {name}() {{ return helper(); }}
}}  // namespace tessera
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    source = tmp_path / "src"
    (source / "part").mkdir(parents=True)
    monkeypatch.setattr(units, "ROOT", tmp_path)
    monkeypatch.setattr(units, "INCLUDED_FROM", (source, tmp_path / "tests"))
    units.words_of_headers.cache_clear()
    units.types_of_headers.cache_clear()
    (source / "part" / "part.h").write_text("namespace tessera {\n}  // namespace tessera\n")
    for i in range(20):
        (source / "part" / f"f{i:02}.cpp").write_text(BODY.format(header="part", number=i, name=f"f{i}"))
    return source


def built(tree: Path, capsys, files: str = "part/*.cpp") -> dict[str, str]:
    """The files that are compiled and their texts."""
    folder = tree.parent / "units"
    units.words_of_headers.cache_clear()
    units.types_of_headers.cache_clear()
    argv = ["units.py", str(folder), *sorted(map(str, tree.glob(files)))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units.sys, "argv", argv)
        units.main()
    return {name: Path(name).read_text() for name in capsys.readouterr().out.split(";")}


def of_parts(tree: Path, compiled: dict[str, str]) -> list[str]:
    """Every file of the folder as often as something compiled holds it."""
    names = [f.name for f in tree.glob("part/*.cpp")]
    return [
        n for name, text in compiled.items() for n in names if Path(name).name == n or f'#include "part/{n}"' in text
    ]


def test_units_hold_every_file_once(tree, capsys):
    compiled = built(tree, capsys)
    assert [Path(name).name for name in compiled] == ["unit_0.cpp", "unit_1.cpp"]
    assert sorted(of_parts(tree, compiled)) == sorted(f.name for f in tree.glob("part/*.cpp"))


def test_an_edited_file_leaves_its_unit_and_the_others_stay(tree, capsys):
    before = built(tree, capsys)
    edited = tree / "part" / "f03.cpp"
    edited.write_text(edited.read_text().replace("helper", "another"))
    after = built(tree, capsys)
    assert sorted(of_parts(tree, after)) == sorted(of_parts(tree, before))
    (first, second) = before
    assert after.keys() == {first, second, str(edited)}
    assert "f03.cpp" not in after[first] and after[second] == before[second]
    # The next edits of it touch no unit.
    edited.write_text(edited.read_text().replace("another", "other"))
    again = built(tree, capsys)
    assert {name: text for name, text in again.items() if name != str(edited)} == {
        name: text for name, text in after.items() if name != str(edited)
    }


def test_new_and_deleted_files_move_no_others(tree, capsys):
    before = built(tree, capsys)
    new = tree / "part" / "a_new_one.cpp"
    new.write_text(BODY.format(header="part", number=99, name="new_one"))
    (tree / "part" / "f19.cpp").unlink()
    after = built(tree, capsys)
    (first, second) = before
    assert after.keys() == {first, second, str(new)}
    assert after[first] == before[first] and "f19.cpp" not in after[second]


def test_a_header_that_takes_a_files_own_name_moves_that_file(tree, capsys):
    built(tree, capsys)
    (tree / "part" / "mine.h").write_text("int helper();\n")
    header = tree / "part" / "part.h"
    header.write_text(header.read_text() + '#include "part/mine.h"\n')
    compiled = built(tree, capsys)
    # `helper` may be renamed in none of them any more, so that no two can share a unit.
    assert sorted(of_parts(tree, compiled)) == sorted(f.name for f in tree.glob("part/*.cpp"))
    assert not any("#define helper" in text for text in compiled.values())


def test_units_are_made_anew_where_most_files_have_left(tree, capsys):
    built(tree, capsys)
    for file in sorted(tree.glob("part/*.cpp"))[:11]:
        file.write_text(file.read_text() + "// another line\n")
    assert [Path(name).name for name in built(tree, capsys)] == ["unit_0.cpp", "unit_1.cpp"]


def test_units_of_tests_include_by_paths_within_tests(tree, capsys):
    tests = tree.parent / "tests"
    (tests / "proofs").mkdir(parents=True)
    (tests / "proofs" / "shared.h").write_text('#include "part/mine.h"\n')
    (tree / "part" / "mine.h").write_text("int other();\n")
    for name in ("a", "b"):
        (tests / "proofs" / f"{name}.cpp").write_text(
            BODY.replace("part/", "proofs/").format(header="shared", number=1, name=name)
        )
    (text,) = built(tests, capsys, "proofs/*.cpp").values()
    assert text.splitlines()[0] == '#include "proofs/shared.h"'
    assert '#define helper helper_of_a\n#include "proofs/a.cpp"' in text
    assert '#define helper helper_of_b\n#include "proofs/b.cpp"' in text
    # A name that a header of src/ takes is none that a file may have for itself.
    (tree / "part" / "mine.h").write_text("int helper();\n")
    assert sorted(map(str, (tests / "proofs").glob("*.cpp"))) == sorted(built(tests, capsys, "proofs/*.cpp"))
