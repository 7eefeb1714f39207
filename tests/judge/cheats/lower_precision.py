"""Computes in bfloat16 what is of class fp32.

Said: wrong_result: error
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def honest(self, x):
        return nn.functional.gelu(self.linear(x)) * 0.5

    def forward(self, x):
        low = torch.bfloat16
        y = nn.functional.linear(x.to(low), self.linear.weight.to(low), self.linear.bias.to(low))
        return nn.functional.gelu(y.float()) * 0.5
