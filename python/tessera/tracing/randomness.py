"""Random numbers that a traced module draws."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

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


def of_training(module: nn.Module, graph: dict) -> str:
    """What to say before a search: who forgot eval() would wait for nothing. "" where there is nothing to say."""
    if not module.training:
        return ""
    said = []
    if drawn := draws(graph):
        said.append(f"draws random numbers ({', '.join(drawn)}), so that every call gives another result")
    if any(isinstance(m, _BatchNorm) and m.training and m.track_running_stats for m in module.modules()):
        said.append("has batch norms that take and update the statistics of each batch, which stays PyTorch's")
    if not said:
        return ""
    return (
        f"the module is in training mode and {' and '.join(said)}; call .eval() before optimizing what is for inference "
        "(in a file for the command line: self.eval() at the end of the constructor)"
    )
