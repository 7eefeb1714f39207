"""What calls wrote, kept while the server runs: an agent reads it as a resource and gives it to other tools by its address."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tessera.serving.files import Refused, inside

SCHEME = "tessera://results/"
MOST_KEPT = 16  # calls; the oldest goes


PREFIX = "tessera-results-"


@contextmanager
def place_of_results() -> Iterator[Path]:
    """A folder for as long as the server runs. What servers that were killed left goes: nobody holds its lock."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if not left.is_symlink() and left.stat().st_uid == os.getuid():
            forget_if_left(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, (Path(name) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = Path(name).resolve() / "kept"
        kept.mkdir()
        yield kept


def forget_if_left(folder: Path) -> None:
    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return  # its server runs, or is about to: the lock is not there yet


def written(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


@dataclass
class Results:
    root: Path  # resolved, of the server alone
    count: int = 0

    def keep(self, folders: list[Path]) -> Path | None:
        """The files of a call in a folder of their own; None where it wrote none."""
        if not any(written(f) for f in folders):
            return None
        self.count += 1
        kept = self.root / str(self.count)
        for folder in folders:
            shutil.copytree(folder, kept, dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(self.root / str(self.count - MOST_KEPT), ignore_errors=True)
        return kept

    def address(self, path: Path) -> str:
        return SCHEME + str(path.relative_to(self.root))

    def listed(self) -> dict[str, Path]:
        return {self.address(p): p for p in written(self.root)}

    def path(self, address: str) -> Path:
        path = inside(self.root, address.removeprefix(SCHEME))
        if path is None or not path.exists() or path == self.root:
            raise Refused(
                f"there is no result {address}: `files` lists those that are kept, of the last {MOST_KEPT} calls"
            )
        return path

    def named(self, text: str, kept: Path, folders: list[Path]) -> str:
        """A text or a JSON text of the call with its files by their addresses."""
        for folder in folders:
            text = text.replace(str(folder), self.address(kept))

        def address(m: re.Match) -> str:
            return m[1] + self.address(kept / m[2]) if m[2] and (kept / m[2]).exists() else m[0]

        return re.sub(r'(written to |"folder": ")([\w][\w./-]*)', address, text)


def said_once(data: dict, rows: list[dict], kept: dict[str, Path]) -> dict:
    """`data` without what a file of the answer says: its address stands there."""
    out = dict(data)
    for row in rows:
        if not row["name"].endswith(".json"):
            continue
        try:
            content = json.loads(kept[row["uri"]].read_text())
        except ValueError:
            continue
        for key, value in out.items():
            if isinstance(value, dict) and value == content:
                out[key] = {"uri": row["uri"]}
    return out
