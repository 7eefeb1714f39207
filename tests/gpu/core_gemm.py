"""Checks and times products lowered from the core (src/lower) beside torch.matmul (cuBLAS) on a Hopper GPU.

    python tests/gpu/core_gemm.py build DIR --tool BUILD/src/core_emit     # where nvcc is: sources and libraries into DIR
    python tests/gpu/core_gemm.py run DIR [--only WORD] [--seconds 3]      # on the GPU

`run` holds every library against fp64 at sizes that are multiples of a tile and sizes that are not: the error is at most
1.3 times that of torch.matmul, on a poisoned result amid margins that must stay as they are, twice with the same bits.
Then each is timed beside torch.matmul in the same process, in turns: once with the L2 cache flushed before every call, once
back to back on changing operands. Exit code 1 when something is wrong.
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time

from building import run_commands

MARGIN = 4096  # elements before and after each result
# (M, N, K): whole tiles, edges in every dimension, K below one tile of k, one tile, more tiles than multiprocessors.
SIZES = [
    (256, 512, 256), (128, 256, 64), (8, 8, 8), (136, 264, 72), (1000, 1000, 1000), (72, 2056, 40), (2056, 72, 200),
    (4096, 4096, 512), (3000, 4104, 1032), (128, 8192, 8), (520, 520, 4104),
]  # fmt: skip
RACES = [(4096, 4096, 4096), (8192, 8192, 8192)]


def build(directory, tool):
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([tool, directory], check=True)
    failed = False
    for entry in json.loads((directory / "index.json").read_text()):
        source = directory / (entry["name"] + ".cu")
        begin = time.time()
        right, said = run_commands(entry["commands"], source, source.with_suffix(".so"))
        notes = [line.strip() for line in said.splitlines() if "C75" in line or "spill" in line or "registers" in line]
        print(f"{entry['name']:28} {time.time() - begin:5.2f} s  {'; '.join(notes) if right else said[-2000:]}")
        failed |= not right
    return int(failed)


class Launch(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("tensor_count", ctypes.c_int32),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("int_count", ctypes.c_int32),
    ]


class Kernel:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.tessera_last_error.restype = ctypes.c_char_p

    def prepared(self, torch, a, b, c):
        """A call of the kernel on these tensors."""
        tensors = (ctypes.c_void_p * 3)(a.data_ptr(), b.data_ptr(), c.data_ptr())
        ints = (ctypes.c_int64 * 3)(a.shape[0], b.shape[0], a.shape[1])
        launch = Launch(tensors, 3, ints, 3)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call(_keep=(tensors, ints, a, b, c)):
            if self.library.tessera_run(ctypes.byref(launch), None, stream):
                raise RuntimeError(self.library.tessera_last_error().decode())

        return call


def rms(torch, x, reference):
    return float((x.double() - reference).norm() / reference.norm())


def check(torch, kernel, dtype, size):
    """What is wrong with the kernel at this size; empty when nothing is."""
    m, n, k = size
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(n, k, device="cuda", dtype=dtype)
    reference = a.double() @ b.double().T
    budget = 1.3 * rms(torch, a @ b.T, reference) + 1e-4
    bits = None
    for _ in range(2):
        held = torch.full((m * n + 2 * MARGIN,), float("nan"), device="cuda", dtype=dtype)
        before = held.view(torch.int16).clone()
        c = held[MARGIN : MARGIN + m * n].view(m, n)
        kernel.prepared(torch, a, b, c)()
        torch.cuda.synchronize()
        found = rms(torch, c, reference)
        if not found <= budget:
            bad = ((c.double() - reference).abs() > 0.05 * reference.abs().max()) | c.isnan()
            where = bad.nonzero()
            first = where[0].tolist() if len(where) else "nowhere alone"
            return f"error {found:.2e} above {budget:.2e}; {len(where)} elements far off, the first at {first}"
        after = held.view(torch.int16)
        if not (torch.equal(after[:MARGIN], before[:MARGIN]) and torch.equal(after[-MARGIN:], before[-MARGIN:])):
            return "wrote outside of its result"
        if bits is not None and not torch.equal(bits, c):
            return "other bits in the second run"
        bits = c.clone()
    return ""


def flushed_times(torch, calls, flush, turns):
    """Median ms of each call, in turns, the L2 cache flushed before each."""
    events = [[] for _ in calls]
    for _ in range(turns):
        for call, found in zip(calls, events, strict=True):
            flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            found.append((begin, end))
    torch.cuda.synchronize()
    return [statistics.median(b.elapsed_time(e) for b, e in found) for found in events]


def burst_times(torch, calls_of, turns, burst):
    """Median ms of a call of each in bursts back to back, in turns; `calls_of[i]` are one peer's calls on several
    operands."""
    found = [[] for _ in calls_of]
    for _ in range(turns):
        for calls, times in zip(calls_of, found, strict=True):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for i in range(burst):
                calls[i % len(calls)]()
            end.record()
            times.append((begin, end))
    torch.cuda.synchronize()
    return [statistics.median(b.elapsed_time(e) for b, e in times) / burst for times in found]


def race(torch, kernels, dtype, size, seconds):
    m, n, k = size
    sets = []
    for _ in range(3):
        a = torch.randn(m, k, device="cuda", dtype=dtype)
        b = torch.randn(n, k, device="cuda", dtype=dtype)
        sets.append((a, b, torch.empty(m, n, device="cuda", dtype=dtype)))
    peers = [[lambda a=a, b=b, c=c: torch.matmul(a, b.T, out=c) for a, b, c in sets]]
    peers += [[kernel.prepared(torch, a, b, c) for a, b, c in sets] for _, kernel in kernels]
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    until = time.time() + seconds
    while time.time() < until:
        for calls in peers:
            calls[0]()
        torch.cuda.synchronize()
    cold = flushed_times(torch, [calls[0] for calls in peers], flush, 50)
    warm = burst_times(torch, peers, 12, max(4, int(8e12 / (2.0 * m * n * k))))
    again = flushed_times(torch, [calls[1] for calls in peers], flush, 50)
    flops = 2.0 * m * n * k / 1e9
    for i, name in enumerate(["torch.matmul", *(name for name, _ in kernels)]):
        ms, other = min(cold[i], again[i]), warm[i]
        peer = min(cold[0], again[0])
        print(
            f"{m}x{n}x{k} {str(dtype)[6:]:9} {name:28} {ms:7.4f} ms {flops / ms:6.1f} TFLOP/s {peer / ms:5.3f}x   "
            f"back to back {other:7.4f} ms {flops / other:6.1f} TFLOP/s {warm[0] / other:5.3f}x",
            flush=True,
        )


def run(directory, only, seconds):
    import torch  # noqa: PLC0415: `build` runs where torch may be missing

    torch.manual_seed(7)
    right, wrong = [], 0
    for entry in json.loads((directory / "index.json").read_text()):
        if only not in entry["name"]:
            continue
        dtype = getattr(torch, entry["dtype"])
        kernel = Kernel(directory / (entry["name"] + ".so"))
        faults = []
        for size in SIZES:
            try:
                fault = check(torch, kernel, dtype, size)
            except RuntimeError as e:
                fault = str(e).splitlines()[0]
            if fault:
                faults.append(f"{size}: {fault}")
        print(f"{'WRONG' if faults else 'right'} {entry['name']}", *faults, sep="\n    " if faults else " ", flush=True)
        wrong += bool(faults)
        if not faults and entry["race"]:
            right.append((entry["name"], kernel, dtype))
    for size in RACES:
        for dtype in {dtype for _, _, dtype in right}:
            race(torch, [(name, kernel) for name, kernel, d in right if d == dtype], dtype, size, seconds)
    return int(wrong > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["build", "run"])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tool", default="build/src/core_emit")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=3)
    given = parser.parse_args()
    if given.step == "build":
        return build(given.directory, given.tool)
    return run(given.directory, given.only, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
