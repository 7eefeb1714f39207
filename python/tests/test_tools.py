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


def test_docs_without_a_binary(documented):
    (documented / "build/bin/tessera").unlink()
    code, out = check("check_docs.py", documented)
    assert code == 1 and "not built" in out
