"""Checks and times generated GEMM kernels beside torch (cuBLAS) on a Hopper GPU.

Two steps, because the generator needs the C++ build and the GPU machine only nvcc, torch and the CUTLASS headers:

    python tests/gpu/gemm_kernels.py generate DIR --tool BUILD/src/realize_tool     # anywhere
    python tests/gpu/gemm_kernels.py run DIR                                        # on the GPU machine

`build DIR` compiles only; `run` takes what is built.

`generate --sets gated,array` (SETS of gemm_problems.py) makes a part. `run` compiles every distinct source in parallel,
verifies each candidate against fp64 (outputs poisoned, zero-mean inputs; RMS relative error beside torch's own), sweeps the
launches, and prints a short table of the best for each problem.
"""

import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

from building import run_commands
from gemm_problems import SETS, problems_of
from measured import timed, write_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))


def generate(directory, tool, sets):
    directory.mkdir(parents=True, exist_ok=True)
    problems = problems_of(sets)
    subprocess.run([tool, directory, "sm_90a"], input=json.dumps(problems).encode(), check=True)
    index = json.loads((directory / "index.json").read_text())
    for entry in index:
        print(
            entry["problem"].get("name", entry["problem"]),
            len(entry["candidates"]),
            "candidates",
            entry["unsupported"] or "",
        )
    print(len({c["file"] for e in index for c in e["candidates"]}), "distinct sources")


def compile_one(directory, candidate):
    source = directory / candidate["file"]
    output = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "tessera_gemm_kernels" / (source.stem + ".so")
    output.parent.mkdir(parents=True, exist_ok=True)
    start = time.time()
    said = output.with_suffix(".log")
    if output.exists() and said.exists() and said.stat().st_mtime > source.stat().st_mtime:
        log, failure = said.read_text(), ""
    else:
        right, log = run_commands(candidate["commands"], source, output)
        failure = "" if right else log[-1500:]
        said.write_text(log) if right else None
    spills = any("spill stores" in line and " 0 bytes spill stores" not in line for line in log.splitlines())
    notes = ("SPILLS " if spills else "") + ("SERIALIZED" if "C7510" in log else "")
    return candidate["file"], None if failure else output, time.time() - start, notes, failure


class Launch(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("tensor_count", ctypes.c_int32),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("int_count", ctypes.c_int32),
    ]


class Kernel:
    """One built library with the integers of one launch."""

    def __init__(self, path, ints):
        self.library = ctypes.CDLL(str(path))
        self.library.tessera_workspace_size.restype = ctypes.c_int64
        self.library.tessera_last_error.restype = ctypes.c_char_p
        self.ints = (ctypes.c_int64 * len(ints))(*ints)

    def launch(self, tensors):
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        return Launch(pointers, len(tensors), self.ints, len(self.ints))

    def workspace_bytes(self, tensors):
        return self.library.tessera_workspace_size(ctypes.byref(self.launch(tensors)))

    def __call__(self, launch, workspace, stream):
        return self.library.tessera_run(ctypes.byref(launch), ctypes.c_void_p(workspace), ctypes.c_void_p(stream))

    def error(self):
        return self.library.tessera_last_error().decode()


def tensors_of(torch, p, seed):
    """Logical tensors in the pattern's order without the result, and the result's empty tensor."""
    torch.manual_seed(seed)
    dtype = getattr(torch, p.get("dtype", "bfloat16"))
    out_dtype = getattr(torch, p.get("out_dtype", p.get("dtype", "bfloat16")))
    heads = p.get("heads", 0)
    batch, m, n, k = p.get("batch", 1), p["m"], p["n"], p["k"]

    def random(*shape, dtype=dtype, scale=1.0):
        wide = torch.bfloat16 if dtype.itemsize == 1 else dtype
        return (torch.randn(shape, device="cuda", dtype=wide) * scale).to(dtype)

    def stored(rows, columns, columns_contiguous=True, batches=batch, scale=1.0, dtype=dtype):
        if heads:
            return random(batches // heads, rows, heads, columns, dtype=dtype, scale=scale).transpose(1, 2)
        shape = (batches, rows, columns) if columns_contiguous else (batches, columns, rows)
        x = random(*shape, dtype=dtype, scale=scale)
        return x if columns_contiguous else x.transpose(1, 2)

    a = stored(m, k, p.get("a_major", "k") == "k")
    bs = [
        stored(n, k, p.get("b_major", "k") == "k", 1 if p.get("shared_b") else batch, k**-0.5)
        for _ in range(2 if p.get("epilogue", "").startswith("gated_silu") else 1)
    ]
    epilogue, operands = p.get("epilogue", "none"), []
    row_major = p.get("d_major", "n") == "n"
    if epilogue.startswith("bias"):
        operands.append(random(1, 1, n, dtype=out_dtype))
    if epilogue == "column_scale":
        operands.append(random(1, m, 1, dtype=out_dtype))
    if epilogue == "scalar":
        operands.append(random(1, 1, 1, dtype=out_dtype))
    if epilogue == "scaled_rotary":
        operands.append(random(1, m, 1, dtype=torch.float32))
    if epilogue.endswith("rotary"):
        rows, width = p.get("positions", m), p["head_dim"]
        angles = torch.rand(1, rows, width, device="cuda") * 6.283
        operands += [angles.cos().to(out_dtype), angles.sin().to(out_dtype)]
    if epilogue.endswith("residual"):
        operands.append(stored(m, n, row_major, dtype=out_dtype))
    if epilogue == "two_residuals":
        operands += [stored(m, n, row_major, dtype=out_dtype) for _ in range(2)]
    results = [stored(m, n, row_major, dtype=out_dtype) for _ in range(2 if epilogue.endswith("_saved") else 1)]
    return [a, *bs, *operands], results


def product(torch, a, b):
    """a @ b^T. The peer must not pay for the batch dim that the description always has."""
    if a.dtype.itemsize == 1:
        one = torch.ones((), device="cuda")
        return torch._scaled_mm(a[0], b[0].mT, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)[None]
    return (a[0] @ b[0].mT)[None] if a.shape[0] == 1 and b.shape[0] == 1 else a @ b.mT


def rotated(torch, p, y, cos, sin):
    """The first columns of y in heads, each with its halves rotated; the others as they are."""
    width, (rows, columns) = p["head_dim"], (y.shape[1], p["rotated"])
    x = y[..., :columns].unflatten(-1, (-1, width))
    cos, sin = (t.repeat(1, -(-rows // t.shape[1]), 1)[:, :rows, None] for t in (cos, sin))
    first, second = x.chunk(2, dim=-1)
    turned = x * cos + torch.cat((-second, first), dim=-1) * sin
    return torch.cat((turned.flatten(2), y[..., columns:]), dim=-1)


def reference(torch, p, tensors):
    """The results that torch computes, in the dtype of the tensors: our peer, and in fp64 the truth."""
    epilogue = p.get("epilogue", "none")
    silu = torch.nn.functional.silu
    if epilogue.startswith("gated_silu"):
        a, b0, b1 = tensors
        gate = product(torch, a, b0)
        y = silu(gate) * product(torch, a, b1)
        return [y, gate] if epilogue.endswith("_saved") else [y]
    a, b, *xs = tensors
    y = product(torch, a, b)
    if epilogue.endswith("rotary"):
        if epilogue == "scaled_rotary":
            y = (y * xs[0]).to(y.dtype)
        return [rotated(torch, p, y + xs[0] if epilogue == "bias_rotary" else y, *xs[-2:])]
    if epilogue == "bias_silu_saved":
        return [silu(y + xs[0]), y + xs[0]]
    for x in xs if epilogue not in ("column_scale", "scalar") else []:
        y = y + x if epilogue != "bias_gelu" else torch.nn.functional.gelu(y + x, approximate="tanh")
    return [y * xs[0] if epilogue in ("column_scale", "scalar") else y]


def fast_peer(torch, p, tensors):
    """The peer that is timed: bias through addmm, as torch.nn.Linear does; of rotary the product alone."""
    epilogue = p.get("epilogue", "none")
    if epilogue.endswith("rotary"):
        return lambda: product(torch, *tensors[:2])
    if not epilogue.startswith("bias") or epilogue.endswith("_saved") or tensors[0].shape[0] != 1:
        return lambda: reference(torch, p, tensors)
    a, b, bias, *rest = tensors
    a, b, bias = a[0], b[0], bias[0, 0]

    def run():
        y = torch.nn.functional.linear(a, b, bias)
        if epilogue == "bias_gelu":
            y = torch.nn.functional.gelu(y, approximate="tanh")
        return y + rest[0][0] if rest else y

    return run


def sample(torch, p, tensors):
    """Tensors cut to some rows, so that fp64 of a large problem stays quick; the rows' numbers."""
    m = p["m"]
    if m * p["n"] * p["k"] * p.get("batch", 1) < 2**36 or p.get("heads"):
        return tensors, slice(None), slice(None)
    rows = torch.arange(0, m, max(1, m // 128), device="cuda")
    batches = torch.arange(0, p.get("batch", 1), max(1, p.get("batch", 1) // 4), device="cuda")

    def cut(x):
        x = x[batches] if x.shape[0] > 1 else x
        return x

    a, *rest = tensors
    count = 2 if p.get("epilogue", "").startswith("gated_silu") else 1
    rest = [cut(x) if i < count or x.shape[1] == 1 else cut(x)[:, rows] for i, x in enumerate(rest)]
    return [cut(a)[:, rows], *rest], batches if p.get("batch", 1) > 1 else slice(None), rows


def rms_error(torch, got, want):
    """Of the worst of the results."""
    errors = [((g.double() - w).square().mean() / w.square().mean()).sqrt().item() for g, w in zip(got, want)]
    return max(errors, key=lambda e: (e != e, e))  # NaN is the worst


def set_precision(torch, p):
    torch.backends.cuda.matmul.allow_tf32 = p.get("precision") == "tf32"


class Checked:
    """A problem's tensors and truth."""

    def __init__(self, torch, p):
        self.torch, self.p = torch, p
        self.workspace = torch.empty(256, dtype=torch.uint8, device="cuda")
        self.tensors, self.results = tensors_of(torch, p, 1)
        cut, self.batches, self.rows = sample(torch, p, self.tensors)
        self.want = reference(torch, p, [t.double() for t in cut])
        set_precision(torch, p)
        self.peer_error = rms_error(torch, self.cut(reference(torch, p, self.tensors)), self.want)

    def cut(self, results):
        results = [y if isinstance(self.batches, slice) else y[self.batches] for y in results]
        return [y if isinstance(self.rows, slice) else y[:, self.rows] for y in results]

    def limit(self):
        """Problems that are timed keep the bounds of the tables; checks have the evaluator's budget (docs/measuring.md),
        for cuBLAS leaves the tensor cores where extents are odd."""
        precision = self.p.get("precision", "bf16")
        if not self.p.get("check_only"):
            return {"tf32": 1.05, "fp32": 3.0, "fp8": 1.5}.get(precision, 1.05) * self.peer_error
        from tessera.judging import rounded, verify

        error = self.peer_error
        if rounded.has_own_cost(precision):
            with rounded.products():
                own = self.cut(reference(self.torch, self.p, self.tensors))
            error = max(error, rms_error(self.torch, own, self.want))
        return verify.budget(precision, self.results[0].dtype, {"rms": error, "max": error, "peak": 1.0})["rms"]

    def error_of(self, kernel):
        """RMS error of one run on a poisoned result; a text when it did not run."""
        torch = self.torch
        everything = [*self.tensors, *self.results]
        size = kernel.workspace_bytes(everything)
        if size < 0:
            return kernel.error()
        if self.workspace.numel() < size:  # one for all launches: the packed operands of fp32 take gigabytes
            self.workspace = torch.full((size,), 255, dtype=torch.uint8, device="cuda")
        for y in self.results:
            y.fill_(float("nan"))
        launch = kernel.launch(everything)
        stream = torch.cuda.current_stream().cuda_stream
        kernel.call = lambda: kernel(launch, self.workspace.data_ptr(), stream)
        if kernel.call():
            return kernel.error()
        torch.cuda.synchronize()
        return rms_error(torch, self.cut(self.results), self.want)


def check_and_time(torch, entry, built, flush, failures):
    p = entry["problem"]
    shown = {k: v for k, v in p.items() if k not in ("realizers", "limit", "check_only", "every_launch")}
    label = p.get("name") or "check " + json.dumps(shown)
    checked = Checked(torch, p)
    limit = checked.limit()
    kernels = []
    for candidate in entry["candidates"]:
        for at, launch in enumerate(candidate["launches"]):
            if candidate["file"] not in built or (p.get("check_only") and at > 0 and not p.get("every_launch")):
                continue
            kernel = Kernel(built[candidate["file"]], launch["ints"])
            error = checked.error_of(kernel)
            if isinstance(error, str):
                if at == 0:
                    failures.append(f"{label}: {candidate['label']}: {error}")
                continue
            if not error <= limit:
                failures.append(
                    f"{label}: {candidate['label']} {launch['knobs']}: rms {error:.3g}, torch {checked.peer_error:.3g}"
                )
                continue
            kernels.append((kernel, candidate, launch, error))
    if p.get("check_only"):
        print(f"{label[:110]:110s} {'ok' if kernels else 'FAILED'}")
        return None
    peer = fast_peer(torch, p, checked.tensors)
    coarse = timed(torch, [peer, *(k[0].call for k in kernels)], flush, 3)
    order = sorted(range(len(kernels)), key=lambda i: coarse[i + 1])
    best = {}  # the two best launches of a binary, the six best binaries
    for i in order:
        best.setdefault(kernels[i][1]["file"], []).append(i)
    chosen = [i for group in list(best.values())[:6] for i in group[:2]]
    for realizer in {kernels[i][1]["realizer"] for i in order}:  # the best of each, however slow
        first = next(i for i in order if kernels[i][1]["realizer"] == realizer)
        chosen += [] if first in chosen else [first]
    fine = timed(torch, [peer, *(kernels[i][0].call for i in chosen)], flush, 15)
    print(f"\n{label}: torch {fine[0]:.4f} ms, rms {checked.peer_error:.2e}; {len(kernels)} launches right")
    for ms, i in sorted(zip(fine[1:], chosen)):
        _, candidate, launch, error = kernels[i]
        print(
            f"  {ms:.4f} ms  {fine[0] / ms:.3f}x  rms {error:.2e}  predicted {candidate['predicted_ms']:.3f}  "
            f"{candidate['label']} {json.dumps(launch['knobs'])}"
        )
    return {
        "problem": label,
        "precision": p.get("precision", "bf16"),
        "torch_ms": round(fine[0], 5),
        "torch_rms": checked.peer_error,
        "kernels": [
            {
                "label": kernels[i][1]["label"],
                "knobs": kernels[i][2]["knobs"],
                "ms": round(ms, 5),
                "rms": kernels[i][3],
                "predicted_ms": kernels[i][1]["predicted_ms"],
            }
            for ms, i in sorted(zip(fine[1:], chosen))
        ],
    }


def build(directory, index):
    """Compiles every distinct source on all cores: the libraries by file, and what is to be said."""
    unique = {c["file"]: c for e in index for c in e["candidates"]}
    start, failures, built, slowest = time.time(), [], {}, 0.0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, path, seconds, notes, failure in pool.map(lambda c: compile_one(directory, c), unique.values()):
            slowest = max(slowest, seconds)
            if path:
                built[name] = path
            if notes or failure:
                failures.append(f"{unique[name]['label']} ({name}): {notes} {failure}")
    print(f"compiled {len(built)} of {len(unique)} in {time.time() - start:.0f} s, the slowest {slowest:.0f} s")
    return built, failures


def run(directory, only_build, results):
    import torch

    start = time.time()
    index = json.loads((directory / "index.json").read_text())
    built, failures = build(directory, index)
    if only_build:
        return 1 if failures else 0
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    rows = []
    for entry in sorted(index, key=lambda e: not e["problem"].get("check_only", False)):
        for realizer, reason in entry["unsupported"].items():
            failures.append(f"{entry['problem'].get('name')}: {realizer} unsupported: {reason}")
        try:
            row = check_and_time(torch, entry, built, flush, failures)
            rows += [row] if row else []
        except (RuntimeError, torch.cuda.OutOfMemoryError) as problem:
            failures.append(f"{entry['problem']}: {str(problem)[:300]}")
            break  # the context is gone after a fault in a kernel
        torch.cuda.empty_cache()
    print(f"\n{len(failures)} remarks, {time.time() - start:.0f} s in total")
    for text in failures:
        print(" -", text[:700])
    if results:
        how = "; the best launches of the six fastest binaries, and of each realizer"
        write_rows(torch, results, "gemm_kernels.py generate DIR --sets SETS; ... run DIR", how, {"rows": rows})
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["generate", "build", "run"])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tool", default=str(ROOT / "build/src/realize_tool"))
    everything = ["base", *SETS, "checks"]
    parser.add_argument("--sets", default=",".join(everything), help="a comma-separated part of the default")
    parser.add_argument("--results", type=pathlib.Path, help="where the rows of `run` go, as JSON")
    arguments = parser.parse_args()
    sets = arguments.sets.split(",")
    if unknown := set(sets) - set(everything):
        parser.error(f"no such set: {', '.join(sorted(unknown))}; there are {', '.join(everything)}")
    if arguments.step == "generate":
        return generate(arguments.directory, arguments.tool, sets)
    return run(arguments.directory, arguments.step == "build", arguments.results)


if __name__ == "__main__":
    sys.exit(main())
