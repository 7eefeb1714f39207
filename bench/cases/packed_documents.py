"""A case of the `kinds` suite: FlexAttention within a decoder's layer."""

from __future__ import annotations

import torch
from cases.layers import Made, normal, perturbed
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


class PackedDocuments(nn.Module):
    """A decoder's layer over sequences that hold several documents each. A token sees its own document's tokens before it;
    scores are capped as in Gemma 2."""

    CAP = 50.0

    def __init__(self, width: int, hidden: int, heads: int, length: int, document: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        of = torch.arange(length) // document
        self.blocks = create_block_mask(
            lambda b, h, i, j: (i >= j) & (of[i] == of[j]), None, None, length, length, of.device
        )

    def capped(self, score: torch.Tensor, *place: torch.Tensor) -> torch.Tensor:
        return self.CAP * torch.tanh(score / self.CAP)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        qkv = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in qkv)
        capped = lambda *of: self.capped(*of)  # noqa: E731 - Dynamo takes no method
        seen = flex_attention(q, k, v, score_mod=capped, block_mask=self.blocks)
        x = x + self.out(seen.transpose(1, 2).flatten(-2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def packed_documents(small: bool = False) -> Made:
    width, hidden, heads, length, document = (64, 160, 2, 256, 96) if small else (2048, 5632, 16, 4096, 700)
    return perturbed(PackedDocuments(width, hidden, heads, length, document)), normal((2, length, width))
