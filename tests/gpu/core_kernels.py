"""Checks and times kernels lowered from the core (src/lower) on a Hopper GPU, beside torch.matmul (cuBLAS),
torch._scaled_mm and scaled_dot_product_attention (cuDNN).

    python tests/gpu/core_kernels.py emit DIR --tool BUILD/src/core_emit      # anywhere: sources into DIR
    python tests/gpu/core_kernels.py build DIR                                # where nvcc is: their libraries beside them
    python tests/gpu/core_kernels.py run DIR [--only WORD] [--seconds 2]      # on the GPU: builds what is not built yet

`run` holds every library against fp64 at sizes that are multiples of a tile and sizes that are not: the error is at most
1.3 times that of the peer, on a poisoned result amid margins that must stay as they are, twice with the same bits. Then each
is timed beside its peer in the same process, in turns: once with the L2 cache flushed before every call, once back to back
on changing operands. Exit code 1 when something is wrong.
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
from measured import cold_cache

MARGIN = 4096  # elements before and after each result
# (M, N, K): whole tiles, edges in every dimension, K below one tile of k, one tile, more tiles than multiprocessors.
GEMM_SIZES = [
    (256, 512, 256), (128, 256, 64), (8, 8, 16), (136, 264, 80), (1000, 1000, 1008), (72, 2056, 48), (2056, 72, 208),
    (4096, 4096, 512), (3000, 4104, 1040), (128, 8192, 16), (520, 520, 4112),
]  # fmt: skip
GEMM_16_BIT = [(8, 8, 8), (136, 264, 72), (1000, 1000, 1000)]
GEMM_RACES = [(4096, 4096, 4096), (8192, 8192, 8192)]
# (B, H, G, TQ, TK), TQ at most TK
ATTENTION_SIZES = [
    (1, 2, 1, 128, 128), (2, 4, 2, 200, 333), (1, 3, 3, 64, 1000), (1, 1, 1, 1, 77), (1, 2, 2, 1, 1), (2, 8, 2, 1000, 1000),
    (1, 2, 1, 129, 1409), (3, 24, 8, 520, 640),
]  # fmt: skip
ATTENTION_RACES = [(8, 16, 16, 2048, 2048), (4, 16, 16, 4096, 4096), (4, 16, 4, 4096, 4096)]


def emit(directory, tool):
    directory.mkdir(parents=True, exist_ok=True)
    return subprocess.run([tool, directory], check=False).returncode


def build(directory, only=""):
    failed = False
    for entry in json.loads((directory / "index.json").read_text()):
        source = directory / (entry["name"] + ".cu")
        library = source.with_suffix(".so")
        if only not in entry["name"] or (library.exists() and library.stat().st_mtime >= source.stat().st_mtime):
            continue
        begin = time.time()
        right, said = run_commands(entry["commands"], source, library)
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

    def prepared(self, torch, tensors, ints):
        """A call of the kernel on these tensors."""
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        values = (ctypes.c_int64 * len(ints))(*ints)
        launch = Launch(pointers, len(tensors), values, len(ints))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call(_keep=(pointers, values, tensors)):
            if self.library.tessera_run(ctypes.byref(launch), None, stream):
                raise RuntimeError(self.library.tessera_last_error().decode())

        return call


class Gemm:
    """C = A B^T of one dtype; of fp8 the result is bfloat16."""

    def __init__(self, torch, entry):
        self.torch = torch
        self.dtype = getattr(torch, entry["dtype"])
        self.fp8 = self.dtype.itemsize == 1
        self.out = torch.bfloat16 if self.fp8 else self.dtype
        self.sizes = GEMM_SIZES + ([] if self.fp8 else GEMM_16_BIT)
        self.races = GEMM_RACES
        self.group = str(self.dtype)[6:]

    def inputs(self, size):
        m, n, k = size
        return [self.torch.randn(rows, k, device="cuda").to(self.dtype) for rows in (m, n)]

    def shape(self, size):
        return size[:2]

    def ints(self, size):
        return size

    def flops(self, size):
        return 2.0 * size[0] * size[1] * size[2]

    def reference(self, inputs):
        a, b = inputs
        return a.double() @ b.double().T

    def peer(self, inputs, out=None):
        a, b = inputs
        if not self.fp8:
            return self.torch.matmul(a, b.T, out=out)
        one = self.torch.ones((), device="cuda")
        return self.torch._scaled_mm(a, b.T, one, one, out_dtype=self.out, use_fast_accum=True)

    def peer_call(self, inputs, out):
        a, b = inputs
        if not self.fp8:
            return lambda: self.torch.matmul(a, b.T, out=out)
        one = self.torch.ones((), device="cuda")
        return lambda: self.torch._scaled_mm(a, b.T, one, one, out_dtype=self.out, use_fast_accum=True)

    def peer_error(self, inputs, reference):
        # cuBLAS takes fp8 of certain sizes alone: where it does not, rounding the reference is the measure.
        try:
            return rms(self.peer(inputs), reference)
        except RuntimeError:
            return rms(reference.to(self.out), reference)


class Attention:
    """O = softmax(Q K^T / sqrt(D)) V; a causal mask ends at the last key."""

    def __init__(self, torch, entry):
        self.torch = torch
        self.dtype = self.out = getattr(torch, entry["dtype"])
        self.dim, self.causal = entry["facts"]["head_dim"], entry["facts"]["causal"]
        self.sizes, self.races = ATTENTION_SIZES, ATTENTION_RACES
        self.group = f"attention {self.dim} {'causal' if self.causal else 'full'}"

    def inputs(self, size):
        b, h, g, tq, tk = size
        shapes = (b, h, tq, self.dim), (b, g, tk, self.dim), (b, g, tk, self.dim)
        return [self.torch.randn(s, device="cuda").to(self.dtype) for s in shapes]

    def shape(self, size):
        return (size[0], size[1], size[3], self.dim)

    def ints(self, size):
        b, h, g, tq, tk = size
        return (tq, tk, h, g, b)

    def flops(self, size):
        b, h, _, tq, tk = size
        return 4.0 * b * h * tq * tk * self.dim / (2 if self.causal else 1)

    def written(self, inputs):
        """In the inputs' own precision."""
        q, k, v = inputs
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) / self.dim**0.5
        if self.causal:
            tq, tk = scores.shape[-2:]
            later = self.torch.ones(tq, tk, device="cuda", dtype=self.torch.bool).triu(tk - tq + 1)
            scores = scores.masked_fill(later, float("-inf"))
        return scores.softmax(-1) @ v

    def reference(self, inputs):
        return self.written([x.double() for x in inputs])

    def peer_error(self, inputs, reference):
        return rms(self.written(inputs), reference)

    def peer_call(self, inputs, _out):
        from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415

        q, k, v = inputs

        def call():
            with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
                self.torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=self.causal, enable_gqa=q.shape[1] != k.shape[1]
                )

        return call


def rms(x, reference):
    return float((x.double() - reference).norm() / reference.norm())


def check(torch, kernel, problem, size):
    """What is wrong with the kernel at this size; empty when nothing is."""
    inputs = problem.inputs(size)
    reference = problem.reference(inputs)
    budget = 1.3 * problem.peer_error(inputs, reference) + 1e-4
    count = reference.numel()
    bits = None
    for _ in range(2):
        held = torch.full((count + 2 * MARGIN,), float("nan"), device="cuda", dtype=problem.out)
        before = held.view(torch.int16).clone()
        result = held[MARGIN : MARGIN + count].view(problem.shape(size))
        kernel.prepared(torch, [*inputs, result], problem.ints(size))()
        torch.cuda.synchronize()
        found = rms(result, reference)
        if not found <= budget:
            bad = ((result.double() - reference).abs() > 0.05 * reference.abs().max()) | result.isnan()
            where = bad.nonzero()
            first = where[0].tolist() if len(where) else "nowhere alone"
            return f"error {found:.2e} above {budget:.2e}; {len(where)} elements far off, the first at {first}"
        after = held.view(torch.int16)
        if not (torch.equal(after[:MARGIN], before[:MARGIN]) and torch.equal(after[-MARGIN:], before[-MARGIN:])):
            return "wrote outside of its result"
        if bits is not None and not torch.equal(bits, result):
            return "other bits in the second run"
        bits = result.clone()
    return ""


def flushed_times(torch, calls, cache, turns):
    """Median ms of each call, in turns, the L2 `cache` (of measured.cold_cache) emptied before each."""
    events = [[] for _ in calls]
    for _ in range(turns):
        for call, found in zip(calls, events, strict=True):
            cache.empty()
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


def race(torch, entrants, size, seconds):
    """`entrants`: (name, kernel, problem), of problems that are alike."""
    problem = entrants[0][2]
    sets = [
        (problem.inputs(size), torch.empty(problem.shape(size), device="cuda", dtype=problem.out)) for _ in range(3)
    ]
    calls = [[problem.peer_call(inputs, out) for inputs, out in sets]]
    calls += [
        [kernel.prepared(torch, [*inputs, out], p.ints(size)) for inputs, out in sets] for _, kernel, p in entrants
    ]
    cache = cold_cache()
    try:
        calls[0][0]()
    except RuntimeError as e:
        print(f"{problem.group} {size}: no peer: {str(e).splitlines()[0]}")
        calls[0] = calls[1]
    until = time.time() + seconds
    while time.time() < until:
        for peer in calls:
            peer[0]()
        torch.cuda.synchronize()
    cold = flushed_times(torch, [peer[0] for peer in calls], cache, 30)
    warm = burst_times(torch, calls, 10, max(4, int(8e12 / problem.flops(size))))
    again = flushed_times(torch, [peer[1] for peer in calls], cache, 30)
    flops = problem.flops(size) / 1e9
    for i, name in enumerate(["peer", *(name for name, _, _ in entrants)]):
        ms, other, peer = min(cold[i], again[i]), warm[i], min(cold[0], again[0])
        print(
            f"{'x'.join(map(str, size)):19} {problem.group:20} {name:28} {ms:7.4f} ms {flops / ms:7.1f} TFLOP/s "
            f"{peer / ms:5.3f}x   back to back {other:7.4f} ms {flops / other:7.1f} TFLOP/s {warm[0] / other:5.3f}x",
            flush=True,
        )


def run(directory, only, seconds):
    import torch  # noqa: PLC0415: `build` runs where torch may be missing

    if build(directory, only):
        return 1
    torch.manual_seed(7)
    right, wrong = {}, 0
    for entry in json.loads((directory / "index.json").read_text()):
        if only not in entry["name"]:
            continue
        problem = {"gemm": Gemm, "attention": Attention}[entry["kind"]](torch, entry)
        kernel = Kernel(directory / (entry["name"] + ".so"))
        faults = []
        for size in problem.sizes:
            try:
                fault = check(torch, kernel, problem, size)
            except RuntimeError as e:
                fault = str(e).splitlines()[0]
            if fault:
                faults.append(f"{size}: {fault}")
        print(f"{'WRONG' if faults else 'right'} {entry['name']}", *faults, sep="\n    " if faults else " ", flush=True)
        wrong += bool(faults)
        if not faults and entry["race"]:
            right.setdefault(problem.group, []).append((entry["name"], kernel, problem))
    for entrants in right.values():
        for size in entrants[0][2].races:
            race(torch, entrants, size, seconds)
    return int(wrong > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["emit", "build", "run"])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tool", default="build/src/core_emit")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=2)
    given = parser.parse_args()
    if given.step == "emit":
        return emit(given.directory, given.tool)
    if given.step == "build":
        return build(given.directory, given.only)
    return run(given.directory, given.only, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
