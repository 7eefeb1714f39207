"""Replies from a file, for tests and for trying the loop without a model. `--model FILE`, schema ``tessera.script/1``:

    {"schema": "tessera.script/1", "replies": [
        {"when": ["words of the prompt or the view"], "unless": ["other words"], "text": "the reply"},
        {"text": "what is said else", "file": "k.cpp", "seconds": 2}]}

The first reply whose conditions hold is said: all texts of `when` are there, none of `unless` is. It is chosen by what is
asked alone, so that a run that was ended and goes on hears the same. `file`, beside the script, is appended as a block of
code; `seconds` is how long the reply takes.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from tessera.common.errors import fail
from tessera.minds.provider import Asked, Call, Heard, Said

NAME = "scripted"
PACKAGE = ""
KEYS = ()


def claims(model: str) -> bool:
    return model.endswith(".json")


def bad(file: Path, found: str):
    return fail(
        "TS0741",
        "mind.bad_script",
        f"the script {file} has no reply",
        expected='{"schema": "tessera.script/1", "replies": [{"when": [...], "text": "..."}]}',
        found=found,
    )


def rows_of(file: Path) -> list[dict]:
    try:
        script = json.loads(file.read_text())
    except (OSError, ValueError) as e:
        raise bad(file, str(e)) from e
    if not isinstance(script, dict) or script.get("schema") != "tessera.script/1":
        raise bad(file, "another schema")
    for row in script["replies"]:
        if unknown := set(row) - {"when", "unless", "text", "file", "seconds", "ending"}:
            raise bad(file, f"the field {min(unknown)}")
    return script["replies"]


def fits(row: dict, asked: str) -> bool:
    return all(w in asked for w in row.get("when", ())) and not any(w in asked for w in row.get("unless", ()))


def connect(model: str, key: str, endpoint: str) -> Call:
    file = Path(model)
    rows = rows_of(file)

    def call(asked: Asked, heard: Heard) -> Said:
        whole = asked.system + "\n" + asked.view
        row = next((r for r in rows if fits(r, whole)), None)
        if row is None:
            raise bad(file, f"none that fits a view of {len(asked.view)} bytes, which begins with {asked.view[:60]!r}")
        end = time.monotonic() + row.get("seconds", 0)
        while time.monotonic() < end:
            time.sleep(0.1)
            heard("")
        text = row.get("text", "")
        if "file" in row:
            text += f"\n```\n{(file.parent / row['file']).read_text()}```\n"
        return Said(text, row.get("ending", "whole"))

    return call
