"""Causal attention: t0 holds queries, t1 keys, t2 values, t3 is the result."""

import torch


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 2, 19, 8) for _ in range(3)]
