"""What the module has written out and the graph names by an op of PyTorch's, where no kernel takes it: computed as it was written, where
that op gives something else.

PyTorch's layer_norm merges means and deviations as it goes, and is NaN for rows of numbers beyond 1e18 or so, of which the mean and
the squares of what is left are right. Its attention on a CPU is 0 where a query's scores are NaN, or -inf all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def form_of(node: dict, device: torch.device) -> Callable | None:
    """By the arguments of the node's op; None where the op itself will do."""
    written = node.get("rewritten_from", "")
    if node["op"] == "aten.layer_norm.default" and written.startswith("LayerNorm written out"):
        return layer_norm
    if node["op"] == "aten.scaled_dot_product_attention.default" and device.type == "cpu" and "written out" in written:
        return attention
    return None


def layer_norm(
    x: torch.Tensor, normalized_shape: list[int], weight=None, bias=None, eps: float = 1e-5, cudnn_enable: bool = False
) -> torch.Tensor:
    """Computed in float32, of float64 in that."""
    dims = list(range(-len(normalized_shape), 0))
    wide = x if x.dtype == torch.float64 else x.float()
    away = wide - wide.mean(dims, keepdim=True)
    y = away * torch.rsqrt((away * away).mean(dims, keepdim=True) + eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).to(x.dtype)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    if enable_gqa:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v
