"""A layer norm that the module has written out, where no kernel takes it: in two passes, as it was written.

PyTorch's layer_norm merges means and deviations as it goes, and is NaN for rows of numbers beyond 1e18 or so, of which the mean and
the squares of what is left are right.
"""

from __future__ import annotations

import torch


def is_written(node: dict) -> bool:
    return node["op"] == "aten.layer_norm.default" and node.get("rewritten_from", "").startswith(
        "LayerNorm written out"
    )


def layer_norm(
    x: torch.Tensor, normalized_shape: list[int], weight=None, bias=None, eps: float = 1e-5, cudnn_enable: bool = False
) -> torch.Tensor:
    """The arguments of aten.layer_norm. Computed in float32, of float64 in that."""
    dims = list(range(-len(normalized_shape), 0))
    wide = x if x.dtype == torch.float64 else x.float()
    away = wide - wide.mean(dims, keepdim=True)
    y = away * torch.rsqrt((away * away).mean(dims, keepdim=True) + eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).to(x.dtype)
