"""Helpers for the evaluator's tests: kernels in C++ built on the spot, and a client for the real process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
M, N, K = 32, 16, 64

GRAPH = {
    "schema": "tessera.graph/1",
    "name": "test",
    "device": "cpu",
    "precision": "fp32",
    "values": [
        {"name": "x", "dtype": "float32", "shape": [M, K], "strides": [K, 1], "origin": "user_input"},
        {"name": "w", "dtype": "float32", "shape": [N, K], "strides": [K, 1], "origin": "parameter", "target": "w"},
        {"name": "linear", "dtype": "float32", "shape": [M, N], "strides": [N, 1], "origin": "node"},
        {"name": "relu", "dtype": "float32", "shape": [M, N], "strides": [N, 1], "origin": "node"},
    ],
    "inputs": ["x", "w"],
    "nodes": [
        {
            "name": "linear",
            "op": "aten.linear.default",
            "outputs": ["linear"],
            "arguments": {"input": {"value": "x"}, "weight": {"value": "w"}, "bias": None},
        },
        {"name": "relu", "op": "aten.relu.default", "outputs": ["relu"], "arguments": {"self": {"value": "linear"}}},
    ],
    "outputs": ["relu"],
}
PATTERN = {
    "id": "p01",
    "rule": "gemm",
    "nodes": ["linear", "relu"],
    "inputs": ["x", "w"],
    "outputs": ["relu"],
    "signature": "test",
    "body": {},
    "roles": {"fan_in": K},
}

# D = relu(X W^T), 32 x 16 x 64, with places for a fault.
TEMPLATE = r"""
#include <cmath>
#include <cstdlib>
#include <unistd.h>
#include "tessera/kernel.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT const char* tessera_describe(void) { return R"({"abi":1,"name":"t","ints":["m","n","k"],"arch":"host"})"; }
EXPORT int64_t tessera_workspace_size(const tessera_launch*) { return 64; }
EXPORT const char* tessera_last_error(void) { return "it said no"; }
EXPORT int tessera_run(const tessera_launch* l, void* workspace, void*) {
  float* x = (float*)l->tensors[0];
  const float* w = (const float*)l->tensors[1];
  float* d = (float*)l->tensors[2];
  const int64_t M = l->ints[0], N = l->ints[1], K = l->ints[2];
  (void)workspace;
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n) {
      float s = 0;
      for (int64_t k = 0; k < K; ++k) s += x[m * K + k] * w[n * K + k];
      d[m * N + n] = s < 0 ? 0 : s;
    }
  @FAULT@
  return 0;
}
"""
FAULTS = {
    "right": "",
    "wrong": "d[37] += 0.01f;",
    "crashes": "*(volatile int*)0 = 1;",
    "hangs": "for (;;) sleep(1);",
    "out_of_bounds": "d[M * N + 3] = 1.0f;",
    "before_bounds": "d[-1] = 1.0f;",
    "beside_input": "x[M * K] = 1.0f;",
    "incomplete": "for (int i = 100; i < 104; ++i) ((unsigned*)d)[i] = 0xFFFFFFFFu;",
    "modifies_input": "x[5] = x[5] + 1.0f;",
    "swallows_nan": "for (int i = 0; i < M * N; ++i) if (!std::isfinite(d[i])) d[i] = 0;",
    "refuses": "return 1;",
    "exits": "_exit(3);",
    # Right at first, then lazy: what a kernel that caches by pointer would do.
    "lazy": "static int runs = 0; if (++runs > 6) for (int i = 0; i < M * N; ++i) d[i] = 1;",
}


def build_kernel(folder: Path, fault: str) -> Path:
    library = folder / f"{fault}.so"
    if not library.exists():
        source = folder / f"{fault}.cpp"
        source.write_text(TEMPLATE.replace("@FAULT@", FAULTS[fault]))
        subprocess.run(
            ["g++", "-O1", "-shared", "-fPIC", "-w", "-I", str(ROOT / "include"), "-o", str(library), str(source)],
            check=True,
        )
    return library


def candidate(library: Path) -> dict:
    return {
        "label": library.stem,
        "realizer": "test",
        "kind": "synthesized",
        "library": str(library),
        "launch": {"ints": [M, N, K], "knobs": {}},
    }


class Died(Exception):
    """The process ended; `.code` as subprocess says it (a negative signal)."""

    def __init__(self, code: int):
        super().__init__(f"exit {code}")
        self.code = code


class Hung(Exception):
    pass


class Refused(Exception):
    def __init__(self, diagnostic: dict):
        super().__init__(diagnostic["message"])
        self.diagnostic = diagnostic


class Client:
    def __init__(self) -> None:
        path = os.pathsep.join(p for p in (str(ROOT / "python"), os.environ.get("PYTHONPATH", "")) if p)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tessera.evaluator_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._id = 0

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def call(self, method: str, params: dict | None = None, limit: float = 60) -> dict:
        self._id += 1
        self._process.stdin.write(
            json.dumps({"id": self._id, "method": method, "params": params or {}}).encode() + b"\n"
        )
        self._process.stdin.flush()
        try:
            reply = self._lines.get(timeout=limit)
        except queue.Empty:
            raise Hung from None
        if reply is None:
            raise Died(self._process.wait())
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["result"]

    def open(self, pattern: dict = PATTERN, graph: dict = GRAPH, precision: str = "fp32") -> int:
        return self.call("open", {"graph": graph, "pattern": pattern, "device": "cpu", "precision": precision})[
            "handle"
        ]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
