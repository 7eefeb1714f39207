"""PyTorch's own ops in another order: right, and a library's work."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return 0.5 * nn.functional.gelu(x @ self.linear.weight.t() + self.linear.bias)
