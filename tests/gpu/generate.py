"""generate() of a language model at the shapes of Llama-3.2-1B with random weights, bf16, static cache, behind torch.compile: eager,
torch.compile and tessera one after the other.

    python tests/gpu/generate.py [--layers 16] [--seconds 60] [--prompt 2048] [--tokens 128]

Every token must be the largest logit of eager on the same prefix, within rounding; kernels must serve the prompt and the tokens;
neither may be slower than the better of eager and torch.compile. Needs nvcc, the engine and transformers. Exit code 1 where one of
them does not hold.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "gpu")]

import torch  # noqa: E402
from judging import check, failed, note  # noqa: E402
from tessera import backend  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

PROMISED = 0.98  # of the better of eager and torch.compile
TIE = 0.05  # of how far the largest logit is above their mean
RUNS = 5


def model_of(layers: int, room: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        max_position_embeddings=room,
        tie_word_embeddings=True,
    )
    with torch.device("cuda"):
        return LlamaForCausalLM(config).to(torch.bfloat16).eval()


class Generating:
    """One way to run the model's forward. `calls`: milliseconds of each call of it, waited for, where they are noted."""

    def __init__(self, model, prompt: torch.Tensor, tokens: int):
        self.model, self.prompt, self.tokens, self.own = model, prompt, tokens, model.forward

    def __call__(self, forward: Callable) -> torch.Tensor:
        self.model.forward = forward
        try:
            return self.model.generate(
                self.prompt,
                max_new_tokens=self.tokens,
                min_new_tokens=self.tokens,
                do_sample=False,
                cache_implementation="static",
                pad_token_id=0,
                disable_compile=True,  # transformers would compile forward itself
            )
        finally:
            self.model.forward = self.own

    def calls(self, forward: Callable) -> list[float]:
        noted = []

        @functools.wraps(forward)  # transformers looks at its signature
        def waited(*args, **kwargs):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            result = forward(*args, **kwargs)
            torch.cuda.synchronize()
            noted.append((time.perf_counter() - begin) * 1e3)
            return result

        self(waited)
        return noted

    def whole(self, forward: Callable) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self(forward)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3


def figures(name: str, generating: Generating, forward: Callable) -> tuple[float, float]:
    """Milliseconds of the prompt, and of a token in generate()."""
    begin = time.monotonic()
    generating(forward)
    ready = time.monotonic() - begin
    generating(forward)
    prompt = statistics.median(generating.calls(forward)[0] for _ in range(RUNS))
    whole = statistics.median(generating.whole(forward) for _ in range(RUNS))
    token = (whole - prompt) / (generating.tokens - 1)
    note(
        f"{name}: prompt {prompt:.2f} ms, {token:.3f} ms a token, {whole:.0f} ms in all; the first call took {ready:.0f} s"
    )
    return prompt, token


def largest(model, made: torch.Tensor, prompt: int) -> None:
    """Every token that was generated is eager's, or as good as."""
    logits = model(made[:, :-1], use_cache=False).logits[0, prompt - 1 :].float()
    chosen = logits.gather(1, made[0, prompt:, None])[:, 0]
    best, mean = logits.amax(1), logits.mean(1)
    behind = ((best - chosen) / (best - mean)).max().item()
    assert behind < TIE, f"a token's logit is {behind:.3f} of their range behind the largest"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 16), ("seconds", 60), ("prompt", 2048), ("tokens", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    model = model_of(args.layers, args.prompt + args.tokens)
    prompt = torch.randint(0, 128000, (1, args.prompt), device="cuda")
    generating, own = Generating(model, prompt, args.tokens), model.forward
    options = {"seconds": args.seconds, "progress": False}
    ours = torch.compile(own, backend=backend.tessera, options=options)
    found: dict[str, tuple[float, float]] = {}

    def measured(name: str, forward: Callable) -> None:
        torch.compiler.reset()  # what one way saw of shapes and compiled is not another's
        found[name] = figures(name, generating, forward)

    def served() -> str:
        graphs = backend.status(ours)
        for g in graphs:
            note(f"a graph by {g['runner']}, {len((g['status'] or {}).get('active', ()))} kernels: {g['reason'][:300]}")
            stages = (g["report"] or {}).get("stage_seconds", {}).items()
            note("  seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in stages if s > 0.5))
        assert len(graphs) == 2 and all(g["runner"] == "kernels" for g in graphs), [g["runner"] for g in graphs]
        return f"{len(graphs)} graphs"

    def fast() -> str:
        ratios = [min(found[n][k] for n in ("eager", "torch.compile")) / found["tessera"][k] for k in (0, 1)]
        text = f"{ratios[0]:.3f} of the prompt, {ratios[1]:.3f} of a token"
        assert min(ratios) >= PROMISED, f"{text}, promised {PROMISED}"
        return text

    with torch.no_grad():
        for name, forward in (("eager", own), ("torch.compile", torch.compile(own)), ("tessera", ours)):
            check(name, lambda name=name, forward=forward: measured(name, forward))
        check("tokens", lambda: largest(model, generating(ours), args.prompt))
        check("served by kernels", served)
        check("times", fast)
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
