"""Small decoder blocks of current language models, written from their papers and reports: what a tracer meets in the wild.

Every block maps [batch, length, WIDTH] to the same shape. The spellings differ on purpose: rotary embedding as halves, as
interleaved pairs and as complex numbers; masks added, filled, selected and built from positions; norms with and without
casts; heads repeated by expand, by repeat_interleave and by enable_gqa.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LENGTH = 32, 4, 12
HEAD = WIDTH // HEADS


class RMSNorm(nn.Module):
    """x / rms(x) in float, times the weight (Llama) or one plus the weight (Gemma)."""

    def __init__(self, width: int, offset: float = 0.0, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) - offset + 0.5)
        self.offset, self.eps = offset, eps

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        if self.offset:
            return (y * (self.offset + self.weight.float())).type_as(x)
        return self.weight * y.to(x.dtype)


def angles(width: int, length: int = LENGTH, theta: float = 10000.0) -> torch.Tensor:
    frequencies = theta ** -(torch.arange(0, width, 2).float() / width)
    return torch.outer(torch.arange(length).float(), frequencies)


def halves(x, cos, sin):
    """Pairs (i, i + d/2), as GPT-NeoX and the transformers library write them; cos and sin are [length, d]."""
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def pairs(x, cos, sin):
    """Pairs (2i, 2i + 1), as GPT-J writes them; cos and sin are [length, d/2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def turned(x, rotations):
    """Pairs (2i, 2i + 1) as complex numbers, as Llama's first code writes them; x is [batch, length, heads, d]."""
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * rotations[:, None, :]).flatten(3).type_as(x)


def split_heads(x, width: int = HEAD):
    return x.view(x.shape[0], x.shape[1], -1, width).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def causal(length: int) -> torch.Tensor:
    return torch.full((length, length), float("-inf")).triu(1)


class GatedMlp(nn.Module):
    def __init__(self, act=F.silu, inner: int = 48):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, WIDTH, bias=False)
        self.act = act

    def forward(self, x):
        return self.down(self.act(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    """Grouped-query attention with half-split rotary embedding; subclasses replace what their model does otherwise."""

    kv_heads, bias = 2, False

    def __init__(self):
        super().__init__()
        kv = self.kv_heads * HEAD
        self.q, self.k, self.v = (nn.Linear(WIDTH, n, bias=self.bias) for n in (WIDTH, kv, kv))
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        both = torch.cat((angles(HEAD), angles(HEAD)), -1)
        self.register_buffer("cos", both.cos(), persistent=False)
        self.register_buffer("sin", both.sin(), persistent=False)

    def heads(self, x):
        return split_heads(self.q(x)), split_heads(self.k(x)), split_heads(self.v(x))

    def repeat(self, x):
        batch, heads, length, width = x.shape
        times = HEADS // heads
        return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, HEADS, length, width)

    def mask(self, length):
        return causal(length)

    def attend(self, q, k, v):
        scores = q @ self.repeat(k).transpose(2, 3) / math.sqrt(HEAD) + self.mask(q.shape[2])
        return torch.softmax(scores.float(), -1).to(q.dtype) @ self.repeat(v)

    def forward(self, x):
        q, k, v = self.heads(x)
        length = x.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        return self.o(merge_heads(self.attend(halves(q, cos, sin), halves(k, cos, sin), v)))


class PreNorm(nn.Module):
    """x + attention(norm(x)), then the same with the MLP: Llama, Mistral, Qwen."""

    def __init__(self, attention, mlp=None):
        super().__init__()
        self.attention, self.mlp = attention, mlp or GatedMlp()
        self.norm1, self.norm2 = RMSNorm(WIDTH), RMSNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ComplexAttention(Attention):
    """Llama's first code: rotations are complex numbers, applied before the heads come first."""

    def __init__(self):
        super().__init__()
        self.rotations = torch.polar(torch.ones(LENGTH, HEAD // 2), angles(HEAD))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, -1, HEAD) for p in (self.q, self.k, self.v))
        q, k = turned(q, self.rotations[:length]), turned(k, self.rotations[:length])
        k, v = (
            t[:, :, :, None, :].expand(batch, length, 2, 2, HEAD).reshape(batch, length, HEADS, HEAD) for t in (k, v)
        )
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(HEAD) + causal(length)
        return self.o(torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v).transpose(1, 2).reshape(x.shape))


class Sliding(Attention):
    """Mistral: a position sees the last `window` positions, itself among them."""

    window = 5

    def attend(self, q, k, v):
        i = torch.arange(q.shape[2])
        seen = (i[None, :] <= i[:, None]) & (i[None, :] > i[:, None] - self.window)
        return F.scaled_dot_product_attention(q, self.repeat(k), self.repeat(v), attn_mask=seen)


class QkvBias(Attention):
    """Qwen 2: biases on the query, key and value projections."""

    bias = True

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class QkNorm(QkvBias):
    """Qwen 3: RMSNorm of every query and key head before the rotary embedding."""

    bias = False

    def __init__(self):
        super().__init__()
        self.q_norm, self.k_norm = RMSNorm(HEAD), RMSNorm(HEAD)

    def heads(self, x):
        q, k, v = super().heads(x)
        return self.q_norm(q), self.k_norm(k), v


class SoftCapped(Attention):
    """Gemma 2: scores go through cap * tanh(scores / cap) before the mask."""

    def attend(self, q, k, v):
        scores = (q * 0.25) @ self.repeat(k).mT
        scores = torch.tanh(scores / 50.0) * 50.0
        keep = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
        return torch.where(keep, scores, torch.finfo(scores.dtype).min).softmax(-1) @ self.repeat(v)


class Gemma3Attention(Attention):
    """Gemma 3: norms of queries and keys with weights around one, and a sliding window."""

    def __init__(self):
        super().__init__()
        self.q_norm, self.k_norm = RMSNorm(HEAD, 1.0), RMSNorm(HEAD, 1.0)

    def heads(self, x):
        q, k, v = super().heads(x)
        return self.q_norm(q), self.k_norm(k), v

    def attend(self, q, k, v):
        ones = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
        masked = ones.triu(1) | ones.tril(-5)
        scores = q @ self.repeat(k).mT * 0.25
        return scores.masked_fill(masked, float("-inf")).softmax(-1) @ self.repeat(v)


class FourNorms(nn.Module):
    """Gemma 2 and 3: a norm before and after attention and MLP each, GELU gates."""

    def __init__(self, attention):
        super().__init__()
        self.attention, self.mlp = attention, GatedMlp(lambda x: F.gelu(x, approximate="tanh"))
        self.norms = nn.ModuleList(RMSNorm(WIDTH, 1.0) for _ in range(4))

    def forward(self, x):
        x = x + self.norms[1](self.attention(self.norms[0](x)))
        return x + self.norms[3](self.mlp(self.norms[2](x)))


class Phi(nn.Module):
    """Phi 2: one LayerNorm feeds attention and MLP side by side; rotary embedding on half of each head."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        both = torch.cat((angles(HEAD // 2), angles(HEAD // 2)), -1)
        self.register_buffer("cos", both.cos())
        self.register_buffer("sin", both.sin())

    def turn(self, x):
        length, part = x.shape[2], HEAD // 2
        return torch.cat((halves(x[..., :part], self.cos[:length], self.sin[:length]), x[..., part:]), -1)

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (split_heads(p(y)) for p in (self.q, self.k, self.v))
        z = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        return x + self.o(merge_heads(z)) + self.down(F.gelu(self.up(y), approximate="tanh"))


class NeoX(nn.Module):
    """GPT-NeoX: parallel residual with two norms; query, key and value of a head lie together in one projection."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        both = torch.cat((angles(HEAD // 2), angles(HEAD // 2)), -1)
        self.register_buffer("cos", both.cos())
        self.register_buffer("sin", both.sin())
        self.register_buffer("bias", torch.tril(torch.ones(64, 64, dtype=torch.bool)).view(1, 1, 64, 64))

    def attend(self, x):
        length, part = x.shape[1], HEAD // 2
        q, k, v = self.qkv(x).view(x.shape[0], length, HEADS, 3 * HEAD).permute(0, 2, 1, 3).chunk(3, -1)
        cos, sin = self.cos[:length], self.sin[:length]
        q, k = (torch.cat((halves(t[..., :part], cos, sin), t[..., part:]), -1) for t in (q, k))
        scores = torch.matmul(q, k.transpose(-1, -2)) * (1 / math.sqrt(HEAD))
        lowest = torch.tensor(torch.finfo(scores.dtype).min, dtype=scores.dtype)
        scores = torch.where(self.bias[:, :, :length, :length], scores, lowest)
        return self.o(merge_heads(F.dropout(F.softmax(scores, -1), 0.1, self.training) @ v))

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm2(x)))) + self.attend(self.norm1(x)) + x


class LatentAttention(nn.Module):
    """DeepSeek's multi-head latent attention: keys and values from a narrow latent; a rotary part that all heads share."""

    def __init__(self, latent: int = 16, rope: int = 4):
        super().__init__()
        self.rope = rope
        self.q_down, self.q_norm = nn.Linear(WIDTH, 24, bias=False), RMSNorm(24)
        self.q_up = nn.Linear(24, HEADS * (HEAD + rope), bias=False)
        self.kv_down, self.kv_norm = nn.Linear(WIDTH, latent + rope, bias=False), RMSNorm(latent)
        self.kv_up = nn.Linear(latent, HEADS * 2 * HEAD, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.register_buffer("cos", angles(rope).cos())
        self.register_buffer("sin", angles(rope).sin())

    def forward(self, x):
        batch, length, _ = x.shape
        cos, sin = self.cos[:length], self.sin[:length]
        q = split_heads(self.q_up(self.q_norm(self.q_down(x))), HEAD + self.rope)
        q_plain, q_rope = q.split((HEAD, self.rope), -1)
        latent, k_rope = self.kv_down(x).split((self.kv_norm.weight.shape[0], self.rope), -1)
        k_plain, v = split_heads(self.kv_up(self.kv_norm(latent)), 2 * HEAD).split((HEAD, HEAD), -1)
        k_rope = pairs(k_rope[:, None], cos, sin).expand(batch, HEADS, length, self.rope)
        q = torch.cat((q_plain, pairs(q_rope, cos, sin)), -1)
        k = torch.cat((k_plain, k_rope), -1)
        return self.o(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class Experts(nn.Module):
    """A mixture of experts with a shared one, in the dense spelling: every expert sees every token, gates are 0 for most."""

    def __init__(self, count: int = 4, active: int = 2):
        super().__init__()
        self.router = nn.Linear(WIDTH, count, bias=False)
        self.experts = nn.ModuleList(GatedMlp() for _ in range(count))
        self.shared, self.active = GatedMlp(), active

    def forward(self, x):
        scores = self.router(x).softmax(-1)
        weights, chosen = scores.topk(self.active, -1)
        gates = torch.zeros_like(scores).scatter(-1, chosen, weights)
        out = self.shared(x)
        for i, expert in enumerate(self.experts):
            out = out + gates[..., i, None] * expert(x)
        return out


class T5(nn.Module):
    """T5 1.1: unscaled attention with a learned bias by bucketed distance, RMSNorm, gated GELU."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.relative = nn.Embedding(8, HEADS)
        self.norm1, self.norm2 = RMSNorm(WIDTH), RMSNorm(WIDTH)
        self.mlp = GatedMlp(lambda x: F.gelu(x, approximate="tanh"))

    def bias(self, length):
        i = torch.arange(length)
        distance = (i[:, None] - i[None, :]).clamp(min=0)
        near = distance < 4
        far = 4 + (torch.log(distance.float().clamp(min=1) / 4) / math.log(4) * 4).long()
        bucket = torch.where(near, distance, far.clamp(0, 7))
        return self.relative(bucket).permute(2, 0, 1)[None] + causal(length)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (split_heads(p(y)) for p in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(3, 2)) + self.bias(x.shape[1])
        x = x + self.o(merge_heads(F.softmax(scores.float(), -1).type_as(scores) @ v))
        return x + self.mlp(self.norm2(x))


BLOCKS = {
    "llama3": lambda: PreNorm(Attention()),
    "llama_complex": lambda: PreNorm(ComplexAttention()),
    "mistral": lambda: PreNorm(Sliding()),
    "qwen2": lambda: PreNorm(QkvBias()),
    "qwen3": lambda: PreNorm(QkNorm()),
    "gemma2": lambda: FourNorms(SoftCapped()),
    "gemma3": lambda: FourNorms(Gemma3Attention()),
    "phi": Phi,
    "neox": NeoX,
    "deepseek": lambda: PreNorm(LatentAttention(), Experts()),
    "t5": T5,
}
