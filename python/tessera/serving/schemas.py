"""Tools as the command table has them (`tessera commands --json`, schema ``tessera.commands/1``): JSON schemas of what goes
in and comes out. A new command is a tool by its row alone."""

from __future__ import annotations

from tessera.serving.words import described, for_tools

GIVEN = ("model", "source", "kernel_file", "input")  # what a parameter names that is read
PLAIN = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "real": {"type": "number"},
    "flag": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": "array", "items": {"type": "number"}},
}
SUFFIX = {"model": "; `MODEL.py:Class` chooses", "kernel_file": "; `FILE.py:KERNEL` chooses"}
TEXT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "with its ending, as k.cpp"},
        "text": {"type": "string"},
    },
    "required": ["name", "text"],
    "additionalProperties": False,
}


def tools(table: dict) -> list[dict]:
    """The commands that an agent can call."""
    return [c for c in table["commands"] if not c["door"] and not c["hidden"]]


def parameter(command: dict, p: dict) -> dict:
    doc = for_tools(command, p["doc"]) + (f" (default: {p['preset']})" if p["preset"] else "")
    if p["names"] == "output":
        return {"type": "boolean", "description": f"{doc}: true, for the answer's `files`"}
    if p["names"] in GIVEN:
        kinds = [
            {
                "type": "string",
                "description": "path under the root, or a result's `uri`" + SUFFIX.get(p["names"], ""),
            },
            TEXT,
        ]
        return {"anyOf": kinds, "description": doc}
    schema = {**PLAIN[p["type"]], "description": doc}
    if p["choices"] and p["type"] == "list":
        schema["items"] = {**schema["items"], "enum": list(p["choices"])}
    elif p["choices"]:
        schema["enum"] = list(p["choices"])
    if p["not_negative"]:
        schema["minimum"] = 0
    return schema


def input_schema(command: dict) -> dict:
    """Places of the user's own state are the server's to choose: no tool has them."""
    shown = [p for p in command["parameters"] if p["names"] != "place"]
    return {
        "type": "object",
        "properties": {p["name"]: parameter(command, p) for p in shown},
        "required": [p["name"] for p in shown if p["required"]],
        "additionalProperties": False,
    }


def output_schema(command: dict) -> dict:
    """Short, since every tool of the list has one: docs/skill.md says what `exit`, `diagnostics` and `files` hold."""
    known = [*command["schemas"], "tessera.diagnostic/1"]
    return {
        "type": "object",
        "properties": {
            "exit": {"type": "integer", "enum": [0, 1, 2, 3, 4]},
            "meaning": {"type": "string"},
            "data": {
                "type": "object",
                "properties": {"schema": {"type": "string", "enum": known}},
                "required": ["schema"],
            },
            "diagnostics": {"type": "array", "items": {"type": "object"}},
            "files": {"type": "array", "items": {"type": "object", "required": ["name", "bytes"]}},
        },
        "required": ["exit", "meaning", "data", "diagnostics", "files"],
    }


def description(command: dict) -> str:
    return described(command)
