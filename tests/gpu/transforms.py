#!/usr/bin/env python3
"""Modules with Fourier transforms on a GPU, by both doors: results beside eager's, and times: `transforms.py [--seconds 12]`.

torch.compile's own rule for fake tensors says how transforms lie in memory, and the FFT library may leave them otherwise
(docs/limits.md): a compiled rest that reads them as it was told would be wrong.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import tessera  # noqa: E402
import tessera.backend  # noqa: E402


class GlobalFilter(nn.Module):
    """A block that mixes tokens by a filter in the frequencies, with an MLP."""

    def __init__(self, size=14, width=384):
        super().__init__()
        self.size = size
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.filter = nn.Parameter(torch.randn(size, size // 2 + 1, width, 2) * 0.02)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, n, c = x.shape
        grid = self.before(x).view(b, self.size, self.size, c)
        z = torch.fft.rfft2(grid, dim=(1, 2), norm="ortho") * torch.view_as_complex(self.filter)
        x = x + torch.fft.irfft2(z, s=(self.size, self.size), dim=(1, 2), norm="ortho").reshape(b, n, c)
        return x + self.mlp(self.behind(x))


class Mixing(nn.Module):
    """FNet's block: the real part of a transform over tokens and channels."""

    def __init__(self, width=768):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = self.first(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
        return self.second(x + self.mlp(x))


class LongConvolution(nn.Module):
    def __init__(self, width=256, length=4096):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(width, length) * 0.02)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        n = 2 * x.shape[1]
        u = torch.fft.rfft(x.transpose(1, 2), n=n) * torch.fft.rfft(self.kernel, n=n)
        return torch.fft.irfft(u, n=n)[..., : x.shape[1]].transpose(1, 2) * torch.sigmoid(self.gate(x))


CASES = {
    "global filter": (GlobalFilter, (64, 196, 384)),
    "mixing": (Mixing, (16, 512, 768)),
    "long convolution": (LongConvolution, (8, 4096, 256)),
}


def ms(call, x) -> float:
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call(x)
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def error(got, want) -> float:
    return ((got.double() - want.double()).square().mean() / want.double().square().mean()).sqrt().item()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0, help="of search, for each door")
    seconds = parser.parse_args().seconds
    wrong = 0
    for name, (make, shape) in CASES.items():
        torch.manual_seed(0)
        module, x = make().cuda().eval(), torch.randn(shape, device="cuda")
        with torch.no_grad():
            want = module.double()(x.double())
            module.float()
            budget = 4 * error(module(x), want) + 1e-6
            ways = {"eager": module, "optimize": tessera.optimize(module, (x,), seconds=seconds, progress=False)}
            ways["backend"] = torch.compile(module, backend=tessera.backend.tessera, options={"seconds": seconds})
            for way, call in ways.items():
                off = error(call(x), want)
                wrong += not off <= budget
                print(f"{name:18s} {way:9s} {ms(call, x):8.4f} ms  error {off:.1e} of at most {budget:.1e}", flush=True)
            why = (ways["optimize"].report or {}).get("settled", {}).get("why", "")
            print(f"{'':18s} {ways['optimize'].runner}: {why[:150]}", flush=True)
    print("FAILED" if wrong else "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
