"""The evaluator on a GPU: `python tests/gpu/evaluator.py FLAGS` from the repository root; about a minute. FLAGS is a file
with what `realize_tool flags ARCH` prints, made where the engine is built.

Builds small CUDA kernels with these flags, the toolchain's own, and checks that a right one passes and is timed, that each
fault is named, that a broken CUDA context ends the process with 75, and that the vendor attention backends pass.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests")]
from evaluator_client import Client, Died  # noqa: E402
from test_library import attention  # noqa: E402

N = 1 << 24
SOURCE = r"""
#include <cuda_runtime.h>
#include "tessera/kernel.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
__global__ void k(float* x, float* y, int64_t n) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    float v = x[i] + 1.0f;
    y[i] = v < 0.0f ? 0.0f : v;
  }
  FAULT;
}
EXPORT const char* tessera_describe(void) { return R"j({"abi":1,"name":"k","ints":["n"],"arch":"cuda"})j"; }
EXPORT int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
EXPORT const char* tessera_last_error(void) { return "the launch failed"; }
EXPORT int tessera_run(const tessera_launch* l, void*, void* stream) {
  k<<<1024, 256, 0, (cudaStream_t)stream>>>((float*)l->tensors[0], (float*)l->tensors[1], l->ints[0]);
  return cudaGetLastError() != cudaSuccess;
}
"""
FAULTS = {
    "right": "(void)0",
    "wrong": "if (threadIdx.x == 7 && blockIdx.x == 3) y[77] += 1.0f",
    "out_of_bounds": "if (threadIdx.x == 0) y[n + 5] = 1.0f",
    "incomplete": "__syncthreads(); if (blockIdx.x == 0) ((unsigned*)y)[threadIdx.x] = 0xFFFFFFFFu",
    "input_modified": "if (threadIdx.x == 0 && blockIdx.x == 0) x[9] = 3.0f",
    "illegal": "*(volatile int*)16 = 1",
}
GRAPH = {
    "schema": "tessera.graph/1",
    "name": "t",
    "device": "cuda:0",
    "precision": "fp32",
    "values": [
        {"name": n, "dtype": "float32", "shape": [N // 64, 64], "strides": [64, 1], "origin": o}
        for n, o in (("x", "user_input"), ("add", "node"), ("relu", "node"))
    ],
    "inputs": ["x"],
    "outputs": ["relu"],
    "nodes": [
        {
            "name": "add",
            "op": "aten.add.Tensor",
            "outputs": ["add"],
            "arguments": {"self": {"value": "x"}, "other": 1.0, "alpha": 1},
        },
        {"name": "relu", "op": "aten.relu.default", "outputs": ["relu"], "arguments": {"self": {"value": "add"}}},
    ],
}
PATTERN = {"id": "p", "rule": "pointwise", "nodes": ["add", "relu"], "inputs": ["x"], "outputs": ["relu"], "body": {}}


def build(folder: Path, name: str, flags: list[str]) -> dict:
    nvcc = os.environ.get("TESSERA_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    (folder / f"{name}.cu").write_text(SOURCE)
    subprocess.run(
        [
            nvcc,
            *flags,
            f"-DFAULT={FAULTS[name]}",
            f"-I{ROOT / 'include'}",
            "-o",
            str(folder / f"{name}.so"),
            str(folder / f"{name}.cu"),
        ],
        check=True,
    )
    return {"label": name, "library": str(folder / f"{name}.so"), "launch": {"ints": [N]}}


failures: list[str] = []


def check(what: str, good: bool, detail="") -> None:
    print(f"{'ok  ' if good else 'FAIL'} {what} {detail}", flush=True)
    if not good:
        failures.append(what)


def check_attention(client: Client) -> None:
    graph, pattern = attention("bfloat16")
    graph["device"] = "cuda:0"
    opened = {"graph": graph, "pattern": pattern, "device": "cuda:0", "precision": "bf16"}
    handle = client.call("open", opened, limit=120)["handle"]
    for backend in ("cudnn", "flash", "efficient", "math"):
        call = {"call": {"function": "sdpa", "arguments": {"backend": backend}}}
        reply = client.call("verify", {"handle": handle, "candidate": call, "level": "full"})
        check(f"sdpa {backend} passes or says why not", reply["ok"] or reply["kind"] == "unsupported", reply["reason"])


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: evaluator.py FLAGS (a file: realize_tool flags sm_90a > FLAGS)", file=sys.stderr)
        return 3
    flags = json.loads(Path(sys.argv[1]).read_text())
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(8) as pool:
        kernels = dict(zip(FAULTS, pool.map(lambda n: build(Path(place), n, flags), FAULTS), strict=True))
        client = Client()
        print(client.call("hello", limit=120))
        opened = {"graph": GRAPH, "pattern": PATTERN, "device": "cuda:0", "precision": "fp32"}
        handle = client.call("open", opened, limit=120)["handle"]
        reply = client.call("verify", {"handle": handle, "candidate": kernels["right"], "level": "full"})
        check("right kernel passes", reply["ok"], reply["reason"])
        for name, kind in (
            ("wrong", "wrong_result"),
            ("out_of_bounds", "out_of_bounds"),
            ("incomplete", "incomplete"),
            ("input_modified", "input_modified"),
        ):
            reply = client.call("verify", {"handle": handle, "candidate": kernels[name], "level": "quick"})
            check(f"{name} is named", not reply["ok"] and reply["kind"] == kind, reply["reason"])
        aten = {"label": "aten", "call": {"function": "aten"}}
        times = client.call("measure", {"handle": handle, "candidates": [kernels["right"], aten], "milliseconds": 50})
        ours, eager = times["times"]
        least = 2 * 4 * N / 4.8e9
        check(
            "timed",
            ours["ok"] and least < ours["ms"] < eager["ms"],
            f"{ours['ms']:.4f} ms +- {ours['ci95']:.4f}, eager {eager['ms']:.4f} ms, bytes alone {least:.4f} ms",
        )
        floor = client.call(
            "measure",
            {"handle": handle, "candidates": [kernels["right"]], "anchor": False, "milliseconds": 5, "floor_ms": 100.0},
        )["times"][0]
        check("impossible times are thrown out", floor["kind"] == "below_floor", floor["reason"])
        check_attention(client)
        try:
            client.call("verify", {"handle": handle, "candidate": kernels["illegal"]})
            check("a broken context is reported", False)
        except Died as died:
            check("a broken context ends the process with 75", died.code == 75, died)
        except Exception as error:  # the error is answered first, then the process goes
            code = client._process.wait(timeout=60)
            check("a broken context is answered, then the process exits with 75", code == 75, str(error)[:100])
        client.close()
    print("failed: " + ", ".join(failures) if failures else "all passed")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
