#!/usr/bin/env python3
"""Checks and times kernels/attention.py with mask tensors on a Hopper GPU, beside scaled_dot_product_attention with the same
mask (memory-efficient, cuDNN) and FlexAttention that reads it.

    python tests/gpu/attention_masks.py build DIR --tessera build/bin/tessera [--only WORD]   # where nvcc is
    python tests/gpu/attention_masks.py run DIR [--only WORD] [--seconds 2]                    # on the GPU

`run` holds every library against fp64, with rows of which each key is hidden, and times those that are right: in turns, the L2
cache flushed before each call. Exit code 1 when something is wrong.
"""

import argparse
import json
import pathlib
import sys
import time

import attention_files
import core_kernels
from measured import cold_cache, write_rows

BOOL, ADDED = {"MASK": 1, "MULTIPLE": 2}, {"MASK": 2, "MULTIPLE": 2}
# Constants, and which of (batch, head, query) the mask has.
VARIANTS = {
    "none_128": ({}, ""),
    "bool_128": (BOOL, "bq"),
    "bool_128_112": (BOOL | {"KEYS": 112}, "bq"),
    "bool_128_160": (BOOL | {"KEYS": 160}, "bq"),
    "bool_128_noturns": (BOOL | {"TURNS": 0}, "bq"),
    "bool_128_heads": (BOOL, "bhq"),
    "bool_128_padding": (BOOL | {"MASK_ROWS": 0}, "b"),
    "bool_128_odd": (BOOL | {"MULTIPLE": 1}, "bq"),
    "bool_128_causal": (BOOL | {"CAUSAL": 1, "MASK_ROWS": 0}, "b"),
    "added_128": (ADDED, "bq"),
    "added_128_noturns": (ADDED | {"TURNS": 0}, "bq"),
    "bool_128_160_noturns": (BOOL | {"KEYS": 160, "TURNS": 0}, "bq"),
    "bool_128_heads_noturns": (BOOL | {"TURNS": 0}, "bhq"),
    "added_128_112": (ADDED | {"KEYS": 112}, "bq"),
    "added_128_heads": (ADDED, "bhq"),
    "added_128_heads_noturns": (ADDED | {"TURNS": 0}, "bhq"),
    "added_128_f32": (ADDED | {"MASK_ELEMENT": "f32", "KEYS": 96}, "bq"),
    "bool_64": (BOOL | {"D": 64}, "bq"),
    "bool_64_noturns": (BOOL | {"D": 64, "TURNS": 0}, "bq"),
    "added_64": (ADDED | {"D": 64}, "bq"),
    "added_64_noturns": (ADDED | {"D": 64, "TURNS": 0}, "bq"),
    "bool_256_noturns": (BOOL | {"D": 256, "KEYS": 64, "Q_SLOTS": 1, "TURNS": 0}, "bq"),
}


class Masked(core_kernels.Attention):
    """The mask comes as scaled_dot_product_attention takes it: expanded, its strides 0 along what it lacks."""

    def __init__(self, torch, name, constants, has):
        facts = {"head_dim": constants.get("D", 128), "causal": constants.get("CAUSAL", 0) == 1}
        super().__init__(torch, {"facts": facts, "dtype": "bfloat16"})
        self.kind, self.has = constants.get("MASK", 0), has
        self.mask_dtype = torch.float32 if constants.get("MASK_ELEMENT") == "f32" else self.dtype
        kinds = {0: "none", 1: "bool", 2: f"added {str(self.mask_dtype)[6:]}"}  # what reads the same inputs is raced
        self.group = f"{self.group} {kinds[self.kind]} {has or '-'}"
        if self.kind and constants.get("MULTIPLE") == 2:
            self.sizes = [s for s in self.sizes if s[4] % 2 == 0]

    def inputs(self, size):
        torch = self.torch
        b, h, _, tq, tk = size
        made = super().inputs(size)
        if not self.kind:
            return made
        shape = [b if "b" in self.has else 1, h if "h" in self.has else 1, tq if "q" in self.has else 1, tk]
        shown = torch.rand(shape, device="cuda") < 0.7
        if "q" in self.has and tq > 1:  # a row that sees nothing; of results that are all 0 there is no relative error
            shown[:, :, tq // 2] = False
        if self.kind == 2:
            added = torch.randn(shape, device="cuda").to(self.mask_dtype)
            shown = added.masked_fill(~shown, float("-inf"))
        return [*made, shown.expand(b, h, tq, tk)]

    def ints(self, size):
        b, h, g, tq, tk = size
        if not self.kind:
            return super().ints(size)
        batch, head, query = ("b" in self.has, "h" in self.has, "q" in self.has)
        row = tk if query else 0
        each = tq * tk if query else tk
        strides = (row, each if head else 0, each * (h if head else 1) if batch else 0)
        return (tq, tk, h, g, b, *(strides if query else strides[1:]))

    def written(self, inputs):
        if not self.kind:
            return super().written(inputs)
        torch = self.torch
        q, k, v, mask = inputs
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) / self.dim**0.5
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask.to(q.dtype)
        if self.causal:
            tq, tk = scores.shape[-2:]
            later = torch.ones(tq, tk, device="cuda", dtype=torch.bool).triu(tk - tq + 1)
            scores = scores.masked_fill(later, float("-inf"))
        return scores.softmax(-1).nan_to_num(0.0) @ v  # 0 in a row that sees nothing

    def reference(self, inputs):
        return self.written([*(x.double() for x in inputs[:3]), *inputs[3:]])

    def peers(self, inputs):
        """(name, call): each of torch's that takes the mask."""
        from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415

        torch = self.torch
        q, k, v = inputs[:3]
        mask = inputs[3] if self.kind else None
        if mask is not None and mask.dtype == torch.float32:
            mask = mask.to(q.dtype)
        if self.causal and self.kind:  # torch has one of both
            tq, tk = mask.shape[-2:]
            mask = mask & torch.ones(tq, tk, device="cuda", dtype=torch.bool).tril(tk - tq)
        causal, grouped = self.causal and not self.kind, q.shape[1] != k.shape[1]

        def sdpa(backend):
            def call():
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped
                    )

            return call

        yield "memory-efficient", sdpa(SDPBackend.EFFICIENT_ATTENTION)
        yield "cudnn", sdpa(SDPBackend.CUDNN_ATTENTION)
        if self.kind:
            yield "flex", self.flex(q, k, v, mask, grouped)

    def flex(self, q, k, v, mask, grouped):
        from torch.nn.attention.flex_attention import flex_attention  # noqa: PLC0415

        def change(score, batch, head, query, key):
            given = mask[batch, head, query, key]
            return self.torch.where(given, score, float("-inf")) if given.dtype == self.torch.bool else score + given

        self.torch._dynamo.reset()
        run = self.torch.compile(flex_attention, dynamic=False, fullgraph=True)
        return lambda: run(q, k, v, score_mod=change, enable_gqa=grouped)


def race(torch, entrants, size, seconds):
    """`entrants`: (name, kernel, problem), of problems that are alike."""
    problem = entrants[0][2]
    inputs = problem.inputs(size)
    out = torch.empty(problem.shape(size), device="cuda", dtype=problem.out)
    calls = [(name, kernel.prepared(torch, [*inputs, out], p.ints(size))) for name, kernel, p in entrants]
    for name, call in problem.peers(inputs):
        try:
            call()
            calls.append((name, call))
        except Exception as e:  # noqa: BLE001: a backend that does not take the case
            print(f"{'x'.join(map(str, size)):19} {problem.group:28} {name}: {(str(e).splitlines() or ['?'])[0]}")
    until = time.time() + seconds
    while time.time() < until:
        for _, call in calls:
            call()
        torch.cuda.synchronize()
    times = core_kernels.flushed_times(torch, [call for _, call in calls], cold_cache(), 15)
    case, took = "x".join(map(str, size)), dict(zip((name for name, _ in calls), times, strict=True))
    for name, ms in took.items():
        flops = problem.flops(size) / 1e9 / ms
        print(f"{case:19} {problem.group:28} {name:20} {ms:7.4f} ms {flops:7.1f} TFLOP/s", flush=True)
    kernels = {name: took.pop(name) for name, _, _ in entrants}
    return {"case": case, "mask": problem.group.removeprefix("attention "), "kernels_ms": kernels, "peers_ms": took}


def run(directory, only, seconds, results):
    import torch  # noqa: PLC0415: `build` runs where torch may be missing

    torch.manual_seed(7)
    right, wrong = {}, 0
    for name, (constants, has) in VARIANTS.items():
        if only not in name:
            continue
        problem = Masked(torch, name, constants, has)
        kernel = core_kernels.Kernel(next((directory / name).glob("*.so")))
        faults = [f"{s}: {fault}" for s in problem.sizes if (fault := core_kernels.check(torch, kernel, problem, s))]
        print(f"{'WRONG' if faults else 'right'} {name}", *faults, sep="\n    " if faults else " ", flush=True)
        wrong += bool(faults)
        if not faults:
            right.setdefault(problem.group, []).append((name, kernel, problem))
    rows = [race(torch, e, size, seconds) for e in right.values() for size in e[0][2].races]
    if results:
        write_rows(torch, results, "attention_masks.py run DIR", "", {"precision": "bf16", "rows": rows})
    return int(wrong > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["build", "run"])
    parser.add_argument("directory", type=pathlib.Path, nargs="?", default=pathlib.Path("out/attention_masks"))
    parser.add_argument("--tessera", default=str(attention_files.ROOT / "build/bin/tessera"))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--results", type=pathlib.Path, help="where the rows of `run` go, as JSON")
    asked = parser.parse_args()
    if asked.step == "run":
        return run(asked.directory, asked.only, asked.seconds, asked.results)
    chosen = {name: constants for name, (constants, _) in VARIANTS.items() if asked.only in name}
    failed = attention_files.build_all(asked.directory, chosen, asked.tessera)
    for name in chosen:
        made = json.loads((asked.directory / name / "build.json").read_text() or "{}")
        print(name, {k: made[k] for k in ("registers", "spills", "verdict") if k in made})
    return failed


if __name__ == "__main__":
    sys.exit(main())
