"""Where things lie: the package's own files, and the cache (XDG directories, `TESSERA_HOME` overrides)."""

from __future__ import annotations

import os
from pathlib import Path

package = Path(__file__).resolve().parents[1]


def cache_folder() -> Path:
    """The root of the content-addressed cache; made on first use by whoever writes."""
    home = os.environ.get("TESSERA_HOME")
    if home:
        return Path(home)  # as base/files.cpp has it
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tessera"


def extensions_folder() -> Path:
    """Of the extensions that are compiled for this torch, half a minute's work: `TESSERA_EXTENSIONS` names one that several caches
    share, as those of tests and of jobs that begin with an empty cache."""
    named = os.environ.get("TESSERA_EXTENSIONS")
    return Path(named) if named else cache_folder() / "extension"


def source_tree() -> Path | None:
    """The root of the source tree that the package lies in, or None for an installed one."""
    root = package.parent.parent
    return root if (root / "include" / "tessera" / "kernel.h").is_file() else None


def document(name: str) -> Path:
    """A file of `docs/`, of the source tree or of the installed package."""
    tree = source_tree()
    return (tree or package) / "docs" / name


def include_folder() -> Path | None:
    """The folder with `tessera/kernel.h`."""
    for folder in (package / "include", package.parent.parent / "include"):
        if (folder / "tessera" / "kernel.h").is_file():
            return folder
    return None
