"""tessera.kernel on a machine without a GPU: what is built, traced and refused. tests/gpu/kernel_files.py launches."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from pathlib import Path

import pytest
import tessera
import torch
from core import BINARY, ROOT
from torch import func
from torch.autograd import forward_ad

GEMM = f"{ROOT}/kernels/gemm.py"
SMALL = {"BM": 64, "BN": 64, "BK": 16, "STAGES": 2}

pytestmark = pytest.mark.skipif(
    not (os.environ.get("TESSERA_NVCC") or shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()),
    reason="no nvcc on this machine",
)


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESSERA_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("TESSERA_BINARY", str(BINARY))
        yield


@pytest.fixture
def gemm():
    return tessera.kernel(f"{GEMM}:gemm", **SMALL)


def inputs(device="cpu"):
    return [torch.zeros(n, 32, dtype=torch.bfloat16, device=device) for n in (72, 96)]


def code_of(call, *arguments, **named) -> str:
    with pytest.raises(tessera.Error) as e:
        call(*arguments, **named)
    return e.value.diagnostic["code"]


def test_a_kernel_is_built_once_for_its_text_and_constants(gemm, tmp_path):
    assert tessera.kernel(f"{GEMM}:gemm", **SMALL) is gemm
    assert (gemm.inputs, gemm.outputs, gemm.report["verdict"]) == (("A", "B"), ("C",), "proved")
    half = tessera.kernel(GEMM, **SMALL, ELEMENT=torch.float16)
    assert half is not gemm and half.report["interface"]["tensors"][0]["dtype"] == "float16"
    copied = tmp_path / "gemm.py"
    copied.write_text(Path(GEMM).read_text())
    before = tessera.kernel(copied, **SMALL)
    copied.write_text(Path(GEMM).read_text().replace("STAGES: const = 4", "STAGES: const = 3"))
    assert tessera.kernel(copied, **SMALL) is not before


def test_calls_that_are_wrong_are_refused(gemm):
    a, b = inputs()
    assert code_of(gemm, a) == "TS0891"
    assert code_of(gemm, a, b, b) == "TS0891"
    assert code_of(gemm, a, b, M=72) == "TS0891"
    assert code_of(gemm, a, B=3) == "TS0891"
    assert code_of(gemm, a, b, out=(a, b)) == "TS0891"
    assert code_of(gemm, a[0], b) == "TS0892"
    assert code_of(gemm, a.float(), b) == "TS0892"
    assert code_of(gemm, a, b) == "TS0892"
    assert code_of(gemm, B=b, A=a, out=torch.zeros(72, 96, dtype=torch.bfloat16)) == "TS0892"
    assert code_of(gemm, a.requires_grad_(), b) == "TS0897"


def test_derivatives_by_transforms_are_refused(gemm):
    """PyTorch would make zeros of them: an operator sees what the tensors of a transform stand for."""
    a, b = inputs()
    with torch.no_grad(), forward_ad.dual_level():
        assert code_of(gemm, forward_ad.make_dual(a, a), b) == "TS0897"
        c = torch.zeros(72, 96, dtype=torch.bfloat16)
        assert code_of(gemm, a, b, out=forward_ad.make_dual(c, c)) == "TS0897"
    assert code_of(func.jvp, lambda x: gemm(x, b), (a,), (a,)) == "TS0897"
    assert code_of(func.grad(lambda x: gemm(x, b).sum()), a) == "TS0897"
    assert code_of(func.vmap(func.grad(lambda x: gemm(x, b).sum())), a[None]) == "TS0897"
    assert code_of(func.grad(lambda x: func.vmap(gemm, (0, None))(x[None], b).sum()), a) == "TS0897"
    # What is not differentiated gets as far as the check of devices.
    assert code_of(func.grad(lambda x: gemm(x.detach(), b).sum()), a) == "TS0892"
    assert code_of(func.grad(lambda x: gemm(a, b).sum() * x.sum()), a) == "TS0892"


def test_files_and_constants_that_are_wrong_are_refused(tmp_path):
    assert code_of(tessera.kernel, "none.py") == "TS0036"
    assert code_of(tessera.kernel, GEMM, BM=100) == "TS0831"
    assert code_of(tessera.kernel, GEMM, BX=1) == "TS0836"
    assert code_of(tessera.kernel, GEMM, BM=[64]) == "TS0038"
    assert code_of(tessera.kernel, f"{ROOT}/kernels/rows.py:rms_norm") == "TS0890"
    wrong = tmp_path / "wrong.py"
    lines = Path(GEMM).read_text().splitlines()
    wrong.write_text("\n".join(line for line in lines if line.strip() != "full[k].wait()"))
    assert code_of(tessera.kernel, wrong, unproved=True, **SMALL) == "TS0870"


def test_a_meaning_is_given_and_what_has_none_is_taken_on_demand():
    relu = tessera.kernel(GEMM, **SMALL, epilogue="relu", means="C[i, j] = relu(sum(A[i, k] * B[j, k], k))")
    assert relu.report["verdict"] == "proved"
    scaled = tessera.kernel(f"{ROOT}/kernels/rows.py:scaled_sum", SCALE=0.25)
    assert (scaled.inputs, scaled.outputs, scaled.report["verdict"]) == (("X", "Y"), ("Z",), "proved")
    norm = tessera.kernel(f"{ROOT}/kernels/rows.py:rms_norm", unproved=True)
    assert (norm.inputs, norm.outputs, norm.report["verdict"]) == (("X", "W"), ("Y",), "unknown")


def test_it_is_traced(gemm):
    class Twice(torch.nn.Module):
        def forward(self, a, b):
            return torch.relu(gemm(a, B=b)), gemm(b, a)

    a, b = inputs()
    rows = torch.export.Dim("rows", min=8)
    exported = torch.export.export(Twice(), (a, b), dynamic_shapes=({0: rows}, None))
    calls = [str(n.target) for n in exported.graph.nodes if "tessera_kernels" in str(n.target)]
    assert len(calls) == 2
    first, second = [n.meta["val"] for n in exported.graph.nodes if n.op == "output" for n in n.args[0]]
    assert first.shape[1] == 96 and second.shape[0] == 96 and second.dtype == torch.bfloat16
    assert str(first.shape[0]) == str(second.shape[1])
    torch._dynamo.reset()
    assert code_of(torch.compile(Twice(), fullgraph=True, backend="aot_eager"), a, b) == "TS0892"  # at the call itself


def test_outputs_that_are_given_are_traced(gemm):
    def call(a, b, c):
        gemm(a, b, out=c)
        return c + 1

    a, b = inputs()
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    assert code_of(compiled, a, b, torch.zeros(72, 96, dtype=torch.bfloat16)) == "TS0892"


def test_copies_are_the_kernel(gemm):
    assert copy.deepcopy(gemm) is gemm
    assert pickle.loads(pickle.dumps(gemm)) is gemm
