"""Checks and times generated GEMM kernels beside torch (cuBLAS) on a Hopper GPU.

Two steps, because the generator needs the C++ build and the GPU machine only nvcc, torch and the CUTLASS headers:

    python tests/gpu/gemm_kernels.py generate DIR --tool BUILD/src/realize_tool     # anywhere
    python tests/gpu/gemm_kernels.py run DIR                                        # on the GPU machine

`build DIR` compiles only; `run` takes what is built.

`generate --sets gated,array` (SETS of gemm_problems.py) makes a part. `run` compiles every distinct source in parallel,
verifies each candidate against fp64 (outputs poisoned, zero-mean inputs, or positive ones where a problem says so; RMS
relative error beside torch's own), sweeps the launches, and prints a short table of the best for each problem.
"""

import argparse
import ctypes
import json
import pathlib
import subprocess
import sys
import time

from building import build
from gemm_problems import SETS, problems_of
from gemm_truth import fast_peer, reference, sample, tensors_of
from measured import cold_cache, timed, write_rows

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
        if not (self.p.get("check_only") or self.p.get("positive")):
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


def check_and_time(torch, entry, built, cache, failures):
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
    coarse = timed(torch, [peer, *(k[0].call for k in kernels)], cache, 3)
    order = sorted(range(len(kernels)), key=lambda i: coarse[i + 1])
    best = {}  # the two best launches of a binary, the six best binaries
    for i in order:
        best.setdefault(kernels[i][1]["file"], []).append(i)
    chosen = [i for group in list(best.values())[:6] for i in group[:2]]
    for realizer in {kernels[i][1]["realizer"] for i in order}:  # the best of each, however slow
        first = next(i for i in order if kernels[i][1]["realizer"] == realizer)
        chosen += [] if first in chosen else [first]
    fine = timed(torch, [peer, *(kernels[i][0].call for i in chosen)], cache, 15)
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


def run(directory, only_build, results):
    import torch

    start = time.time()
    index = json.loads((directory / "index.json").read_text())
    built, failures = build(directory, index)
    if only_build:
        return 1 if failures else 0
    cache = cold_cache()
    rows = []
    for entry in sorted(index, key=lambda e: not e["problem"].get("check_only", False)):
        for realizer, reason in entry["unsupported"].items():
            failures.append(f"{entry['problem'].get('name')}: {realizer} unsupported: {reason}")
        try:
            row = check_and_time(torch, entry, built, cache, failures)
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
