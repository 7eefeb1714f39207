"""What is said of a module that is in training mode."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tessera.common.randomness import draws


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
