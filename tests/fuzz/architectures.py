"""Thirty architectures of Transformers at tiny sizes with random weights, through tessera.optimize with kernels, beside eager.

    python tests/fuzz/architectures.py                 all of them
    python tests/fuzz/architectures.py llama vit       some
    python tests/fuzz/architectures.py --transformers DIR     their own tests of torch.export and torch.compile, from a clone of
                                                              Transformers with its tests (needs parameterized, pytest-timeout)

Each is called on inputs that it was not traced with, too, and held to its own errors against fp64.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import transformers_tests  # noqa: E402
from placing import OPTIONS  # noqa: E402

_DECODER = dict(
    vocab_size=128,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    use_cache=False,
)
_EXPERTS = dict(num_local_experts=4, num_experts_per_tok=2)
_ENCODER = {k: v for k, v in _DECODER.items() if k not in ("num_key_value_heads", "use_cache")}
_IMAGES = dict(_ENCODER, image_size=32, patch_size=8, num_channels=3)
_ROUTED = dict(
    n_routed_experts=4,
    num_experts_per_tok=2,
    n_group=2,
    topk_group=1,
    moe_intermediate_size=16,
    kv_lora_rank=16,
    q_lora_rank=16,
    qk_rope_head_dim=8,
    qk_nope_head_dim=8,
    v_head_dim=8,
    first_k_dense_replace=1,
    num_key_value_heads=4,
)
_BART = dict(
    vocab_size=128,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    max_position_embeddings=64,
    use_cache=False,
)
# Name: (the model's class, the configuration's class, its arguments, what forward takes)
ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", _DECODER, "ids"),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(_DECODER, sliding_window=8), "ids"),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _DECODER, "ids"),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(_DECODER, head_dim=8), "ids"),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(_DECODER, head_dim=8, sliding_window=8), "ids"),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(_DECODER, head_dim=8, sliding_window=8), "ids"),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", _DECODER, "ids"),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", _DECODER, "ids"),
    "cohere": ("CohereForCausalLM", "CohereConfig", _DECODER, "ids"),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", _DECODER, "ids"),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", _DECODER, "ids"),
    "granite": ("GraniteForCausalLM", "GraniteConfig", _DECODER, "ids"),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(_DECODER, **_EXPERTS), "ids"),
    "qwen3-moe": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        dict(_DECODER, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, head_dim=8),
        "ids",
    ),
    "deepseek-v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", dict(_DECODER, **_ROUTED), "ids"),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        dict(vocab_size=128, n_embd=32, n_layer=2, n_head=4, n_positions=64),
        "ids",
    ),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(_ENCODER, use_cache=False), "ids"),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(_ENCODER, ffn_dim=64, word_embed_proj_dim=32, use_cache=False),
        "ids",
    ),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(vocab_size=128, hidden_size=32, n_layer=2, n_head=4), "ids"),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(_ENCODER, new_decoder_architecture=False), "ids"),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, state_size=8, use_cache=False),
        "ids",
    ),
    "bert": ("BertForMaskedLM", "BertConfig", _ENCODER, "masked ids"),
    "roberta": ("RobertaModel", "RobertaConfig", _ENCODER, "masked ids"),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        dict(vocab_size=128, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
        "masked ids",
    ),
    "deberta": (
        "DebertaV2Model",
        "DebertaV2Config",
        dict(_ENCODER, relative_attention=True, pos_att_type=["p2c", "c2p"]),
        "masked ids",
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        dict(vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False),
        "two ids",
    ),
    "bart": ("BartForConditionalGeneration", "BartConfig", _BART, "two ids"),
    "vit": ("ViTForImageClassification", "ViTConfig", _IMAGES, "image"),
    "clip-vision": ("CLIPVisionModel", "CLIPVisionConfig", _IMAGES, "image"),
    "convnext": (
        "ConvNextForImageClassification",
        "ConvNextConfig",
        dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1]),
        "image",
    ),
}


def module_of(name: str) -> torch.nn.Module:
    import transformers

    model, config, arguments, _ = ARCHITECTURES[name]
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**arguments)).eval()
    for p in made.parameters():  # not the zeros and ones that norms and biases begin with
        if p.is_floating_point() and p.dim() == 1:
            p.data.add_(0.1 * torch.randn_like(p))
    return made


def inputs_of(name: str, seed: int) -> dict:
    generator = torch.Generator().manual_seed(seed)

    def ids(length: int) -> torch.Tensor:
        return torch.randint(3, 128, (2, length), generator=generator)

    kind = ARCHITECTURES[name][3]
    if kind == "image":
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    given = {"input_ids": ids(12)}
    if kind == "masked ids":
        given["attention_mask"] = torch.ones(2, 12, dtype=torch.long)
        given["attention_mask"][1, 9:] = 0
    if kind == "two ids":
        given["decoder_input_ids"] = ids(7)
    return given


@dataclass
class Outcome:
    verdict: str  # right, wrong or refused
    why: str = ""
    kernels: int = 0
    runner: str = ""
    seconds: float = 0.0
    served: list = field(default_factory=list)


def tried(name: str, seconds: float = 15.0) -> Outcome:
    import tessera
    from tessera.common.errors import Error

    begin = time.monotonic()
    module = module_of(name)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fast = tessera.optimize(module, inputs_of(name, 0), seconds=seconds, **OPTIONS)
        except Error as e:
            return Outcome("refused", str(e)[:300], seconds=time.monotonic() - begin)
        exact = module_of(name).double()
        why = next((w for seed in range(3) if (w := _differs(name, module, fast, exact, seed))), "")
    status = fast.status()
    return Outcome(
        "wrong" if why else "right",
        why,
        active_kernels(status),
        status["runner"],
        time.monotonic() - begin,
        [status["calls"], status["served"]],
    )


def active_kernels(status: dict) -> int:
    parts = [g["status"] for g in status.get("graphs", ()) if g.get("status")]
    return sum(len(s.get("active", ())) for s in (parts or [status]))


def _differs(name: str, module, fast, exact, seed: int) -> str:
    """Where the result is further from fp64 than eager's by more than a factor and some roundings; also on what was not traced."""
    given = inputs_of(name, seed)
    wide = {k: t.double() if t.is_floating_point() else t for k, t in given.items()}
    eager, got = _tensors(module(**given)), _tensors(fast(**given))
    try:
        true = _tensors(exact(**wide))
    except RuntimeError:  # grouped products of experts have no fp64
        true = {key: t.double() for key, t in eager.items()}
    if eager.keys() != got.keys():
        return f"inputs {seed}: results {sorted(got)}, eager's are {sorted(eager)}"
    for key, e in eager.items():
        g, t = got[key], true[key]
        if (g.shape, g.dtype, g.stride()) != (e.shape, e.dtype, e.stride()):
            return f"inputs {seed}: {key} is {g.dtype} {list(g.shape)}, eager's {e.dtype} {list(e.shape)}"
        size = t.square().mean().sqrt() + 1e-30
        ours, theirs = (((x.double() - t).square().mean().sqrt() / size).item() for x in (g, e))
        if not ours <= 4 * theirs + (4e-7 if theirs else 2e-6):
            return f"inputs {seed}: {key} is off by {ours:.2g} (relative RMS), eager by {theirs:.2g}"
    return ""


def _tensors(result) -> dict[str, torch.Tensor]:
    return {k: v for k, v in result.items() if isinstance(v, torch.Tensor)}


def _families(names: list[str]) -> list[str]:
    """The folders of Transformers' models that these architectures stand in."""
    import transformers

    classes = (getattr(transformers, ARCHITECTURES[name][0]) for name in names)
    return list(dict.fromkeys(c.__module__.split(".")[2] for c in classes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=15.0, help="of search")
    parser.add_argument(
        "--transformers", type=Path, metavar="DIR", help="a clone of Transformers, whose own tests are run"
    )
    o = parser.parse_args()
    if o.transformers:
        return transformers_tests.run(o.transformers.resolve(), _families(o.names or list(ARCHITECTURES)), o.seconds)
    counts: dict[str, int] = {}
    with_kernels = 0
    for name in o.names or ARCHITECTURES:
        done = tried(name, o.seconds)
        counts[done.verdict] = counts.get(done.verdict, 0) + 1
        with_kernels += done.kernels > 0
        print(
            f"{name:14} {done.verdict:8} {done.kernels:3} kernels  {done.runner:8} {done.seconds:5.0f} s  {done.why}",
            flush=True,
        )
    print(", ".join(f"{n} {what}" for what, n in counts.items()) + f"; in {with_kernels} a kernel ran")
    return bool(counts.get("wrong"))


if __name__ == "__main__":
    sys.exit(main())
