"""Texts that were written for the command line, as an agent that has tools reads them."""

from __future__ import annotations

import re

OPTION = re.compile(r"(?<![\w`-])--([a-z][a-z-]*)")
QUOTED = re.compile(r"(`[^`]*`)")  # a whole command line, which stays as it is
SAID = ("message", "expected", "notes", "help")  # of a diagnostic
# What no option's name says.
PHRASES = (
    ("Ctrl-C (or SIGTERM, or a closed terminal) stops the search", "Cancelling the call stops the search"),
    (" A second Ctrl-C ends it at once.", ""),
    ("as --json names them", "as `data` names them"),
    ("with --json their parameters too", "in `data` their parameters too"),
    (" -o FILE", " with `output`"),
    ("; -o copies", "; `output` copies"),
)


def for_tools(command: dict, text: str) -> str:
    """`--name` as the argument of this tool that it is; lines that are whole command lines go from a description alone."""
    names = {p["name"] for p in command["parameters"] if p["names"] != "place"}
    for old, new in PHRASES:
        text = text.replace(old, new)

    def argument(m: re.Match) -> str:
        return f"`{m[1]}`" if m[1] in names else m[0]

    parts = QUOTED.split(text)
    return "".join(part if i % 2 else OPTION.sub(argument, part) for i, part in enumerate(parts))


def described(command: dict) -> str:
    """What a tool is for, without the examples of the command line."""
    details = [line for line in command["details"].split("\n") if not line.startswith("tessera ")]
    return for_tools(command, "\n".join(filter(None, [command["doc"], *details])))


def diagnosed(command: dict, diagnostic: dict) -> dict:
    def rewritten(value):
        if isinstance(value, str):
            return for_tools(command, value)
        return [rewritten(v) for v in value] if isinstance(value, list) else value

    return {k: rewritten(v) if k in SAID else v for k, v in diagnostic.items()}
