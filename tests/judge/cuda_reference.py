"""What the files of cuda/ and cuda_honest/ stand for: long enough on a GPU that work which is not waited for shows."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 0.5


def get_init_inputs():
    return [2048]


def get_inputs():
    return [torch.rand(4096, 2048)]
