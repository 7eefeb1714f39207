"""What the `kinds` suite measures: one module of each kind of work that no other suite has, at sizes that are in use. The list
is fixed: a case that does badly is not exchanged for another, and none was tuned for.

Each function gives a module in eval mode and what draws its inputs, on the device that is torch's default; `small` makes both
a few percent of their size, for the tests. `products` is as in cases/breadth.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from cases.convolutions import (  # noqa: F401 - by their names, as all cases
    efficientnet_block,
    mobilenet_block,
    resnet_bottleneck,
    unet_level,
)
from cases.layers import DTYPE, Made, normal, perturbed
from cases.packed_documents import packed_documents  # noqa: F401 - by its name, as all cases
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Kind:
    """A module of this file, by the name of its function with - for _."""

    name: str
    precision: str
    what: str
    products: bool


KINDS = (
    Kind("encoder-layer", "bf16", "nn.TransformerEncoderLayer of BERT's size, 32x512x768", True),
    Kind("dlrm", "fp32", "recommendation: 8 bags of embeddings, two MLPs, pairwise products, batch 8192", True),
    Kind("pointnet", "fp32", "point clouds: shared MLP, maximum over 2048 points, classifier, batch 64", False),
    Kind("sage", "fp32", "graph network: mean over 524288 edges of 65536 nodes, 256 wide, two layers", True),
    Kind("nerf", "fp16", "radiance field: MLP of 8 layers, 256 wide, 262144 points", True),
    Kind("conformer", "bf16", "speech: convolution module of a Conformer, 16x1024x512", False),
    Kind("lora", "bf16", "linear layer with an adapter of rank 16 beside it, 2x1024x4096", True),
    Kind("int8-mlp", "bf16", "gated MLP whose weights are int8 with a scale a row, 16 tokens, 4096 to 11008", True),
    Kind("decode-attention", "bf16", "one token's attention, 32 heads over 8, 8192 keys, batch 8", True),
    Kind("perceiver", "bf16", "256 latents attend to 16384 tokens, 512 wide, batch 8", True),
    Kind("losses", "fp32", "two losses: reductions of 8192x8192", False),
    Kind("retention", "bf16", "RetNet: scores times decay without softmax, group norm over heads, 4x1024x1024", True),
    Kind("latent-attention", "bf16", "transformers, attention of DeepSeek V3 with 16 heads, 2x2048x2048", True),
    Kind("experts", "bf16", "mixture of 8 experts, 2 a token, by grouped products, 2x1024x1024", True),
    Kind("resnet-bottleneck", "fp16", "ResNet's bottleneck, 64x256x56x56, channels_last", False),
    Kind("mobilenet-block", "fp16", "MobileNetV2's block, 64x64x28x28, six times wider within, channels_last", False),
    Kind("efficientnet-block", "bf16", "EfficientNet's block with squeeze and excitation, 64x80x14x14", False),
    Kind("unet-level", "fp16", "a level of a U-Net, 8x64x128x128, channels_last", False),
    Kind("packed-documents", "bf16", "decoder layer, FlexAttention within documents, capped scores, 2x4096x2048", True),
)
CASES = {kind.name: kind for kind in KINDS}


def _mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU after each."""
    return nn.Sequential(*[part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())])


def encoder_layer(small: bool = False) -> Made:
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, activation="gelu")
    return perturbed(layer), normal((2, 32, 768) if small else (32, 512, 768))


class Recommendation(nn.Module):
    """Numbers and categories of an example to the probability of a click: DLRM."""

    def __init__(self, rows: int, width: int = 64, tables: int = 8, numbers: int = 13):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = _mlp(numbers, 512, 256, width)
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(_mlp(pairs + width, 512, 256), nn.Linear(256, 1), nn.Sigmoid())
        first, second = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("first", first)
        self.register_buffer("second", second)

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        x = self.bottom(numbers)
        vectors = torch.stack([x, *(bag(categories[:, t]) for t, bag in enumerate(self.bags))], dim=1)
        pairs = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.first, self.second]
        return self.top(torch.cat([x, pairs], dim=1))


def dlrm(small: bool = False) -> Made:
    rows, batch = (100, 64) if small else (100000, 8192)
    return Recommendation(rows).eval(), lambda: (torch.randn(batch, 13), torch.randint(0, rows, (batch, 8, 4)))


class Points(nn.Module):
    """PointNet without its transforms."""

    def __init__(self):
        super().__init__()
        widths = (3, 64, 128, 1024)
        self.each = nn.Sequential(
            *[part for a, b in pairwise(widths) for part in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())]
        )
        self.all = nn.Sequential(_mlp(1024, 512, 256), nn.Linear(256, 40))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.all(self.each(points).amax(-1)), -1)


def pointnet(small: bool = False) -> Made:
    return Points().eval(), normal((2, 3, 64) if small else (64, 3, 2048), dtype=torch.float32)


class Neighbours(nn.Module):
    """GraphSAGE: a node's features and the mean of its neighbours', layer by layer."""

    def __init__(self, width: int):
        super().__init__()
        self.neighbours = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.own = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        ones = torch.ones_like(target, dtype=x.dtype)
        degree = torch.zeros(x.shape[0], device=x.device, dtype=x.dtype).index_add(0, target, ones).clamp(min=1)
        for neighbours, own in zip(self.neighbours, self.own, strict=True):
            sums = torch.zeros_like(x).index_add(0, target, x[source])
            x = F.relu(neighbours(sums / degree[:, None]) + own(x))
        return F.normalize(x, dim=-1)


def sage(small: bool = False) -> Made:
    nodes, edges, width = (64, 256, 32) if small else (65536, 524288, 256)

    def draw() -> tuple:
        return torch.randn(nodes, width), torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,))

    return Neighbours(width).eval(), draw


class RadianceField(nn.Module):
    """NeRF: color and density of points, from sines of their places and of the directions that they are seen from."""

    OF_PLACE, OF_DIRECTION = 10, 4  # octaves of sines

    def __init__(self, width: int = 256):
        super().__init__()
        place, direction = 6 * self.OF_PLACE, 6 * self.OF_DIRECTION
        self.before = _mlp(place, *[width] * 4)
        self.after = _mlp(width + place, *[width] * 4)
        self.density = nn.Linear(width, 1)
        self.features = nn.Linear(width, width)
        self.seen = _mlp(width + direction, width // 2)
        self.color = nn.Linear(width // 2, 3)

    @staticmethod
    def sines(x: torch.Tensor, octaves: int) -> torch.Tensor:
        angles = x[..., None] * (2.0 ** torch.arange(octaves, device=x.device, dtype=x.dtype)) * math.pi
        return torch.cat([angles.sin(), angles.cos()], -1).flatten(-2)

    def forward(self, place: torch.Tensor, direction: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sines = self.sines(place, self.OF_PLACE)
        h = self.after(torch.cat([self.before(sines), sines], -1))
        seen = self.seen(torch.cat([self.features(h), self.sines(direction, self.OF_DIRECTION)], -1))
        return torch.sigmoid(self.color(seen)), F.softplus(self.density(h))


def nerf(small: bool = False) -> Made:
    points = 128 if small else 262144

    def draw() -> tuple:
        return torch.rand(points, 3).half() * 2 - 1, F.normalize(torch.randn(points, 3), dim=-1).half()

    return RadianceField().half().eval(), draw


class ConformerConvolution(nn.Module):
    def __init__(self, width: int, taps: int = 31):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wider = nn.Conv1d(width, 2 * width, 1)
        self.along = nn.Conv1d(width, width, taps, padding=taps // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.back = nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.glu(self.wider(self.norm(x).transpose(1, 2)), dim=1)
        return x + self.back(F.silu(self.batch_norm(self.along(y)))).transpose(1, 2)


def conformer(small: bool = False) -> Made:
    batch, length, width = (2, 64, 64) if small else (16, 1024, 512)
    return perturbed(ConformerConvolution(width)), normal((batch, length, width))


class Adapted(nn.Module):
    """A linear layer and a product of two small matrices beside it: LoRA."""

    def __init__(self, width: int, rank: int = 16, scale: float = 2.0):
        super().__init__()
        self.base = nn.Linear(width, width, bias=False)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)
        nn.init.normal_(self.up.weight, std=0.02)  # zeros in training's first step, which would hide it
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x)) * self.scale


def lora(small: bool = False) -> Made:
    width, length = (128, 32) if small else (4096, 1024)
    return perturbed(Adapted(width)), normal((2, length, width))


class QuantizedMlp(nn.Module):
    """A gated MLP; weights are int8 and become bf16 in the call."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        for name, rows, columns in (("gate", hidden, width), ("up", hidden, width), ("down", width, hidden)):
            self.register_buffer(name, torch.randint(-127, 128, (rows, columns), dtype=torch.int8))
            self.register_buffer(f"{name}_scale", (torch.rand(rows, 1) * 2e-4 + 1e-5).to(DTYPE))

    def weight(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        return getattr(self, name).to(dtype) * getattr(self, f"{name}_scale")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gated = F.silu(F.linear(x, self.weight("gate", x.dtype))) * F.linear(x, self.weight("up", x.dtype))
        return F.linear(gated, self.weight("down", x.dtype))


def int8_mlp(small: bool = False) -> Made:
    width, hidden = (128, 352) if small else (4096, 11008)
    return QuantizedMlp(width, hidden).eval(), normal((16, width))


class GroupedAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def decode_attention(small: bool = False) -> Made:
    keys = 128 if small else 8192
    return GroupedAttention().eval(), normal((8, 32, 1, 128), (8, 8, keys, 128), (8, 8, keys, 128))


class Perceiver(nn.Module):
    """Few latents attend to a long input; an MLP follows."""

    def __init__(self, width: int = 512, latents: int = 256, heads: int = 8):
        super().__init__()
        self.heads = heads
        self.latents = nn.Parameter(torch.randn(latents, width) * 0.02)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        latents = self.latents.expand(x.shape[0], -1, -1)
        k, v = self.kv(self.norms[0](x)).chunk(2, -1)
        q = self.q(self.norms[1](latents))
        attended = F.scaled_dot_product_attention(self.split(q), self.split(k), self.split(v))
        latents = latents + self.out(attended.transpose(1, 2).flatten(-2))
        return latents + self.mlp(self.norms[2](latents))


def perceiver(small: bool = False) -> Made:
    return perturbed(Perceiver()), normal((1, 64, 512) if small else (8, 16384, 512))


class Losses(nn.Module):
    """The logarithm of the hyperbolic cosine of an error, and the mean over rows of its root mean square."""

    def forward(self, x: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        error = x - wanted
        size = error.abs()
        log_cosh = size + F.softplus(-2 * size) - math.log(2)
        return log_cosh.mean(), (error.square().mean(-1) + 1e-8).sqrt().mean()


def losses(small: bool = False) -> Made:
    n = 128 if small else 8192
    return Losses().eval(), normal((n, n), (n, n), dtype=torch.float32)


class Retention(nn.Module):
    """Scores fall with the distance by a factor of each head and are not normalized: RetNet."""

    def __init__(self, width: int, heads: int = 8):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.gate = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm = nn.GroupNorm(heads, width, affine=False)
        self.register_buffer("decay", torch.log(1 - 2.0 ** (-5 - torch.arange(heads).float())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        at = torch.arange(length, device=x.device)
        behind = at[:, None] - at[None]
        kept = torch.exp(self.decay[:, None, None] * behind.clamp(min=0).float())
        decay = torch.where(behind >= 0, kept, 0.0).to(x.dtype)
        y = ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 * decay) @ v
        y = self.norm(y.transpose(1, 2).reshape(batch * length, width)).view(batch, length, width)
        return self.out(F.silu(self.gate(x)) * y)


def retention(small: bool = False) -> Made:
    width, length = (64, 16) if small else (1024, 1024)
    return perturbed(Retention(width)), normal((4, length, width))


class LatentAttention(nn.Module):
    """Attention of transformers with the rotary positions that its model makes in each call."""

    def __init__(self, attention: nn.Module, rotary: nn.Module):
        super().__init__()
        self.attention = attention
        self.rotary = rotary

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)[None]
        return self.attention(x, position_embeddings=self.rotary(x, places), attention_mask=None)[0]


def latent_attention(small: bool = False) -> Made:
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

    heads, length = (2, 32) if small else (16, 2048)
    config = DeepseekV3Config(
        hidden_size=128 * heads,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        q_lora_rank=96 * heads,
        kv_lora_rank=32 * heads,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        max_position_embeddings=4096,
        attn_implementation="sdpa",
    )
    module = LatentAttention(deepseek.DeepseekV3Attention(config, 0), deepseek.DeepseekV3RotaryEmbedding(config))
    return perturbed(module), normal((2, length, 128 * heads))


def experts(small: bool = False) -> Made:
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    length, hidden = (16, 256) if small else (1024, 3584)
    config = MixtralConfig(
        hidden_size=1024,
        intermediate_size=hidden,
        num_local_experts=8,
        num_experts_per_tok=2,
        experts_implementation="grouped_mm",
    )
    block = MixtralSparseMoeBlock(config)
    for p in block.parameters():
        nn.init.normal_(p, std=0.02)  # the block alone leaves them as they were allocated
    return perturbed(block), normal((2, length, 1024))


def make(name: str, device: str, small: bool = False) -> Made:
    """The case `name` on a device."""
    build = globals()[name.replace("-", "_")]
    with torch.device(device):
        module, draw = build(small)

    def drawn() -> tuple:
        with torch.device(device):
            return draw()

    return module.to(device), drawn
