"""Forward attention of queries, keys and values: full, causal, with grouped heads, with a window, with capped scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Case:
    """[batch, heads, length, dim]; keys and values of `kv_heads` heads. Of a window a query sees itself and what is before it."""

    batch: int
    heads: int
    kv_heads: int
    length: int
    dim: int
    causal: bool = False
    window: int = 0
    softcap: float = 0.0

    @property
    def name(self) -> str:
        heads = f"{self.heads}" if self.heads == self.kv_heads else f"{self.heads}/{self.kv_heads}"
        text = f"{self.batch}x{heads}x{self.length}x{self.dim}"
        text += "-causal" if self.causal else ""
        text += f"-window{self.window}" if self.window else ""
        return text + (f"-capped{self.softcap:g}" if self.softcap else "")

    @property
    def plain(self) -> bool:
        """Whether every library has it: neither a window nor a cap."""
        return not self.window and not self.softcap

    def mask(self, device) -> torch.Tensor:
        """True where a query sees a key."""
        distance = torch.arange(self.length, device=device)[:, None] - torch.arange(self.length, device=device)
        seen = distance >= 0
        return seen & (distance < self.window) if self.window else seen


def _cases() -> list[Case]:
    out = []
    for dim, heads in ((64, 32), (128, 16), (256, 8)):
        for batch, length in ((32, 512), (8, 2048), (4, 4096), (1, 16384)):
            out += [Case(batch, heads, heads, length, dim, causal=c) for c in (False, True)]
    out += [Case(8, 16, 16, 2048, 96, causal=c) for c in (False, True)]
    out += [Case(16384 // n, 32, 4, n, 128, causal=True) for n in (1024, 2048, 4096, 8192, 16384)]
    # Mistral's heads and window; Gemma 2's, whose layers have a window by turns.
    out += [Case(1, 32, 8, n, 128, window=4096) for n in (8192, 16384)] + [Case(4, 32, 8, 4096, 128, window=1024)]
    out += [Case(1, 16, 8, 8192, 256, causal=True, softcap=50.0), Case(1, 16, 8, 8192, 256, window=4096, softcap=50.0)]
    return out


CASES = {case.name: case for case in _cases()}


class Attention(nn.Module):
    """As models spell it: one call of torch's, with the mask made of positions; capped scores are written out."""

    def __init__(self, case: Case):
        super().__init__()
        self.case = case

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        c = self.case
        if c.softcap:
            return self._capped(q, k, v)
        mask = c.mask(q.device) if c.window else None
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=c.causal, enable_gqa=c.heads != c.kv_heads
        )

    def _capped(self, q, k, v):
        c = self.case
        k, v = (x.repeat_interleave(c.heads // c.kv_heads, dim=1) for x in (k, v))
        scores = torch.matmul(q, k.transpose(-1, -2)) * (1 / math.sqrt(c.dim))
        scores = torch.tanh(scores / c.softcap) * c.softcap
        if c.causal or c.window:
            hidden = torch.zeros(c.length, c.length, dtype=q.dtype, device=q.device)
            scores = scores + hidden.masked_fill(~c.mask(q.device), float("-inf"))
        return torch.matmul(scores.softmax(-1, dtype=torch.float32).to(q.dtype), v)


def flex(case: Case, device, compiled: bool = True):
    """FlexAttention of the same: blocks that no query sees are skipped."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def visible(_batch, _head, query, key):
        seen = query >= key
        return seen & (query - key < case.window) if case.window else seen

    def capped(score, _batch, _head, _query, _key):
        return case.softcap * torch.tanh(score / case.softcap)

    masked = case.causal or case.window
    options = {
        "block_mask": create_block_mask(visible, None, None, case.length, case.length, device) if masked else None,
        "score_mod": capped if case.softcap else None,
        "enable_gqa": case.heads != case.kv_heads,
    }
    torch._dynamo.reset()  # beyond some recompilations of one function it would run op by op
    run = torch.compile(flex_attention, dynamic=False, fullgraph=True) if compiled else flex_attention
    return lambda q, k, v: run(q, k, v, **options)


def make(case: Case, device: str, dtype: torch.dtype):
    """The module, and what draws its inputs, each tensor dense."""

    def draw() -> tuple[torch.Tensor, ...]:
        heads = (case.heads, case.kv_heads, case.kv_heads)
        shapes = [(case.batch, h, case.length, case.dim) for h in heads]
        return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)

    return Attention(case), draw
