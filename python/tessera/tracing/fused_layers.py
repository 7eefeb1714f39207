"""Layers that PyTorch runs as one op of its own, as the ops that they mean.

In `eval()` and without gradients `nn.TransformerEncoderLayer` calls `torch._transformer_encoder_layer_fwd`. torch.export goes around
that call, and Dynamo takes it into its graph as it is, where no pattern could look into it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import fx

_OF_KEYS = 1  # torch's type of a mask [batch, keys]; 0 is [queries, keys], 2 [batch, heads, queries, keys]


def _encoder_layer(
    src: torch.Tensor,  # [batch, tokens, embed_dim]
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    def attended(x):
        q, k, v = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, num_heads, -1)).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        # What is not 0 hides a key, in masks of floating point too. A query whose keys are all hidden is NaN in torch's op, and 0
        # by this call.
        seen = None if mask is None else mask.to(torch.bool).logical_not()
        if mask_type == _OF_KEYS:
            seen = seen[:, None, None, :]
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return F.linear(heads.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def forwarded(x):
        h = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(h) if use_gelu else F.relu(h), ffn_weight_2, ffn_bias_2)

    def norm_1(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(norm_1(src))
        return x + forwarded(norm_2(x))
    x = norm_1(src + attended(src))
    return norm_2(x + forwarded(x))


_MEANS = {torch._transformer_encoder_layer_fwd: _encoder_layer}


def _is_fused(node: fx.Node) -> bool:
    if node.op != "call_function" or node.target not in _MEANS:
        return False
    src = node.args[0].meta.get("example_value")
    return not (isinstance(src, torch.Tensor) and src.is_nested)  # rows of different lengths have no such form


def take_apart(gm: fx.GraphModule) -> fx.GraphModule:
    """A graph that calls such layers, with functions in their place that torch.export looks into; another graph as it is. The one
    that is given stays as it was: it is what eager PyTorch runs."""
    if not any(_is_fused(n) for n in gm.graph.nodes):
        return gm
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for node in graph.nodes:
        if _is_fused(node):
            node.target = _MEANS[node.target]
    return fx.GraphModule(gm, graph, type(gm).__name__)
