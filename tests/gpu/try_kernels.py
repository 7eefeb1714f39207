"""`tessera try` on a GPU: a right CUDA kernel passes all gates, and compute-sanitizer names what verification cannot see.

    python tests/gpu/try_kernels.py [--binary build/bin/tessera] [--unsandboxed]

Prints a line a check; exit code 1 when one fails."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/gpu")]

from judging import check, failed  # noqa: E402

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 1.5 + 0.25) * x


def get_inputs():
    return [torch.randn(1024, 1000)]
"""
SOURCE = """
#include "tessera/kernel.h"

__global__ void kernel(const float* x, float* y) {
  __shared__ volatile float s[256];
  const int at = blockIdx.x * 256 + threadIdx.x;
  float v = x[at];
  // here
  const float r = v * 1.5f + 0.25f;
  y[at] = (r > 0 || r != r ? r : 0) * v;
}
const char* tessera_last_error(void) { return ""; }
int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
const char* tessera_describe(void) {
  return "{\\"abi\\":1,\\"name\\":\\"k\\",\\"ints\\":[],\\"tensors\\":[\\"x\\",\\"y\\"],\\"arch\\":\\"sm_90a\\"}";
}
int tessera_run(const tessera_launch* l, void*, void* stream) {
  kernel<<<4000, 256, 0, (cudaStream_t)stream>>>((const float*)l->tensors[0], (float*)l->tensors[1]);
  return cudaGetLastError() != cudaSuccess;
}
"""
# What is written in the place of the comment, and what the finding says. Results are right with each.
KERNELS = {
    "right": ("", ""),
    "reads_beyond": (
        "const volatile float* p = x; (void)p[at + 1];",
        "memcheck: Invalid __global__ read of size 4 bytes",
    ),
    "races": (
        "s[threadIdx.x ^ 64] = v; const float other = s[threadIdx.x]; v = other == v + 1e30f ? other : v;",
        "racecheck: Race reported",
    ),
}


def judged(options, home: Path, name: str) -> str:
    edit, said = KERNELS[name]
    (home / f"{name}.cu").write_text(SOURCE.replace("// here", edit or "(void)s;"))
    words = ["try", "model.py", "p01", "--source", f"{name}.cu", "--device", "cuda", "--peers", "eager", "--json"]
    done = subprocess.run(
        [str(options.binary), *words, *(["--unsandboxed"] if options.unsandboxed else [])],
        env={**os.environ, "TESSERA_PYTHON": sys.executable, "TESSERA_HOME": str(home)},
        cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    v = json.loads(done.stdout)
    assert "gates" in v, v
    gates = {g["gate"]: f"{g['passage']} {g['note']} ({g['seconds']:.1f} s)".strip() for g in v["gates"]}
    if not said:
        assert v["passed"] and gates["sanitize"].startswith("passed"), (gates, v["cause"])
        return f"sanitize {gates['sanitize']}; {v['measured']['ms']:.4f} ms"
    assert v["failure"] == "invalid_access" and v["cause"].startswith(said), (gates, v["cause"])
    assert v["place"]["line"] == 8, v["place"]
    return f"line {v['place']['line']}: {v['cause']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=os.environ.get("TESSERA_BINARY", ROOT / "build/bin/tessera"))
    parser.add_argument("--unsandboxed", action="store_true")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="tessera-try-"))
    (home / "model.py").write_text(MODEL)
    for name in KERNELS:
        check(name, lambda name=name: judged(options, home, name))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
