"""What is recognized in the decoder blocks of current language models, and that it means the same in float64."""

from __future__ import annotations

import decoder_blocks as blocks
import graph_tools
import pytest
import torch
from bodies import check, tool

pytestmark = pytest.mark.skipif(tool() is None, reason="rules_tool is not built")


def discovered(name: str) -> dict:
    torch.manual_seed(0)
    block = blocks.BLOCKS[name]().eval()
    x = torch.randn(2, blocks.LENGTH, blocks.WIDTH)
    graph_tools.check(block, x)
    return check(block, x)


def body(found: dict, rule: str) -> dict:
    return found[rule][0]["body"]


def norms(found: dict, kind: str) -> int:
    """Places with such a norm: alternatives of one place count once."""
    return len(
        {p["computing"][0 if len(p["computing"]) == 1 else -1] for p in found["row_norm"] if p["body"]["kind"] == kind}
    )


def rotations(found: dict) -> int:
    turns = ("neg, mul, add", "mul, mul, sub, mul, mul, add")
    return sum(any(t in p["summary"] for t in turns) for p in found["pointwise"])


#        causal, mask, key heads
ATTENTION = {
    "llama3": (True, False, 2),
    "llama_complex": (True, False, 2),
    "mistral": (False, True, 2),
    "qwen2": (True, False, 2),
    "qwen3": (True, False, 2),
    "gemma3": (False, True, 2),
    "phi": (True, False, 4),
    "neox": (True, False, 4),
    "deepseek": (True, False, 4),
    "t5": (False, True, 4),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    found = discovered(name)
    causal, mask, kv_heads = ATTENTION[name]
    assert len(found["attention"]) == 1
    b = body(found, "attention")
    assert (b["causal"], b["mask"] is not None, b["kv_heads"]) == (causal, mask, kv_heads)
    together = name in ("llama3", "mistral", "qwen2")  # of one merged linear, turned by the same tables
    assert rotations(found) == (0 if name == "t5" else 1 if together else 2)
    assert [len(p["body"]["parts"]) for p in found["gemm"] if "parts" in p["body"]] == ([2] if together else [])
    if name in ("phi", "neox"):
        assert norms(found, "layer_norm") == {"phi": 1, "neox": 2}[name]
        assert any("gelu" in p["summary"] for p in found["gemm"])
    else:
        assert found["gated_mlp"]
        assert norms(found, "rms_norm") >= {"qwen3": 4, "gemma3": 6, "deepseek": 4}.get(name, 2)
    left = {u["op"].split(".")[1] for u in found["_"]["uncovered"]}
    assert left <= ({"topk", "zeros_like", "scatter"} if name == "deepseek" else set())


def test_latent_attention_has_narrower_values():
    b = body(discovered("deepseek"), "attention")
    assert b["head_dim"] == blocks.HEAD + 4 and b["value_dim"] == blocks.HEAD


def test_capped_scores_are_attention():
    found = discovered("gemma2")
    b = body(found, "attention")
    assert (b["softcap"], b["causal"], b["mask"], b["kv_heads"]) == (50, True, None, 2)
    assert norms(found, "rms_norm") == 4
    assert not [r for r in found["_"]["rejections"] if r["rule"] == "attention"]
