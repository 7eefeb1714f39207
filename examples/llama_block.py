"""A Llama-3-8B decoder block: RMSNorm, rotary embedding, grouped-query causal attention, SwiGLU.

LlamaBlock calls F.scaled_dot_product_attention; LlamaBlockWritten spells everything out, with key and value heads
repeated. TESSERA_LLAMA_BATCH and TESSERA_LLAMA_SEQ set the size of the inputs.
"""

import math
import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

BATCH = int(os.environ.get("TESSERA_LLAMA_BATCH", "1"))
SEQUENCE = int(os.environ.get("TESSERA_LLAMA_SEQ", "2048"))


@dataclass
class Sizes:
    hidden: int = 4096
    mlp: int = 14336
    heads: int = 32
    kv_heads: int = 8
    sequence: int = SEQUENCE
    rope_theta: float = 500000.0
    eps: float = 1e-5


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * y.to(x.dtype)


def rotate(x, cos, sin):
    """Each pair (i, i + d/2) of a head's elements, turned by the angle of its position."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.head_dim = sizes.hidden // sizes.heads
        self.q_proj = nn.Linear(sizes.hidden, sizes.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(sizes.hidden, sizes.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(sizes.hidden, sizes.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(sizes.heads * self.head_dim, sizes.hidden, bias=False)
        frequencies = sizes.rope_theta ** -(torch.arange(0, self.head_dim, 2, dtype=torch.float32) / self.head_dim)
        angles = torch.outer(torch.arange(sizes.sequence, dtype=torch.float32), frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
        cos, sin = self.cos[:length].to(x.dtype), self.sin[:length].to(x.dtype)
        mixed = self.attend(rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class WrittenAttention(Attention):
    def attend(self, q, k, v):
        length = q.size(2)
        k, v = self.repeat(k), self.repeat(v)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        mask = torch.full((length, length), float("-inf"), device=q.device, dtype=q.dtype).triu(1)
        weights = F.softmax((scores + mask).float(), dim=-1).to(q.dtype)
        return torch.matmul(weights, v)

    def repeat(self, x):
        batch, heads, length, width = x.shape
        times = self.sizes.heads // self.sizes.kv_heads
        return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, heads * times, length, width)


class SwiGlu(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.mlp, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.mlp, bias=False)
        self.down_proj = nn.Linear(sizes.mlp, sizes.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    attention_class = Attention

    def __init__(self, sizes=None):
        super().__init__()
        sizes = sizes or Sizes()
        self.input_norm = RMSNorm(sizes.hidden, sizes.eps)
        self.attention = self.attention_class(sizes)
        self.post_norm = RMSNorm(sizes.hidden, sizes.eps)
        self.mlp = SwiGlu(sizes)

    def forward(self, x):
        x = x + self.attention(self.input_norm(x))
        return x + self.mlp(self.post_norm(x))


class LlamaBlockWritten(LlamaBlock):
    attention_class = WrittenAttention


class Model(LlamaBlock):
    pass


def get_init_inputs():
    return [Sizes()]


def get_inputs():
    return [torch.randn(BATCH, SEQUENCE, Sizes.hidden)]
