"""The repository's own checks, from the outside: a clean tree passes, each kind of violation fails with its place."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"

LAYERS = """
[base]
may = []
purpose = "text"
[diag]
may = []
purpose = "diagnostics"
[store]
may = ["diag"]
purpose = "a database"
"""

PROGRAM = """#!/bin/sh
case "$1" in
  --help) printf 'a program\\n\\nUsage: tessera\\n\\nSubcommands:\\n  trace   look\\n  tune    try\\n' ;;
  trace) printf 'look\\n\\nOptions:\\n  --json  print JSON\\n' ;;
  tune) printf 'try\\n\\nOptions:\\n  --json  print JSON\\n  --effort  how much\\n' ;;
  explain)
    [ "$2" = --json ] && cat <<'JSON'
{"families": [{"prefix": "TS00", "title": "input"}], "codes": [{"code": "TS0001", "name": "input.no_such_file",
 "means": "No file.", "arises": "A slip.", "remedy": "Look.", "example": "tessera trace mlp.py"}]}
JSON
    exit 0 ;;
  *) exit 3 ;;
esac
"""


def check(tool: str, root: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(TOOLS / tool), "--root", str(root), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def layered(tmp_path):
    write(tmp_path, "layers.toml", LAYERS)
    write(tmp_path, "src/base/text.h", "#include <string>\n")
    write(tmp_path, "src/diag/result.h", '#include "base/text.h"\n')
    write(
        tmp_path,
        "src/store/deep/db.cpp",
        '#include "diag/result.h"\n#include "store/db.h"\n#include "sqlite/x.h"\n',
    )
    write(
        tmp_path,
        "ARCHITECTURE.md",
        "before\n<!-- layers:begin -->\n<!-- layers:end -->\nafter\n",
    )
    assert check("check_layers.py", tmp_path, "--update") == (0, "")
    return tmp_path


def test_layers_clean(layered):
    assert check("check_layers.py", layered) == (0, "")
    page = (layered / "ARCHITECTURE.md").read_text()
    assert "| `store` | a database | `diag` |" in page
    assert page.startswith("before\n") and page.endswith("after\n")


def test_layers_include_against_the_table(layered):
    write(layered, "src/diag/bad.cpp", '// fine\n  #  include "store/db.h"\n')
    code, out = check("check_layers.py", layered)
    assert code == 1
    assert "src/diag/bad.cpp:2: `diag` may not include `store`" in out


def test_layers_tests_may_include_all_and_are_not_included(layered):
    write(layered, "tests/proofs/proof.h", '#include "base/text.h"\n#include "store/db.h"\n')
    assert check("check_layers.py", layered) == (0, "")
    write(layered, "src/diag/bad.cpp", '#include "proofs/no_such_file.h"\n#include "proofs/proof.h"\n')
    code, out = check("check_layers.py", layered)
    assert code == 1 and out.count("\n") == 1
    assert "src/diag/bad.cpp:2: `diag` may not include `tests/proofs`" in out


def test_layers_tests_with_the_name_of_a_layer(layered):
    write(layered, "tests/store/some.h", "\n")
    code, out = check("check_layers.py", layered)
    assert code == 1 and "tests/store: has the name of a folder of src/" in out


def test_layers_folder_without_a_row(layered):
    write(layered, "src/extra/a.cpp", "\n")
    code, out = check("check_layers.py", layered)
    assert code == 1 and "src/extra: has no row" in out


def test_layers_row_that_points_down(layered):
    write(
        layered,
        "layers.toml",
        LAYERS.replace("[diag]\nmay = []", '[diag]\nmay = ["store"]'),
    )
    code, out = check("check_layers.py", layered, "--update")
    assert code == 1 and "`store`, which is not above it" in out


def test_layers_page_out_of_date(layered):
    write(layered, "layers.toml", LAYERS.replace("a database", "two databases"))
    code, out = check("check_layers.py", layered)
    assert code == 1 and "--update" in out
    assert check("check_layers.py", layered, "--update") == (0, "")
    assert check("check_layers.py", layered) == (0, "")


def test_layers_page_without_markers(layered):
    write(layered, "ARCHITECTURE.md", "nothing\n")
    code, out = check("check_layers.py", layered, "--update")
    assert code == 1 and "markers" in out


ROOMS = """
[python.common]
may = []
purpose = "shared"
[python.running]
may = ["common"]
purpose = "at run time"
[python.tessera]
may = ["common", "running"]
purpose = "doors"
"""


@pytest.fixture
def roomy(layered):
    """Rooms that use each permission once: at module level, in a function, by relative names."""
    write(layered, "layers.toml", LAYERS + ROOMS)
    page = (layered / "ARCHITECTURE.md").read_text()
    write(layered, "ARCHITECTURE.md", page + "<!-- rooms:begin -->\n<!-- rooms:end -->\nend\n")
    for room in ("", "common/", "running/"):
        write(layered, f"python/tessera/{room}__init__.py", '"""A room."""\n')
    write(layered, "python/tessera/common/errors.py", "import json\n")
    write(layered, "python/tessera/common/places.py", "from tessera.common import errors\n")
    write(layered, "python/tessera/running/plan.py", "def f():\n    from ..common.errors import fail\n")
    write(layered, "python/tessera/api.py", "import tessera.common.errors\nfrom tessera.running import plan as p\n")
    assert check("check_layers.py", layered, "--update") == (0, "")
    return layered


def test_rooms_clean(roomy):
    assert check("check_layers.py", roomy) == (0, "")
    page = (roomy / "ARCHITECTURE.md").read_text()
    assert "| `running` | at run time | `common` |" in page and "| `store` | a database | `diag` |" in page
    assert page.startswith("before\n") and page.endswith("end\n")


@pytest.mark.parametrize(
    "line",
    [
        "from tessera.running.plan import f",
        "from tessera.running import plan",
        "import tessera.running.plan",
        "from ..running import plan",
        "def g():\n    from tessera.running import plan",
    ],
)
def test_rooms_import_against_the_table(roomy, line):
    write(roomy, "python/tessera/common/bad.py", f'"""Fine."""\n{line}\n')
    code, out = check("check_layers.py", roomy)
    place = f"python/tessera/common/bad.py:{2 + line.count(chr(10))}"
    assert code == 1
    assert out == f"{place}: `common` may not import `running` (layers.toml: it may import nothing)\n"


def test_rooms_import_of_a_door(roomy):
    write(roomy, "python/tessera/running/bad.py", "import tessera\n")
    code, out = check("check_layers.py", roomy)
    assert code == 1 and "running/bad.py:1: `running` may not import `tessera`" in out


def test_rooms_circle_of_files(roomy):
    write(roomy, "python/tessera/common/errors.py", "def late():\n    from .more import x\n")
    write(roomy, "python/tessera/common/more.py", "from tessera.common.places import y\n")
    code, out = check("check_layers.py", roomy)
    places = [f"python/tessera/common/{name}.py" for name in ("errors", "more", "places", "errors")]
    assert code == 1 and out == f"{places[0]}: imports in a circle: {' -> '.join(places)}\n"


def test_rooms_permission_that_nobody_uses(roomy):
    write(roomy, "python/tessera/running/plan.py", "import json\n")
    code, out = check("check_layers.py", roomy)
    assert (
        code == 1 and out == "layers.toml: [python.running] lists `common`, which none of its files uses: strike it\n"
    )


def test_rooms_without_a_row(roomy):
    write(roomy, "python/tessera/extra/__init__.py", "")
    code, out = check("check_layers.py", roomy)
    assert code == 1 and out == "python/tessera/extra: has no row in layers.toml\n"


def test_rooms_row_that_points_down(roomy):
    write(roomy, "layers.toml", LAYERS + ROOMS.replace("may = []", 'may = ["running"]'))
    code, out = check("check_layers.py", roomy, "--update")
    assert code == 1 and "layers.toml: [python.common] lists `running`, which is not above it" in out


@pytest.fixture
def documented(tmp_path):
    write(tmp_path, "build/bin/tessera", PROGRAM)
    (tmp_path / "build/bin/tessera").chmod(0o755)
    write(tmp_path, "dev", "")
    readme = "```sh\n./dev test\n```\nUse `tessera tune --effort max` or `tessera trace`; see [more](docs/more.md).\n"
    write(tmp_path, "README.md", readme)
    write(tmp_path, "docs/more.md", "the tessera project; [back](../README.md)\n")
    assert check("check_docs.py", tmp_path, "--update") == (0, "")
    return tmp_path


def test_docs_clean(documented):
    assert check("check_docs.py", documented) == (0, "")
    assert "## tessera tune\n\n```\ntry\n" in (documented / "docs/commands.md").read_text()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("\nuse `tessera tun`\n", "docs/more.md:2: there is no command `tessera tun`"),
        (
            "```\ntessera trace --effort max\n```\n",
            "docs/more.md:2: `tessera trace` has no option `--effort`",
        ),
        ("[x](gone.md)\n", "docs/more.md:1: the link `gone.md` leads nowhere"),
    ],
)
def test_docs_faults(documented, text, fault):
    write(documented, "docs/more.md", text)
    assert check("check_docs.py", documented) == (1, fault + "\n")


def test_docs_missing_script(documented):
    (documented / "dev").unlink()
    code, out = check("check_docs.py", documented)
    assert code == 1 and "there is no `./dev`" in out


def test_docs_help_has_changed(documented):
    write(documented, "build/bin/tessera", PROGRAM.replace("how much", "how hard"))
    code, out = check("check_docs.py", documented)
    assert code == 1 and "docs/commands.md" in out and "--update" in out


def test_docs_explanation_has_changed(documented):
    page = (documented / "docs/errors.md").read_text()
    assert "### TS0001 input.no_such_file\n\nNo file.\n" in page
    write(documented, "build/bin/tessera", PROGRAM.replace("A slip.", "A typo."))
    code, out = check("check_docs.py", documented)
    assert code == 1 and "docs/errors.md" in out and "--update" in out


def test_docs_without_a_binary(documented):
    (documented / "build/bin/tessera").unlink()
    code, out = check("check_docs.py", documented)
    assert code == 1 and "not built" in out
