"""Where tessera, Inductor and Triton keep what they built: nothing is there when a search of a benchmark starts, unless the
suite says that cases share it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

MARK = "bench-commit"


class Used(Exception):
    """--fresh-home names a folder that is not empty."""


def environment_of(home: Path) -> dict[str, str]:
    return {
        "TESSERA_HOME": str(home / "tessera"),
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "TRITON_CACHE_DIR": str(home / "triton"),
    }


def shared(folder: Path, commit: str) -> dict[str, str]:
    """The environment of cases that share `folder`: empty at the start, or left by a run of the same commit, which is gone
    on with."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / MARK
    if mark.exists() and mark.read_text() != commit:
        raise Used(f"{folder} holds what commit {mark.read_text()} built; this is {commit}: give another folder")
    if not mark.exists() and any(folder.iterdir()):
        raise Used(f"{folder} is not empty: give one that is, or that does not exist")
    mark.write_text(commit)
    return environment_of(folder.resolve())


@contextlib.contextmanager
def empty() -> Iterator[dict[str, str]]:
    """The environment of a case that starts from nothing; what it leaves is removed."""
    with tempfile.TemporaryDirectory(prefix="tessera-bench-", ignore_cleanup_errors=True) as folder:
        yield environment_of(Path(folder))


@contextlib.contextmanager
def second() -> Iterator[None]:
    """This process, which started from nothing, starts from nothing once more, beside what it has. What is built meanwhile
    stays as long as the first home, because loaded code may be read again."""
    before = {name: os.environ[name] for name in environment_of(Path()) if name in os.environ}
    place = Path(os.environ["TESSERA_HOME"]).parent
    os.environ.update(environment_of(Path(tempfile.mkdtemp(prefix="second-", dir=place))))
    try:
        yield
    finally:
        for name in environment_of(Path()):
            os.environ.pop(name, None)
        os.environ.update(before)


def built() -> set[str]:
    """What compilers have made so far, of tessera and of Inductor, where this process keeps it."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    home = os.environ.get("TESSERA_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tessera"
    )
    places = (home, cache_dir(), os.environ.get("TRITON_CACHE_DIR"))
    return {str(p) for place in places if place for p in Path(place).rglob("*") if p.suffix in (".so", ".cubin", ".o")}
