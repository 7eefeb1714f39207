"""What a node of a graph (docs/protocol.md) reads."""

from __future__ import annotations


def tensor_arguments(node: dict) -> list[str]:
    """The names of all values among a node's arguments, in order."""
    names = []

    def walk(encoded):
        if isinstance(encoded, dict) and "value" in encoded:
            names.append(encoded["value"])
        elif isinstance(encoded, list):
            for item in encoded:
                walk(item)

    for encoded in node["arguments"].values():
        walk(encoded)
    return names
