"""A product for each of three batches: t0 and t1 are multiplied, t2 is the result."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(3, 20, 24), torch.randn(3, 24, 32)]
