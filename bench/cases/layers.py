"""The layers of libraries in the `breadth` suite: each function gives a module in eval mode and one that draws its inputs.
The libraries are imported where they are needed, so that a case asks for no other case's."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

DTYPE = torch.bfloat16
Made = tuple[nn.Module, Callable[[], tuple]]


def _first(result):
    return result[0] if isinstance(result, tuple) else result


class OfHidden(nn.Module):
    """A layer of transformers called with hidden states and no mask."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _first(self.layer(x, attention_mask=None))


class OfHiddenAndRotary(nn.Module):
    """A decoder's layer called as its model calls it for a whole sequence."""

    def __init__(self, layer: nn.Module, cos: torch.Tensor, sin: torch.Tensor):
        super().__init__()
        self.layer = layer
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _first(self.layer(x, attention_mask=None, position_embeddings=(self.cos, self.sin)))


class OfHiddenAndText(nn.Module):
    """A block with cross attention."""

    def __init__(self, block: nn.Module):
        super().__init__()
        self.block = block

    def forward(self, x: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return self.block(x, encoder_hidden_states=text)


def normal(*shapes: tuple[int, ...], dtype: torch.dtype = DTYPE) -> Callable[[], tuple]:
    return lambda: tuple(torch.randn(shape).to(dtype) for shape in shapes)


def perturbed(module: nn.Module) -> nn.Module:
    """Vectors of parameters are ones or zeros at first (norms, biases); a kernel that ignores them would be right."""
    with torch.no_grad():
        for p in module.parameters():
            if p.ndim == 1:
                p.add_(0.1 * torch.randn_like(p))
    return module.to(DTYPE).eval()


def qwen3_decoder(length: int = 2048) -> Made:
    from transformers import Qwen3Config
    from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RotaryEmbedding

    config = Qwen3Config(
        hidden_size=4096,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=12288,
        num_hidden_layers=1,
        attn_implementation="sdpa",
    )
    cos, sin = Qwen3RotaryEmbedding(config)(torch.empty(1, dtype=DTYPE), torch.arange(length)[None])
    return perturbed(OfHiddenAndRotary(Qwen3DecoderLayer(config, 0), cos, sin)), normal((1, length, 4096))


def gpt2_block(batch: int = 8) -> Made:
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    config = GPT2Config(n_embd=1024, n_head=16, n_layer=1, attn_implementation="sdpa")
    return perturbed(OfHidden(GPT2Block(config, 0))), normal((batch, 1024, 1024))


def roberta_layer(batch: int = 32) -> Made:
    from transformers import RobertaConfig
    from transformers.models.roberta.modeling_roberta import RobertaLayer

    config = RobertaConfig(hidden_size=1024, num_attention_heads=16, intermediate_size=4096, attn_implementation="sdpa")
    return perturbed(OfHidden(RobertaLayer(config, 0))), normal((batch, 512, 1024))


def whisper_encoder(batch: int = 8) -> Made:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoderLayer

    config = WhisperConfig(d_model=1280, encoder_attention_heads=20, encoder_ffn_dim=5120, attn_implementation="sdpa")
    return perturbed(OfHidden(WhisperEncoderLayer(config))), normal((batch, 1500, 1280))


def vit_block(batch: int = 64) -> Made:
    from timm.models.vision_transformer import Block

    return perturbed(Block(1024, 16, qkv_bias=True)), normal((batch, 197, 1024))


def convnext_block(batch: int = 64) -> Made:
    from timm.models.convnext import ConvNeXtBlock

    # The scale of the branch starts at 1e-6, which would hide what the branch computes.
    return perturbed(ConvNeXtBlock(512, ls_init_value=1.0)), normal((batch, 512, 14, 14))


def sdxl_transformer(batch: int = 2) -> Made:
    from diffusers.models.attention import BasicTransformerBlock

    block = BasicTransformerBlock(1280, 20, 64, cross_attention_dim=2048)
    return perturbed(OfHiddenAndText(block)), normal((batch, 1024, 1280), (batch, 77, 2048))


def sdxl_resnet(batch: int = 2) -> Made:
    from diffusers.models.resnet import ResnetBlock2D

    block = ResnetBlock2D(in_channels=640, out_channels=640, temb_channels=1280)
    return perturbed(block), normal((batch, 640, 64, 64), (batch, 1280))


def make(name: str, device: str) -> Made:
    """The layer `name` of cases/breadth.py on a device."""
    build = globals()[name.replace("-", "_")]
    with torch.device(device):
        module, draw = build()

    def drawn() -> tuple:
        with torch.device(device):
            return draw()

    return module.to(device), drawn
