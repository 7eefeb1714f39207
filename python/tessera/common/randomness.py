"""Random numbers that a graph draws."""

from __future__ import annotations

import torch

from tessera.common.reference import overload


def _drops_nothing(node: dict) -> bool:
    """Dropout that is switched off, or whose probability is 0 (attention's is, unless it is given)."""
    given = node["arguments"]
    takes = {a.name for a in overload(node["op"])._schema.arguments}
    chance = given.get("dropout_p", 0.0) if "dropout_p" in takes else given.get("p", 1.0)
    return chance == 0 or given.get("train") is False


def draws(graph: dict) -> list[str]:
    """The ops that draw, by their names: dropout does in training mode alone."""
    return sorted(
        {
            node["op"].split(".")[1]
            for node in graph["nodes"]
            if torch.Tag.nondeterministic_seeded in overload(node["op"]).tags and not _drops_nothing(node)
        }
    )
