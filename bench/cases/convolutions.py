"""Cases of the `kinds` suite: blocks of networks that are made of convolutions, in channels_last as their users run them."""

from __future__ import annotations

import torch
from cases.layers import Made
from torch import nn
from torch.nn import functional as F


def _block(cin: int, cout: int, size: int, *, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU):
    """A convolution with its norm and, mostly, an activation."""
    conv = nn.Conv2d(cin, cout, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(cout), *([act()] if act else []))


def _finished(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """With statistics and factors that are not those of a norm just made."""
    with torch.no_grad():
        for m in module.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.normal_(0, 0.1)
                m.running_var.uniform_(0.5, 1.5)
                m.weight.uniform_(0.5, 1.5)
                m.bias.normal_(0, 0.1)
    return module.to(dtype, memory_format=torch.channels_last).eval()


def _images(*shape: int, dtype: torch.dtype):
    return lambda: (torch.randn(shape).to(dtype, memory_format=torch.channels_last),)


class Residual(nn.Module):
    """`act` of the sum, where there is one."""

    def __init__(self, inner: nn.Module, act: nn.Module | None = None):
        super().__init__()
        self.inner, self.act = inner, act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.inner(x)
        return y if self.act is None else self.act(y)


def resnet_bottleneck(small: bool = False) -> Made:
    wide, narrow = (32, 8) if small else (256, 64)
    inner = nn.Sequential(_block(wide, narrow, 1), _block(narrow, narrow, 3), _block(narrow, wide, 1, act=None))
    module = _finished(Residual(inner, nn.ReLU()), torch.float16)
    return module, _images(*((2, wide, 8, 8) if small else (64, wide, 56, 56)), dtype=torch.float16)


def mobilenet_block(small: bool = False) -> Made:
    """Of MobileNetV2: widened, each channel by itself, narrowed."""
    width, wide = (8, 48) if small else (64, 384)
    inner = nn.Sequential(
        _block(width, wide, 1, act=nn.ReLU6),
        _block(wide, wide, 3, groups=wide, act=nn.ReLU6),
        _block(wide, width, 1, act=None),
    )
    module = _finished(Residual(inner), torch.float16)
    return module, _images(*((2, width, 8, 8) if small else (64, width, 28, 28)), dtype=torch.float16)


class Excitation(nn.Module):
    def __init__(self, width: int, narrow: int):
        super().__init__()
        self.down, self.up = nn.Conv2d(width, narrow, 1), nn.Conv2d(narrow, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))).sigmoid()


def efficientnet_block(small: bool = False) -> Made:
    """MBConv with squeeze and excitation."""
    width, wide, narrow = (8, 48, 2) if small else (80, 480, 20)
    inner = nn.Sequential(
        _block(width, wide, 1, act=nn.SiLU),
        _block(wide, wide, 5, groups=wide, act=nn.SiLU),
        Excitation(wide, narrow),
        _block(wide, width, 1, act=None),
    )
    module = _finished(Residual(inner), torch.bfloat16)
    return module, _images(*((2, width, 8, 8) if small else (64, width, 14, 14)), dtype=torch.bfloat16)


class Level(nn.Module):
    """Of a U-Net: down by a maximum, two convolutions, up, and joined with what came."""

    def __init__(self, width: int):
        super().__init__()
        self.inner = nn.Sequential(_block(width, 2 * width, 3), _block(2 * width, 2 * width, 3))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.joined = nn.Sequential(_block(2 * width, width, 3), _block(width, width, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.joined(torch.cat([x, self.up(self.inner(F.max_pool2d(x, 2)))], 1))


def unet_level(small: bool = False) -> Made:
    width = 8 if small else 64
    module = _finished(Level(width), torch.float16)
    return module, _images(*((1, width, 16, 16) if small else (8, width, 128, 128)), dtype=torch.float16)
