#!/usr/bin/env python3
"""Times the rungs of docs/ladder.md on a Hopper GPU: `TESSERA_BINARY=... python tests/gpu/ladder.py [--page] [--results FILE]`.

Builds every rung of kernels/ladder/rungs.json (nvcc, about 20 s), holds each to fp64, and times all rungs of a problem in turns in
one process, beside cuBLAS (torch.matmul) and cuDNN (scaled_dot_product_attention). Prints a Markdown table, and writes
bench/results/ladder.json with device, toolchain and commit ($TESSERA_COMMIT, else git's). `--page` puts the times into docs/ladder.md.
Exit code 1 where a rung is wrong. About a minute of GPU time.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("TESSERA_PYTHON", sys.executable)
os.environ.setdefault("TESSERA_INCLUDE", str(ROOT / "include"))
os.environ.setdefault("TESSERA_HOME", tempfile.mkdtemp(prefix="tessera-ladder-"))

PAGE = ROOT / "docs/ladder.md"
RUNGS = json.loads((ROOT / "kernels/ladder/rungs.json").read_text())
GEMMS = [(4096, 4096, 4096), (8192, 8192, 8192)]
ATTENTIONS = [(4, 16, 4096, 128)]  # batches, heads, tokens, head dim: no mask
CHECKED = [(200, 264, 136), (1000, 1000, 1000)], [(2, 3, 777, 128), (1, 2, 100, 128)]
SLOW = "threads"  # timed by itself, in few rounds, at the first size
ROUNDS, SLOW_ROUNDS = 15, 3


def commit() -> str:
    found = os.environ.get("TESSERA_COMMIT", "")
    if not found and (ROOT / ".git").exists():
        found = subprocess.run(
            ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout
    return found.strip()


def built(rungs: list[dict]) -> list:
    """The kernels, or what the build says: nvcc side by side."""
    import tessera

    def one(rung: dict):
        words = {"unproved": True} if not rung["proved"] else {}
        try:
            return tessera.kernel(f"{ROOT / rung['file']}:{rung['family']}", **words, **rung["constants"])
        except tessera.Error as e:
            return e

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, rungs))


class Gemm:
    family, peer = "gemm", "cuBLAS"

    def __init__(self, torch, size):
        self.m, self.n, self.k = size
        self.text = "x".join(map(str, size)) if len(set(size)) > 1 else f"{size[0]}^3"
        self.flops = 2 * self.m * self.n * self.k
        self.inputs = [torch.randn(rows, self.k, device="cuda").to(torch.bfloat16) for rows in (self.m, self.n)]
        self.out = torch.empty(self.m, self.n, device="cuda", dtype=torch.bfloat16)

    def call(self, rung, kernel):
        a, b = self.inputs
        given = (a, b.T if rung.get("b") == "K x N" else b)
        return lambda: kernel(*given, out=self.out)

    def reference(self):
        a, b = self.inputs
        return a.double() @ b.double().T

    def of_peer(self, torch):
        a, b = self.inputs
        return lambda: torch.matmul(a, b.T, out=self.out)


class Attention:
    family, peer = "attention", "cuDNN"

    def __init__(self, torch, size):
        b, h, t, d = size
        self.text = f"{b}x{h}x{t}x{d}"
        self.flops = 4 * b * h * t * t * d
        self.inputs = [torch.randn(*size, device="cuda").to(torch.bfloat16) for _ in range(3)]
        self.out = torch.empty(size, device="cuda", dtype=torch.bfloat16)

    def call(self, rung, kernel):
        return lambda: kernel(*self.inputs, out=self.out)

    def reference(self):
        q, k, v = (x.double() for x in self.inputs)
        return ((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v

    def of_peer(self, torch):
        attend, backend = torch.nn.functional.scaled_dot_product_attention, torch.nn.attention

        def call():
            with backend.sdpa_kernel(backend.SDPBackend.CUDNN_ATTENTION):
                return attend(*self.inputs)

        return call


def wrong(torch, problem, rung, kernel) -> str:
    """Poisoned output, then the kernel: what is wrong with it; empty: nothing."""
    problem.out.fill_(float("nan"))
    problem.call(rung, kernel)()
    torch.cuda.synchronize()
    exact = problem.reference()
    error = float((problem.out.double() - exact).norm() / exact.norm())
    rounded = float((exact.to(torch.bfloat16).double() - exact).norm() / exact.norm())
    most = 1.3 * rounded + 1e-5 if problem.family == "gemm" else 5e-3
    return "" if error <= most else f"{problem.text}: error {error:.2e}, at most {most:.2e}"


def measured(torch, problem, rungs, cache) -> dict[str, float]:
    """Milliseconds by the number of the rung among all, and of the peer."""
    from measured import timed

    fast = [(n, r, k) for n, r, k in rungs if r["name"] != SLOW]
    calls = [problem.call(r, k) for _, r, k in fast] + [problem.of_peer(torch)]
    times = dict(zip([*(n for n, _, _ in fast), problem.peer], timed(torch, calls, cache, ROUNDS), strict=True))
    if problem.text == f"{GEMMS[0][0]}^3":
        for n, r, k in rungs:
            if r["name"] == SLOW:
                (times[n],) = timed(torch, [problem.call(r, k)], cache, SLOW_ROUNDS)
    return times


def table(rows: list[dict], family: str) -> str:
    problems = list(dict.fromkeys(r["case"] for r in rows if r["family"] == family))
    names = sorted(dict.fromkeys(r["rung"] for r in rows if r["family"] == family), key=rung_number)
    lines = ["| rung | " + " | ".join(problems) + " |", "|---|" + "---|" * len(problems)]
    for name in names:
        cells = []
        for case in problems:
            found = next((r for r in rows if (r["family"], r["rung"], r["case"]) == (family, name, case)), None)
            cells.append(
                f"{found['ms']:.3f} ms, {found['tflops']:.0f} TFLOP/s, {found['of_peer']:.2f}x"
                if found
                else "not timed"
            )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def rung_number(name: str) -> int:
    """Peers come last."""
    number = name.split(".")[0]
    return int(number) if number.isdigit() else len(RUNGS) + 1


def put_into_page(family: str, text: str, about: str) -> None:
    page = PAGE.read_text()
    begin, end = f"<!-- times of {family} -->\n", f"<!-- end of times of {family} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    assert pattern.search(page), f"{PAGE} has no marks for the times of {family}"
    PAGE.write_text(pattern.sub(lambda _: f"{begin}{about}\n\n{text}\n{end}", page))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results/ladder.json")
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    import torch
    from measured import cold_cache

    torch.manual_seed(7)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    cache = cold_cache()
    kernels, failed, rows = built(RUNGS), False, []
    for (kind, sizes), checked in zip(((Gemm, GEMMS), (Attention, ATTENTIONS)), CHECKED, strict=True):
        rungs = []
        for number, (rung, kernel) in enumerate(zip(RUNGS, kernels, strict=True)):
            if rung["family"] != kind.family:
                continue
            faults = [str(kernel)] if isinstance(kernel, Exception) else []
            faults = faults or [f for s in checked if (f := wrong(torch, kind(torch, s), rung, kernel))]
            print("WRONG" if faults else "right", rung["family"], rung["name"], *faults, flush=True)
            failed |= bool(faults)
            if not faults:
                rungs.append((number, rung, kernel))
        for size in sizes:
            problem = kind(torch, size)
            times = measured(torch, problem, rungs, cache)
            peer = times[problem.peer]
            for key, ms in times.items():
                row = {"family": kind.family, "case": problem.text, "precision": "bf16", "ms": round(ms, 5)}
                row |= {
                    "rung": key if isinstance(key, str) else f"{key + 1 - first_of(kind.family)}. {RUNGS[key]['name']}"
                }
                rows.append(row | {"tflops": round(problem.flops / ms / 1e9, 1), "of_peer": round(peer / ms, 4)})
            del problem
    about = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, torch {torch.__version__.split('+')[0]}, commit {commit()}, bf16."
    for family, peer in (("gemm", "cuBLAS"), ("attention", "cuDNN")):
        print(f"\n{table(rows, family)}")
        if asked.page and not failed:
            put_into_page(
                family, table(rows, family), f"{about} The last figure of a cell is the speed beside {peer}'s."
            )
    how = "; the first rung of products alone, in 3 rounds"
    write(torch, asked.results, how, rows)
    return int(failed)


def first_of(family: str) -> int:
    return next(n for n, r in enumerate(RUNGS) if r["family"] == family)


def write(torch, file: Path, how: str, rows: list[dict]) -> None:
    from measured import write_rows

    os.environ["TESSERA_COMMIT"] = commit()
    write_rows(torch, file, "ladder.py", how, {"rows": rows})


if __name__ == "__main__":
    sys.exit(main())
