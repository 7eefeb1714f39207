"""Random numbers that a traced module draws."""

from __future__ import annotations

import torch
from torch import nn

from tessera.common.reference import overload


def draws(graph: dict) -> list[str]:
    """The ops that draw, by their names: dropout does in training mode alone."""
    found = []
    for node in graph["nodes"]:
        inert = node["op"].startswith("aten.dropout") and not (
            node["arguments"].get("train") and node["arguments"].get("p")
        )
        if not inert and torch.Tag.nondeterministic_seeded in overload(node["op"]).tags:
            found.append(node["op"].split(".")[1])
    return sorted(set(found))


def of_training(module: nn.Module, graph: dict) -> str:
    """What to say before a search: who forgot eval() would wait for nothing. "" where there is nothing to say."""
    drawn = draws(graph) if module.training else []
    if not drawn:
        return ""
    return (
        f"the module is in training mode and draws random numbers ({', '.join(drawn)}), so that every call gives another "
        "result; call .eval() before optimizing what is for inference"
    )
