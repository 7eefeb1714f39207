"""Files of a call: read under one root alone or given as text, written into a folder of the call, returned as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
MOST_OF_ANSWER = 48 * 1024  # bytes of files in an answer: about 12,000 tokens
MOST_OF_SEVERAL = 4 * 1024  # of one of several files: a folder's long ones are read when they are wanted


class Refused(Exception):
    """An argument that a tool does not take; its text is for the agent."""


@dataclass(frozen=True)
class Place:
    root: Path  # resolved
    unsandboxed: bool


def inside(root: Path, given: str) -> Path | None:
    """Where a path under `root` leads, symbolic links followed; None where that is elsewhere."""
    path = (root / given).resolve()
    return path if path.is_relative_to(root) else None


def under_root(place: Place, given: str) -> Path:
    """The file or folder that a path means, symbolic links followed."""
    if "\0" in given:
        raise Refused("a path has no zero byte")
    path = inside(place.root, given)
    if path is None:
        raise Refused(f"`{given}` is not under the root: give a path under it, or the text as {{name, text}}")
    if not path.exists():
        raise Refused(f"there is no `{given}` under the root: the tool `files` lists what is there")
    return path


def given(place: Place, p: dict, value: str | dict, folder: Path) -> str:
    """What the program is given for a parameter that names a file: an absolute path, with `:Class` as it was."""
    called = p["names"] in ("model", "kernel_file")
    name, colon, chosen = (value if isinstance(value, str) else value["name"]).partition(":")
    if colon and not (called and re.fullmatch(r"\w+", chosen)):
        raise Refused(f"{p['name']}: after the colon stands the name of a class or a kernel, as in model.py:Model")
    if isinstance(value, str):
        return f"{under_root(place, name)}{colon}{chosen}"
    # A source runs in a sandbox (docs/sandbox.md); a model runs in the process that holds it, as the user.
    if p["names"] == "model" and not place.unsandboxed:
        raise Refused(
            f"{p['name']} as text would run with all rights of the user, outside of the sandbox. Name a file under the "
            "root, or ask the user to start the server with --unsandboxed"
        )
    if not NAME.fullmatch(name):
        raise Refused(f"{p['name']}: `{name}` is no plain file name, as k.cpp")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(value["text"])
    return f"{folder / name}{colon}{chosen}"


def produced(files: dict[str, Path], folder: Path, with_text: bool) -> list[dict]:
    """Every file of a call, by its address. Where it was asked for: with the text of the only file, or of the short ones
    among several, as many as an answer takes."""
    rows, left = {uri: row_of(uri, path, folder) for uri, path in files.items()}, MOST_OF_ANSWER
    for row in sorted(rows.values(), key=lambda row: row["bytes"]):
        if not with_text:
            row["left_out"] = "`output` was not asked for"
        elif row["bytes"] > (left if len(rows) == 1 else min(left, MOST_OF_SEVERAL)):
            row["left_out"] = "too long for this answer"
        else:
            try:
                row["text"] = files[row["uri"]].read_bytes().decode()
                left -= row["bytes"]
            except UnicodeDecodeError:
                row["left_out"] = "not text"
    return list(rows.values())


def row_of(uri: str, path: Path, folder: Path) -> dict:
    return {"name": str(path.relative_to(folder)), "bytes": path.stat().st_size, "uri": uri}
