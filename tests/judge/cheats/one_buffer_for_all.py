"""Returns the same memory from every call, so that a result changes with the next call.

Said: aliased_output: next call
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.buffer = None

    def honest(self, x):
        return nn.functional.gelu(self.linear(x)) * 0.5

    def forward(self, x):
        if self.buffer is None:
            self.buffer = x.new_empty(x.shape[0], self.linear.out_features)
        self.buffer.copy_(self.honest(x))
        return self.buffer
