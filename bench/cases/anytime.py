"""The modules of the `anytime` suite, bf16: two blocks of the `blocks` suite, an encoder layer of BERT's size, and a
bottleneck of a ResNet in both memory formats."""

from __future__ import annotations

from collections.abc import Callable

import torch
from cases import blocks
from torch import nn
from torch.nn import functional as F

CASES = ["minigpt", "llama-1x2048-written", "bert-layer", "resnet-bottleneck", "resnet-bottleneck-channels-last"]
DTYPE = torch.bfloat16


class BertLayer(nn.Module):
    """Self-attention and an MLP with GELU, each followed by its residual and a LayerNorm, as in BERT."""

    def __init__(self, width: int = 768, heads: int = 12, inner: int = 3072):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.projection = nn.Linear(width, width)
        self.norm_1 = nn.LayerNorm(width, eps=1e-12)
        self.expand, self.contract = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.norm_1(x + self.projection(mixed))
        return self.norm_2(x + self.contract(F.gelu(self.expand(x))))


def make(case: str, device: str) -> tuple[nn.Module, Callable[[], tuple]]:
    """The module in eval mode on a device, and what draws its inputs there."""
    layout = torch.channels_last if case.endswith("channels-last") else torch.contiguous_format
    if case in ("minigpt", "llama-1x2048-written"):
        module, inputs = blocks.make(case, device)
        shape = tuple(inputs[0].shape)
    elif case == "bert-layer":
        with torch.device(device):
            module, shape = BertLayer(), (32, 512, 768)
    elif case.startswith("resnet-bottleneck"):
        from torchvision.models.resnet import Bottleneck

        with torch.device(device):
            module, shape = Bottleneck(256, 64), (32, 256, 56, 56)
    else:
        raise ValueError(f"no such case: {case}")
    module = module.to(device, DTYPE).eval()
    if len(shape) == 4:
        module = module.to(memory_format=layout)

    def draw() -> tuple:
        x = torch.randn(shape, device=device).to(DTYPE)
        return (x.to(memory_format=layout) if x.ndim == 4 else x,)

    return module, draw
