#!/usr/bin/env python3
"""Kernel files called from Python on a Hopper GPU: `PYTHONPATH=python TESSERA_BINARY=... python tests/gpu/kernel_files.py`.

Kernels of kernels/gemm.py and kernels/rows.py with several constants and epilogues against fp64, at sizes that are multiples of a
tile and sizes that are not; through torch.compile, a CUDA graph and streams; calls that are refused. Prints ok or FAILED for each,
exit code 1 where one failed. About half a minute, most of it nvcc's and Inductor's.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/e2e")]
os.environ.setdefault("TESSERA_PYTHON", sys.executable)
os.environ.setdefault("TESSERA_HOME", tempfile.mkdtemp(prefix="tessera-kernel-files-"))

import pages  # noqa: E402
import tessera  # noqa: E402
import torch  # noqa: E402
from tessera import api  # noqa: E402

GEMM = f"{ROOT}/kernels/gemm.py"
EPILOGUES = """

def bias_relu(x, batch, m, n, BIAS: Tensor[f32, 1, "N"]):
    return relu(x + load(BIAS[part(0, 1), n], like=x))


def residual(x, batch, m, n, R_STRIDE: index(multiple=8), R: Tensor[ELEMENT, "M", "N", strides("R_STRIDE", 1)]):
    return x * 0.5 + load(R[m, n], like=x)
"""
SUM = "sum(A[i, k] * B[j, k], k)"
ORDERS = {"A_ORDER": 1, "B_ORDER": 1, "C_ORDER": 1}
BATCHED = {"BATCHES": 1, "A_BATCHES": 1, "B_BATCHES": 1}
LOOSE = {"M_MULTIPLE": 1, "N_MULTIPLE": 1, "K_MULTIPLE": 1, "C_MULTIPLE": 1, "DIRECT": 1, "A_ORDER": 1, "B_ORDER": 1}


def own_file(folder: Path) -> str:
    """kernels/gemm.py with epilogues that read tensors of their own."""
    file = folder / "own_gemm.py"
    file.write_text(Path(GEMM).read_text() + EPILOGUES)
    return f"{file}:gemm"


def kernels(folder: Path) -> dict[str, tessera.kernel_files.KernelFile]:
    """All that the checks call, built side by side."""
    own = own_file(folder)
    asked = {
        "plain": (f"{GEMM}:gemm", {}),
        "narrow": (GEMM, {"BN": 128, "STAGES": 6, "ELEMENT": torch.float16}),
        "cluster": (GEMM, {"BN": 128, "CLUSTER": 2}),
        "strided": (GEMM, ORDERS),
        "columns": (GEMM, {"A_ORDER": 2, "B_ORDER": 2, "BN": 128}),
        "batched": (GEMM, BATCHED),
        "loose": (GEMM, {**LOOSE, "BN": 128}),
        "float": (GEMM, {"RESULT": torch.float32, "DIRECT": 1, "PART": 32}),
        "relu": (GEMM, {"epilogue": "relu", "means": f"C[i, j] = relu({SUM})"}),
        "bias": (own, {"epilogue": "bias_relu", "means": f"C[i, j] = relu({SUM} + BIAS[0, j])"}),
        "residual": (own, {"epilogue": "residual", "DIRECT": 1, "means": f"C[i, j] = {SUM} * 0.5 + R[i, j]"}),
        "scaled_sum": (f"{ROOT}/kernels/rows.py:scaled_sum", {"SCALE": 0.25}),
    }
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = {name: pool.submit(tessera.kernel, file, **words) for name, (file, words) in asked.items()}
    return {name: f.result() for name, f in futures.items()}


def randn(*shape, dtype=torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def close(found: torch.Tensor, reference: torch.Tensor) -> None:
    """As near to fp64 as rounding the reference once, and float32 sums, leave it."""
    torch.cuda.synchronize()
    error = float((found.double() - reference).norm() / reference.norm())
    rounded = float((reference.to(found.dtype).double() - reference).norm() / reference.norm())
    assert error <= 1.3 * rounded + 1e-5, f"error {error:.2e}, rounding alone {rounded:.2e}"


def refused(code: str, call, *arguments, **named) -> None:
    try:
        call(*arguments, **named)
    except tessera.Error as e:
        assert e.diagnostic["code"] == code, e
        return
    raise AssertionError(f"was not refused: {code}")


def check_sizes(k) -> None:
    for m, n, k_ in [(128, 256, 64), (8, 8, 8), (136, 264, 72), (1000, 1000, 1000), (4096, 2048, 512), (72, 4104, 16)]:
        for name, dtype in (("plain", torch.bfloat16), ("narrow", torch.float16), ("cluster", torch.bfloat16)):
            a, b = randn(m, k_, dtype=dtype), randn(n, k_, dtype=dtype)
            close(k[name](a, b), a.double() @ b.double().T)


def check_result_types_and_epilogues(k) -> None:
    a, b, bias, r = randn(200, 136), randn(328, 136), torch.randn(1, 328, device="cuda"), randn(200, 400)[:, :328]
    exact = a.double() @ b.double().T
    close(k["float"](a, b), exact)
    close(k["relu"](a, b), exact.relu())
    close(k["bias"](a, b, bias), (exact + bias.double()).relu())
    close(k["residual"](A=a, B=b, R=r), exact * 0.5 + r.double())


def check_strides(k) -> None:
    a, b, c = randn(200, 256)[:, 8:144], randn(328, 200)[:, :136], randn(200, 512)[:, 64:392]
    exact = a.double() @ b.double().T
    close(k["strided"](a, b), exact)
    rest = c._base.clone()
    assert k["strided"](a, b, out=c) is c
    close(c, exact)
    c.zero_(), rest[:, 64:392].zero_()
    assert torch.equal(c._base, rest), "wrote beside its output"
    at, bt = randn(136, 200), randn(136, 328)
    close(k["columns"](at.T, bt.T), at.double().T @ bt.double())


def check_batches_and_odd_sizes(k) -> None:
    a, b = randn(5, 72, 136), randn(5, 264, 136)
    close(k["batched"](a, b), a.double() @ b.double().mT)
    for m, n, k_ in [(1, 1, 1), (67, 71, 133), (129, 257, 65), (1023, 513, 7)]:
        a, b = (randn(rows, -(-k_ // 8) * 8)[:, :k_] for rows in (m, n))
        close(k["loose"](a, b), a.double() @ b.double().T)


def check_rows(k) -> None:
    x, y = (randn(77, 516, dtype=torch.float32) for _ in range(2))
    close(k["scaled_sum"](x, y), x.double() + 0.25 * y.double())


def check_compile(k) -> None:
    gemm, relu = k["plain"], k["relu"]

    def block(a, b):
        return gemm(relu(a * 2, b), b.T.contiguous()) + 1

    def into(a, b, c):
        gemm(a, b, out=c)
        return c * 2

    a, b = randn(256, 128), randn(128, 128)
    compiled = torch.compile(block, fullgraph=True)
    h = ((a * 2).double() @ b.double().T).relu().to(torch.bfloat16)
    expected = (h.double() @ b.double()).to(torch.bfloat16) + 1
    assert float((compiled(a, b) - expected).abs().max()) <= 0.02 * float(expected.abs().max())
    assert torch.equal(compiled(a, b), compiled(a, b))
    c = randn(256, 128)
    assert torch.equal(torch.compile(into, fullgraph=True)(a, b, c), gemm(a, b) * 2)


def check_graph(k) -> None:
    gemm = k["cluster"]
    a, b, c = randn(520, 256), randn(264, 256), torch.empty(520, 264, device="cuda", dtype=torch.bfloat16)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        gemm(a, b, out=c)
    torch.cuda.current_stream().wait_stream(side)
    close(c, a.double() @ b.double().T)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, out=c)
        d = gemm(a, b)
    for _ in range(3):
        a.copy_(randn(520, 256))
        c.zero_(), d.zero_()
        graph.replay()
        close(c, a.double() @ b.double().T)
        assert torch.equal(c, d)


def check_first_call_in_a_graph(k) -> None:
    """Nothing of this kernel has been loaded before the capture."""
    gemm = tessera.kernel(GEMM, BN=64, STAGES=3)
    a, b = randn(128, 64), randn(64, 64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = gemm(a, b)
    graph.replay()
    close(c, a.double() @ b.double().T)


def check_refusals(k) -> None:
    gemm = k["plain"]
    a, b = randn(128, 64), randn(256, 64)
    refused("TS0891", gemm, a)
    refused("TS0892", gemm, a.cpu(), b)
    refused("TS0892", gemm, a, b.cpu())
    refused("TS0892", gemm, a.half(), b)
    refused("TS0893", gemm, a, b[:, :32].contiguous())
    refused("TS0893", gemm, a, randn(64, 256).T)
    refused("TS0894", gemm, a[:100], b)
    refused("TS0895", gemm, torch.empty(128 * 64 + 1, device="cuda", dtype=torch.bfloat16)[1:].view(128, 64), b)
    whole = torch.empty(128 * 256 + 128 * 64, device="cuda", dtype=torch.bfloat16)
    refused("TS0895", gemm, whole[: 128 * 64].view(128, 64), b, out=whole[: 128 * 256].view(128, 256))
    refused("TS0897", gemm, a.clone().requires_grad_(), b)
    refused("TS0894", k["strided"], a, torch.randn(1, 64, device="cuda").bfloat16().expand(256, 64))
    close(gemm(a, b), a.double() @ b.double().T)


def check_page(k) -> None:
    """The block of docs/language.md, from the root of the tree as its paths say."""
    (block,) = [b for b in pages.blocks_of(ROOT, "docs/language.md") if b.run_by]
    names = {"a": randn(128, 64, dtype=torch.float16), "b": randn(256, 64, dtype=torch.float16)}
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        exec(block.text, names)
    finally:
        os.chdir(before)
    close(names["c"], names["a"].double() @ names["b"].double().T)
    a, b = names["a"].bfloat16(), names["b"].bfloat16()
    close(names["relu"](a, b), (a.double() @ b.double().T).relu())


def check_commands(k) -> None:
    sizes = ["--size", "M=1024", "--size", "N=1032", "--size", "K=512", "--json", "--quiet"]
    for command in ("run", "bench"):
        done = subprocess.run([api.find_binary(), command, GEMM, *sizes], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        data = json.loads(done.stdout)
        assert data["right"] and data["outputs"][0]["error"] <= data["outputs"][0]["budget"]
    gemm, matmul = data["times"]
    assert (gemm["name"], matmul["name"]) == ("gemm", "torch.matmul") and gemm["ms"] < 10 * matmul["ms"]
    wrong = ["--means", "C[i, j] = sum(A[i, k] * B[j, k], k) * 2", "--unproved"]
    done = subprocess.run([api.find_binary(), "run", GEMM, *sizes, *wrong], check=False, capture_output=True, text=True)
    assert done.returncode == 1, "a wrong meaning is refuted before it is launched"


def main() -> int:
    torch.manual_seed(7)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        built = kernels(Path(folder))
        print(f"ok      {len(built)} kernels are built", flush=True)
        for check in [v for name, v in globals().items() if name.startswith("check_")]:
            try:
                check(built)
                print(f"ok      {check.__name__}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {check.__name__}\n{traceback.format_exc()}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
