"""The composed module on a GPU: operators of the extension, side streams, CUDA graphs, compiled leftovers.

    python tests/gpu/composed.py

Builds its own kernels with nvcc (seconds), needs no core. Prints a line a check; exit code 1 when one fails.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

import torch  # noqa: E402
from composing import Mlp, plan_of_trace  # noqa: E402
from tessera.judging import module_check, module_times  # noqa: E402
from tessera.running import extension  # noqa: E402
from tessera.running.compose import ComposedModule  # noqa: E402
from tessera.tracing.held import hold  # noqa: E402
from test_never_silently_wrong import Two, merged_plan  # noqa: E402

SOURCE = r"""
#include <cuda_runtime.h>
#include <cstdint>
#include "tessera/kernel.h"
// The test's linear: y[m,n] = gelu(x[m,k] * wt[k,n] + b[n]), or + r[m,n]. Goes through the workspace, to test it.
__global__ void product(const float* x, const float* w, float* acc, int64_t m, int64_t n, int64_t k) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= m * n) return;
  float s = 0;
  for (int64_t p = 0; p < k; ++p) s += x[i / n * k + p] * w[p * n + i % n];
  acc[i] = s;
}
__global__ void finish(const float* acc, const float* b, const float* r, float* y, int64_t m, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= m * n) return;
  const float v = acc[i] + b[i % n];
  y[i] = r ? v + r[i] : 0.5f * v * (1 + erff(v * 0.70710678f));
}
extern "C" const char* tessera_describe(void) {
  return "{\"abi\":1,\"name\":\"linear\",\"ints\":[\"m\",\"n\",\"k\"],\"tensors\":[],\"arch\":\"cuda\"}";
}
extern "C" int64_t tessera_workspace_size(const tessera_launch* l) { return l->ints[0] * l->ints[1] * 4; }
static thread_local const char* error = "";
extern "C" const char* tessera_last_error(void) { return error; }
extern "C" int tessera_run(const tessera_launch* l, void* workspace, void* stream) {
  const int64_t m = l->ints[0], n = l->ints[1], k = l->ints[2];
  auto t = [&](int i) { return static_cast<float*>(l->tensors[i]); };
  auto s = static_cast<cudaStream_t>(stream);
  auto acc = static_cast<float*>(workspace);
  const int blocks = int((m * n + 255) / 256);
  product<<<blocks, 256, 0, s>>>(t(0), t(1), acc, m, n, k);
  finish<<<blocks, 256, 0, s>>>(acc, t(2), l->tensor_count == 5 ? t(3) : nullptr, t(l->tensor_count - 1), m, n);
  const cudaError_t e = cudaGetLastError();
  error = cudaGetErrorString(e);
  return e == cudaSuccess ? 0 : 1;
}
"""


def compile_kernel(folder: Path) -> str:
    (folder / "linear.cu").write_text(SOURCE)
    out = folder / "linear.so"
    major, minor = torch.cuda.get_device_capability()
    subprocess.run(
        ["nvcc", "-O2", "-shared", "-Xcompiler", "-fPIC", f"-arch=sm_{major}{minor}",
         f"-I{ROOT / 'include'}", str(folder / "linear.cu"), "-o", str(out)],
        check=True,
    )  # fmt: skip
    return str(out)


failed: list[str] = []


def check(name: str, function) -> None:
    try:
        note = function()
        print(f"ok    {name}{': ' + note if note else ''}", flush=True)
    except Exception as e:  # noqa: BLE001 - every check is to be seen
        failed.append(name)
        print(f"FAIL  {name}: {type(e).__name__}: {e}", flush=True)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


class Case:
    def __init__(self, folder: Path):
        torch.manual_seed(0)
        self.module = Mlp(256, 512).eval().cuda()
        self.held = hold(self.module, (torch.randn(512, 256, device="cuda"),), {})
        self.plan = plan_of_trace(self.held.traced, compile_kernel(folder))
        self.reference = copy.deepcopy(self.module)
        self.composed = self.held.compose(self.plan, "eager")

    def x(self) -> torch.Tensor:
        return torch.randn(512, 256, device="cuda")

    def runs(self) -> str:
        x = self.x()
        close(self.composed(x), self.reference(x))
        status = self.composed.status()
        assert status["served"] == status["calls"] and len(status["active"]) == 2, status
        assert status["launch"]["kind"] == "stable-abi", status["launch"]
        return status["launch"]["kind"]

    def streams(self) -> None:
        """Calls on four streams at once; what is freed on one must not be reused on another too early."""
        streams = [torch.cuda.Stream() for _ in range(4)]
        for _ in range(20):
            xs = [self.x() for _ in streams]
            torch.cuda.synchronize()
            results = []
            for s, x in zip(streams, xs):
                with torch.cuda.stream(s):
                    results.append(self.composed(x))
            torch.cuda.synchronize()
            for x, y in zip(xs, results):
                close(y, self.reference(x))

    def graph(self) -> str:
        x = self.x()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.composed(x)
        torch.cuda.current_stream().wait_stream(side)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = self.composed(x)
        for _ in range(5):
            x.copy_(self.x())
            y.fill_(float("nan"))
            g.replay()
            torch.cuda.synchronize()
            close(y, self.reference(x))
        return f"replay {self.time(g.replay):.1f} us, call {self.time(lambda: self.composed(x)):.1f} us"

    def time(self, call, n: int = 200) -> float:
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / n * 1e6

    def compiled(self, mode: str) -> None:
        f = torch.compile(self.composed, fullgraph=True, mode=mode)
        for _ in range(4):
            x = self.x()
            close(f(x).clone(), self.reference(x))

    def inductor(self) -> None:
        c = self.held.compose(self.plan, "inductor")
        for _ in range(3):
            x = self.x()
            close(c(x), self.reference(x))
        assert c.status()["served"] == 3

    def changed(self) -> None:
        """Packed transposes of the weights: computed in the call, or kept under `frozen` and packed again."""
        frozen = self.held.compose(self.plan, "eager", frozen=True)
        for write in (lambda m: m.fc1.weight.mul_(1.5), lambda m: m.fc1.weight.data.mul_(1.5)):
            write(self.module), write(self.reference)
            x = self.x()
            close(self.composed(x), self.reference(x))
        with torch.no_grad():
            self.module.fc2.weight.mul_(1.5), self.reference.fc2.weight.mul_(1.5)
        close(frozen(x), self.reference(x))
        assert frozen.status()["repacks"] == 1 and self.composed.status()["repacks"] == 0

    def unseen_writes(self) -> None:
        """Merged weights in a captured CUDA graph: what load_state_dict and `.data` write is what a replay reads."""
        torch.manual_seed(0)
        m = Two().eval().cuda()
        plan = merged_plan()
        plan["graph"]["device"] = "cuda"
        composed, reference = ComposedModule(m, plan), copy.deepcopy(m)
        x = torch.randn(3, 8, device="cuda")
        composed(x)
        torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = composed(x)
        for step in range(3):
            state = {k: v * 2 + 1 for k, v in reference.state_dict().items()}
            m.load_state_dict(state), reference.load_state_dict(state)
            for each in (m, reference):
                each.a.weight.data.mul_(0.5)
                each.b.weight.data += step
            if step == 1:
                composed(x)
            y.fill_(float("nan"))
            g.replay()
            torch.cuda.synchronize()
            close(y, reference(x))
            close(composed(x), reference(x))
        assert not composed.status()["repacks"] and not composed.status()["fallbacks"]

    def two_devices(self) -> str:
        """Threads on two GPUs run the same kernels at once; with one GPU, two threads on it."""
        devices = [torch.device("cuda", i % torch.cuda.device_count()) for i in range(2)]
        modules = [copy.deepcopy(self.module).to(d) for d in devices]
        references = [copy.deepcopy(m) for m in modules]
        plans = [{**self.plan, "graph": {**self.plan["graph"], "device": str(d)}} for d in devices]
        composed = [ComposedModule(m, p) for m, p in zip(modules, plans)]
        errors = []

        def work(i: int) -> None:
            try:
                with torch.no_grad():
                    for _ in range(50):
                        x = torch.randn(512, 256, device=devices[i])
                        close(composed[i](x), references[i](x))
            except BaseException as e:  # noqa: BLE001
                errors.append(e)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        [t.start() for t in threads], [t.join() for t in threads]
        if errors:
            raise errors[0]
        return f"{torch.cuda.device_count()} GPUs"

    def other_device(self) -> None:
        before = self.composed.status()["served"]
        self.composed.cpu()
        x = self.x().cpu()
        close(self.composed(x), self.reference.cpu()(x))
        assert self.composed.status()["served"] == before
        self.composed.cuda(), self.reference.cuda()
        x = self.x()
        close(self.composed(x), self.reference(x))
        assert self.composed.status()["served"] == before + 1

    def verified(self) -> str:
        r = module_check.verify_module(self.held, self.plan)
        assert r["ok"], r["reason"]
        return f"rms error {r['rms_error']:.2g}, eager {r['baseline_rms_error']:.2g}"

    def measured(self) -> str:
        r = module_times.measure_module(self.held, self.plan, ["eager", "inductor", "tensorrt"], seconds=1.0)
        absent = "; ".join(f"{k}: {v}" for k, v in r["absent"].items())
        return ", ".join(f"{k} {t['ms'] * 1e3:.1f} us" for k, t in r["times"].items()) + f" ({absent})"

    def overhead(self) -> str:
        """Host time of one operator call, without waiting for the device."""
        use = self.composed._built.patterns[0]
        tensors = [t.empty("cuda").normal_() for t in use.operator.spec.inputs]
        out = []
        for kind in ("stable-abi", "python"):
            op = extension.operator(use.operator.spec, kind).op
            for _ in range(50):
                op(*tensors)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(300):
                op(*tensors)
            out.append(f"{kind} {(time.perf_counter() - begin) / 300 * 1e6:.1f} us")
            torch.cuda.synchronize()
        return ", ".join(out)


def main() -> int:
    warnings.simplefilter("ignore")
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        case = Case(Path(folder))
        check("runs the kernels", case.runs)
        check("side streams", case.streams)
        check("CUDA graph", case.graph)
        check("torch.compile, no graph break", lambda: case.compiled("default"))
        check("torch.compile, CUDA graphs", lambda: case.compiled("reduce-overhead"))
        check("leftovers by Inductor", case.inductor)
        check("changed parameters", case.changed)
        check("writes that no counter sees, in a CUDA graph", case.unseen_writes)
        check("two threads, two GPUs", case.two_devices)
        check("moved to the CPU and back", case.other_device)
        check("verified end to end", case.verified)
        check("measured beside peers", case.measured)
        check("host time of a call", case.overhead)
    print(f"{len(failed)} failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
