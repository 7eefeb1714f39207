"""Layers that PyTorch runs as one op are traced as the ops that they mean."""

from __future__ import annotations

import pytest
import torch
from tessera.tracing import fused_layers
from tessera.tracing.tracer import trace_graph_module
from torch import nn

BATCH, TOKENS, WIDTH, HEADS = 2, 7, 16, 4
CAUSAL = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
PADDED = torch.arange(TOKENS) >= torch.tensor([[TOKENS], [TOKENS - 3]])  # [batch, keys]
MASKS = {
    "none": (None, None),
    "of queries": (CAUSAL, 0),
    "added": (torch.zeros(TOKENS, TOKENS, dtype=torch.float64).masked_fill(CAUSAL, -torch.inf), 0),
    "of keys": (PADDED, 1),
    "of each": ((PADDED[:, None, None, :] | CAUSAL).expand(BATCH, HEADS, -1, -1), 2),
}


def layer(**more) -> nn.TransformerEncoderLayer:
    torch.manual_seed(0)
    made = nn.TransformerEncoderLayer(WIDTH, HEADS, 24, batch_first=True, **more).eval()
    with torch.no_grad():  # norms of ones and biases of zeros would hide an exchange
        for p in made.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return made


def arguments(m: nn.TransformerEncoderLayer, gelu: bool) -> tuple:
    a = m.self_attn
    return (
        *(WIDTH, HEADS, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias),
        *(gelu, m.norm_first, m.norm1.eps, m.norm1.weight, m.norm1.bias, m.norm2.weight, m.norm2.bias),
        *(m.linear1.weight, m.linear1.bias, m.linear2.weight, m.linear2.bias),
    )


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("gelu", [False, True])
def test_an_encoder_layer_means_what_torchs_op_computes(mask, norm_first, gelu):
    m = layer(norm_first=norm_first, activation="gelu" if gelu else "relu").double()
    x = torch.randn(BATCH, TOKENS, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        want = torch._transformer_encoder_layer_fwd(x, *arguments(m, gelu), *MASKS[mask])
        got = fused_layers._encoder_layer(x, *arguments(m, gelu), *MASKS[mask])
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_a_captured_encoder_is_traced_to_its_products_and_attention():
    module = nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False).eval()
    captured = []

    def keep(gm, inputs):
        captured.append((gm, inputs))
        return gm

    torch._dynamo.reset()
    x = torch.randn(BATCH, TOKENS, WIDTH)
    with torch.no_grad():
        want = torch.compile(module, backend=keep)(x, src_key_padding_mask=PADDED)
    ((gm, inputs),) = captured
    fused = [n for n in gm.graph.nodes if n.target is torch._transformer_encoder_layer_fwd]
    assert len(fused) == 2
    ops = [n["op"] for n in trace_graph_module(gm, inputs).graph["nodes"]]
    assert not any("encoder_layer" in op for op in ops)
    assert sum("scaled_dot_product_attention" in op for op in ops) == 2
    assert sum("linear" in op for op in ops) == 8
    # The graph itself is what eager runs, as it was.
    assert [n for n in gm.graph.nodes if n.target is torch._transformer_encoder_layer_fwd] == fused
    with torch.no_grad():
        torch.testing.assert_close(fused_layers.take_apart(gm)(*inputs)[0], want)


def test_another_graph_is_left_as_it_is():
    gm = torch.fx.symbolic_trace(nn.Linear(3, 3))
    assert fused_layers.take_apart(gm) is gm
