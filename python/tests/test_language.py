"""Kernel files are Python to editors: they import, and say what they are when they are run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import tessera.language as language

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("file", sorted((ROOT / "kernels").glob("*.py")), ids=lambda f: f.stem)
def test_kernel_files_import_and_refuse_to_run(file):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = re.findall(r"^@kernel.*\ndef (\w+)", file.read_text(), re.MULTILINE)
    assert kernels
    for name in kernels:
        with pytest.raises(language.NotPython, match=f"`{name}` is a word of tessera's kernel language"):
            getattr(module, name)()


def test_every_word_of_the_language_has_a_name():
    """The records of the compiler; those that Python itself has are Python's."""
    words = set()
    for file in (ROOT / "src/language/builtins").glob("*.cpp"):
        records = file.read_text().split("constexpr Builtin records[]")[1]
        words |= {word.split(".")[0] for word in re.findall(r'^    \{"(\w[\w.]*)"', records, re.MULTILINE)}
    assert len(words) > 30
    assert words - set(language.__all__) == {"range", "min", "max", "sum"}


def test_every_family_of_instructions_has_a_name():
    page = (ROOT / "docs/instructions.md").read_text()
    forms = re.findall(r"^\| `(\w[\w.:]*)` \|", page, re.MULTILINE)
    assert len(forms) > 100
    assert {re.sub(r"\.(?=\d)", "_", f).split(".")[0] for f in forms} <= set(language.__all__)


def test_words_say_that_python_does_not_run_them():
    for use in (
        lambda: language.wgmma(1, 2, 3),
        lambda: language.fence.async_shared(),
        lambda: language.shared(1, [2]),
    ):
        with pytest.raises(language.NotPython, match="Python does not run it"):
            use()
