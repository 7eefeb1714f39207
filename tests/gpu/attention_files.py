#!/usr/bin/env python3
"""Checks and times kernels/attention.py on a Hopper GPU, beside scaled_dot_product_attention (cuDNN).

    python tests/gpu/attention_files.py build DIR --tessera build/bin/tessera [--only WORD]   # where nvcc is
    python tests/gpu/attention_files.py run DIR [--only WORD] [--seconds 2]                    # on the GPU
    PYTHONPATH=python TESSERA_BINARY=... python tests/gpu/attention_files.py operator          # on the GPU, with nvcc

`run` holds every library against fp64 and times it as tests/gpu/core_kernels.py does its own. `operator` calls the kernel
from Python, on rows as a projection leaves them, through torch.compile too. Exit code 1 when something is wrong.
"""

import argparse
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import core_kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "kernels/attention.py"
# What is raced; all are checked.
VARIANTS = {
    "full_128": {},
    "full_128_160": {"KEYS": 160},
    "full_128_noturns": {"TURNS": 0},
    "causal_128": {"CAUSAL": 1},
    "causal_128_160": {"CAUSAL": 1, "KEYS": 160},
    "causal_128_one_place": {"CAUSAL": 1, "Q_SLOTS": 1, "KEYS": 176},
    "full_64": {"D": 64},
    "full_64_three": {"D": 64, "GROUPS": 3},
    "causal_64": {"D": 64, "CAUSAL": 1},
    "causal_64_three": {"D": 64, "GROUPS": 3, "CAUSAL": 1},
    "full_96": {"D": 96},
    "causal_96": {"D": 96, "CAUSAL": 1},
    "full_256_80": {"D": 256, "KEYS": 80, "Q_SLOTS": 1},
    "causal_256_64": {"D": 256, "KEYS": 64, "Q_SLOTS": 1, "CAUSAL": 1},
    "causal_128_f16": {"CAUSAL": 1, "ELEMENT": "f16"},
}


def entries(only):
    for name, constants in VARIANTS.items():
        if only in name:
            facts = {"head_dim": constants.get("D", 128), "causal": constants.get("CAUSAL", 0) == 1}
            yield name, constants, {"facts": facts, "dtype": "float16" if "f16" in name else "bfloat16"}


def build(directory, only, tessera):
    return build_all(directory, {name: constants for name, constants, _ in entries(only)}, tessera)


def build_all(directory, variants, tessera):
    """Each proved and compiled, a core each. 1 where one is not."""

    def build_one(name, constants):
        out = directory / name
        out.mkdir(parents=True, exist_ok=True)
        words = [w for c, value in constants.items() for w in ("--set", f"{c}={value}")]
        done = subprocess.run(
            [tessera, "build", FILE, *words, "--json", "-o", out], capture_output=True, text=True, check=False
        )
        (out / "build.json").write_text(done.stdout)
        print(name, "built" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:], flush=True)
        return done.returncode != 0

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return int(any([*pool.map(build_one, variants.keys(), variants.values())]))


def run(directory, only, seconds):
    import torch  # noqa: PLC0415: `build` runs where torch may be missing

    torch.manual_seed(7)
    right, wrong = {}, 0
    for name, _, entry in entries(only):
        problem = core_kernels.Attention(torch, entry)
        if entry["dtype"] == "float16":
            problem.group += " f16"
        kernel = core_kernels.Kernel(next((directory / name).glob("*.so")))
        faults = [
            f"{size}: {fault}" for size in problem.sizes if (fault := core_kernels.check(torch, kernel, problem, size))
        ]
        print(f"{'WRONG' if faults else 'right'} {name}", *faults, sep="\n    " if faults else " ", flush=True)
        wrong += bool(faults)
        if not faults:
            right.setdefault(problem.group, []).append((name, kernel, problem))
    for entrants in right.values():
        for size in entrants[0][2].races:
            core_kernels.race(torch, entrants, size, seconds)
    return int(wrong > 0)


def operator():
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("TESSERA_PYTHON", sys.executable)
    import tessera  # noqa: PLC0415
    import torch  # noqa: PLC0415

    torch.manual_seed(7)
    wrong = 0
    for causal in (False, True):
        kernel = tessera.kernel(f"{FILE}:attention", CAUSAL=int(causal), STRIDED=1)
        b, h, g, t, d = 2, 8, 2, 777, 128
        rows = [torch.randn(b, t, n * d, device="cuda", dtype=torch.bfloat16) for n in (h, g, g)]
        q, k, v = (x.view(b, t, -1, d).transpose(1, 2) for x in rows)
        wide = [x.double() for x in (q, k.repeat_interleave(h // g, 1), v.repeat_interleave(h // g, 1))]
        reference = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal)
        for way, call in (("called", kernel), ("compiled", torch.compile(lambda *x, f=kernel: f(*x)))):
            error = core_kernels.rms(call(q, k, v), reference)
            print("ok" if error < 5e-3 else "FAILED", "causal" if causal else "full", way, f"{error:.2e}", flush=True)
            wrong += error >= 5e-3
    return int(wrong > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["build", "run", "operator"])
    parser.add_argument("directory", type=pathlib.Path, nargs="?", default=pathlib.Path("out/attention_files"))
    parser.add_argument("--tessera", default=str(ROOT / "build/bin/tessera"))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=2)
    asked = parser.parse_args()
    if asked.step == "operator":
        return operator()
    if asked.step == "build":
        return build(asked.directory, asked.only, asked.tessera)
    return run(asked.directory, asked.only, asked.seconds)


if __name__ == "__main__":
    sys.exit(main())
