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


class ScaledProduct(nn.Module):
    """C = A B in bf16 from e4m3 operands with a scale each; B is K-major, as the 8-bit tensor cores read it."""

    def __init__(self, device: str):
        super().__init__()
        self.register_buffer("one", torch.ones((), device=device))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(a, b.t(), scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16)


def make(case: str, device: str, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    a, b = SHAPES[case]
    eight_bits = dtype.itemsize == 1
    if eight_bits:
        if len(a) != 2:
            raise ValueError(f"{case} at fp8: PyTorch has no batched product of 8-bit operands to compare with")
        b = (b[1], b[0])
    generator = torch.Generator(device=device).manual_seed(1)
    inputs = (torch.randn(shape, device=device, dtype=torch.float32, generator=generator).to(dtype) for shape in (a, b))
    return (ScaledProduct(device) if eight_bits else Product()), tuple(inputs)
