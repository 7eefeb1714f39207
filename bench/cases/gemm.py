"""Matrix products of KernelBench level 1 (problems 1, 3 and 6), zero-mean inputs."""

import torch
from torch import nn

SHAPES = {
    "L1-1": ((4096, 4096), (4096, 4096)),
    "L1-3": ((128, 512, 1024), (128, 1024, 2048)),
    "L1-6": ((256, 524288), (524288, 256)),
}


class Product(nn.Module):
    """C = A B, as torch.matmul states it (B row-major, that is N-major)."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def make(case: str, device: str, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    a, b = SHAPES[case]
    generator = torch.Generator(device=device).manual_seed(1)
    return Product(), tuple(
        torch.randn(shape, device=device, dtype=torch.float32, generator=generator).to(dtype) for shape in (a, b)
    )
