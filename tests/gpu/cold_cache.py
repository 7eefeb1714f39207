#!/usr/bin/env python3
"""What the way of emptying the L2 cache before a timed call costs that call: `cold_cache.py [--results FILE]`.

A write of a large buffer leaves the cache full of lines that memory has yet to get: the call that follows pays for them as it
fills the cache. A read of a large buffer leaves lines that go for nothing. Each call is timed behind each way, in turns; `bytes`
is what it has to move, so `TB/s` says how far it is from the memory's rate. Calls that compute much should not differ.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

import torch

TURNS = 31
BUFFER = 256 << 20  # bytes; more than twice the L2 of any GPU so far


class Ways:
    def __init__(self):
        self.written = torch.empty(BUFFER, dtype=torch.uint8, device="cuda")
        self.read = torch.zeros(BUFFER // 8, dtype=torch.int64, device="cuda")
        self.sum = torch.empty((), dtype=torch.int64, device="cuda")

    def write(self):
        self.written.zero_()

    def read_only(self):
        torch.sum(self.read, dim=0, out=self.sum)

    def write_then_read(self):
        self.write()
        self.read_only()


def calls() -> dict:
    """Name: (call, bytes that it has to move)."""
    made = {}

    def product(m, n, k):
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        made[f"matmul {m}x{n}x{k}"] = (lambda: torch.matmul(a, b.T, out=out)), 2 * (m * k + n * k + m * n)

    for shape in ((16, 4096, 14336), (1, 4096, 4096), (256, 256, 524288), (4096, 4096, 4096), (512, 2048, 1024)):
        product(*shape)
    for mib in (8, 32, 128, 512):
        x, y = (torch.randn(mib << 18, device="cuda") for _ in range(2))
        out = torch.empty_like(x)
        made[f"add {mib} MiB"] = (lambda x=x, y=y, out=out: torch.add(x, y, out=out)), 3 * (mib << 20)
    for mib in (32, 112, 512):
        lines, total = (
            torch.randint(1 << 40, (mib << 17,), device="cuda"),
            torch.empty((), device="cuda", dtype=torch.int64),
        )
        made[f"sum of {mib} MiB"] = (lambda x=lines, y=total: torch.sum(x, dim=0, out=y)), mib << 20
    rows = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
    weight = torch.ones(4096, device="cuda", dtype=torch.bfloat16)
    made["layer norm 8192x4096"] = (lambda: torch.nn.functional.layer_norm(rows, (4096,), weight)), 4 * rows.numel()
    return made


def timed(call, empty, spin: int) -> float:
    empty()
    torch.cuda._sleep(spin)  # the host enqueues the call meanwhile
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    call()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    ways = Ways()
    each = {"written": ways.write, "written, read": ways.write_then_read, "read": ways.read_only}
    rows = []
    print(torch.cuda.get_device_name(), torch.__version__)
    for name, (call, moved) in calls().items():
        for _ in range(3):
            call()
        samples = {way: [] for way in each}
        for _ in range(TURNS):
            for way, empty in each.items():
                samples[way].append(timed(call, empty, 400_000))
        ms = {way: statistics.median(s) for way, s in samples.items()}
        rows.append({"call": name, "bytes": moved, "ms": ms})
        print(
            f"{name:26}",
            *(f"{way}: {t * 1e3:7.1f} us {moved / t / 1e9:5.2f} TB/s" for way, t in ms.items()),
            flush=True,
        )
    if arguments.results:
        about = {
            "script": "tests/gpu/cold_cache.py --results FILE",
            "commit": os.environ.get("TESSERA_COMMIT", ""),
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "method": f"median of {TURNS} turns, each call behind each way of emptying the L2, behind a spin",
        }
        arguments.results.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
