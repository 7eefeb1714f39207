"""A GPT-2 style transformer block: LayerNorm, causal self-attention written out, and an MLP with GELU written out.

The sizes are small enough for a CPU; MiniGPTLarge has those of KernelBench's level 3, problem 44.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SEQUENCE, WIDTH, HEADS = 4, 256, 512, 8
LARGEST_SEQUENCE = 1024


class TanhGelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, largest_sequence):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        mask = torch.tril(torch.ones(largest_sequence, largest_sequence))
        self.register_buffer("mask", mask.view(1, 1, largest_sequence, largest_sequence))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(x).split(width, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        mixed = F.softmax(scores, dim=-1) @ v
        return self.projection(mixed.transpose(1, 2).contiguous().view(batch, length, width))


class Model(nn.Module):
    def __init__(self, width=WIDTH, heads=HEADS, largest_sequence=LARGEST_SEQUENCE):
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, largest_sequence)
        self.norm_2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.activation = TanhGelu()
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.contract(self.activation(self.expand(self.norm_2(x))))


class MiniGPTLarge(Model):
    @staticmethod
    def get_init_inputs():
        return [768, 8, 1024]

    @staticmethod
    def get_inputs():
        return [torch.rand(128, 512, 768)]


def get_init_inputs():
    return [WIDTH, HEADS, LARGEST_SEQUENCE]


def get_inputs():
    return [torch.randn(BATCH, SEQUENCE, WIDTH)]
