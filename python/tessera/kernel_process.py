"""The process in which `tessera run` and `tessera bench` launch a kernel file: `python -m tessera.kernel_process`.

Answers `run` and `bench` with {"right", "text", "data"}; both take {"report": what `tessera build` says, "sizes", "seed"}.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch

from tessera.common import protocol
from tessera.common.errors import fail
from tessera.judging.meaning import is_plain_product, meaning
from tessera.judging.timing import CudaClock, median_ci95, under_load
from tessera.kernel_files import KernelFile
from tessera.running.interface import Parameter

DEVICE = "cuda"
ROUNDS = 30  # of calls on a flushed cache
# Beyond rounding the result: sums in float32; operands that wgmma takes as tf32, and sums of 8-bit products.
SLACK, SLACK_TF32_FP8 = 1e-4, 1.5e-3


class Prepared:
    """A kernel with tensors of the asked sizes."""

    def __init__(self, params: dict):
        if not torch.cuda.is_available():
            raise fail(
                "TS0713",
                "evaluate.no_device",
                "torch sees no CUDA device",
                helps=["`tessera doctor` says what is missing"],
            )
        self.kernel = KernelFile(params["report"], ())
        self.means: str = params["report"]["means"]
        interface = self.kernel._operators.interface
        self._check_sizes(params["sizes"])
        self.ints = interface.solve({}, params["sizes"])
        interface.check({}, self.ints)
        torch.manual_seed(params["seed"])
        self.tensors = {p.name: self._tensor(p, interface.made(p, self.ints)) for p in interface.tensors}
        free = self.kernel._operators.given_to_write
        self.named = {name: self.ints[name] for name in free}

    def _check_sizes(self, sizes: dict[str, int]) -> None:
        interface = self.kernel._operators.interface
        known = [i.name for i in interface.ints]
        wanted = {t.name for p in interface.tensors for t in p.extents} - {None}
        for name in [*(n for n in sizes if n not in known), *(n for n in known if n in wanted and n not in sizes)]:
            raise fail(
                "TS0039",
                "input.no_size",
                f"`{name}` is no size of the kernel `{self.kernel.name}`"
                if name in sizes
                else f"the size `{name}` is not given",
                expected=", ".join(known),
                found=", ".join(sizes) or "none",
                helps=["leave it out" if name in sizes else f"add --size {name}=NUMBER"],
            )

    def _tensor(self, p: Parameter, shape) -> torch.Tensor:
        t = torch.empty_strided(*shape, dtype=p.dtype, device=DEVICE)
        if p.output:
            return t.fill_(float("nan")) if p.dtype.is_floating_point else t
        drawn = (
            torch.randn(shape[0], device=DEVICE)
            if p.dtype.is_floating_point
            else torch.randint(-4, 5, shape[0], device=DEVICE)
        )
        return t.copy_(drawn)

    def launch(self) -> None:
        inputs = [self.tensors[n] for n in self.kernel.inputs]
        self.kernel(*inputs, out=tuple(self.tensors[n] for n in self.kernel.outputs), **self.named)

    def judged(self) -> tuple[bool, list[dict]]:
        """Each output beside its meaning: {"output", "error" (relative RMS), "budget", "largest", "at"}."""
        self.launch()
        torch.cuda.synchronize()
        exact = meaning(self.means, {n: self.tensors[n] for n in self.kernel.inputs})
        if not exact:
            raise fail(
                "TS0899", "kernel.no_reference", f"`{self.kernel.name}` does not say what it computes",
                expected="`means` of `@kernel`, or --means", found="neither",
                helps=["say it: --means 'C[i, j] = sum(A[i, k] * B[j, k], k)'"],
            )  # fmt: skip
        rows = [self._row(name, self.tensors[name], exact[name]) for name in self.kernel.outputs]
        return all(r["right"] for r in rows), rows

    def _row(self, name: str, found: torch.Tensor, exact: torch.Tensor) -> dict:
        narrow = any(
            self.tensors[n].dtype in (torch.float32, torch.float8_e4m3fn, torch.float8_e5m2) for n in self.kernel.inputs
        )
        size = exact.norm().clamp_min(1e-300)
        rounded = float((exact.to(found.dtype).double() - exact).norm() / size)
        difference = (found.double() - exact).abs().nan_to_num(nan=float("inf"))
        error, budget = float(difference.norm() / size), 1.5 * rounded + (SLACK_TF32_FP8 if narrow else SLACK)
        at = [int(i) for i in torch.unravel_index(difference.argmax(), difference.shape)]
        return {"output": name, "right": error <= budget, "error": error, "budget": budget, "at": at,
                "largest": float(difference.max()), "found": float(found[tuple(at)]), "exact": float(exact[tuple(at)])}  # fmt: skip


def run(params: dict) -> dict:
    """Once on random inputs, beside the meaning."""
    prepared = Prepared(params)
    right, rows = prepared.judged()
    text = f"{prepared.kernel.name}: {'right' if right else 'wrong'}: {prepared.means}\n" + "".join(map(_line, rows))
    return {
        "right": right,
        "text": text,
        "data": {"schema": "tessera.ran/1", "ints": prepared.ints, "right": right, "outputs": rows},
    }


def _line(row: dict) -> str:
    return (
        f"  {row['output']}: relative error {row['error']:.2e} (at most {row['budget']:.2e}); the largest {row['largest']:.3g} "
        f"at {row['at']}, where {row['found']:.6g} should be {row['exact']:.6g}\n"
    )


def bench(params: dict) -> dict:
    """Times in turns with torch.matmul, where the kernel means a product and no more."""
    prepared = Prepared(params)
    right, rows = prepared.judged()
    if not right:
        return {"right": False, "text": "wrong, not timed\n" + "".join(map(_line, rows)),
                "data": {"schema": "tessera.benched/1", "right": False, "outputs": rows, "times": []}}  # fmt: skip
    factors = is_plain_product(prepared.means)
    calls = {prepared.kernel.name: prepared.launch}
    flops = 0.0
    if factors is not None:
        a, b = (prepared.tensors[n] for n in factors)
        flops = 2.0 * prepared.tensors[prepared.kernel.outputs[0]].numel() * a.shape[-1]
        if a.dtype == b.dtype and a.dtype.itemsize in (2, 4, 8):
            torch.backends.cuda.matmul.allow_tf32 = True  # equal precision: wgmma takes float32 as tf32
            calls["torch.matmul"] = lambda: torch.matmul(a, b.mT)
    times = _times(calls)
    lines = [_time_line(t, times[-1], flops) for t in times]
    data = {
        "schema": "tessera.benched/1",
        "right": True,
        "ints": prepared.ints,
        "flops": flops,
        "outputs": rows,
        "times": times,
    }
    return {"right": True, "text": "".join(lines), "data": data}


def _times(calls: dict) -> list[dict]:
    clock = CudaClock(torch.device("cuda", torch.cuda.current_device()))
    subjects = []
    for name, call in calls.items():
        estimate, host = clock.warm(call)
        subjects.append(SimpleNamespace(name=name, call=call, estimate_ms=estimate, host_ms=host, samples=[]))
    for turn in range(ROUNDS):
        for s in subjects if turn % 2 else reversed(subjects):
            s.samples.append(clock.sample(s.call, s.host_ms))
    loaded = under_load(clock, subjects) or [None] * len(subjects)
    return [
        {"name": s.name, "ms": median_ci95(s.samples)[0], "ci95": median_ci95(s.samples)[1], "loaded_ms": ms}
        for s, ms in zip(subjects, loaded, strict=True)
    ]


def _time_line(t: dict, peer: dict, flops: float) -> str:
    def told(ms: float | None, of_peer: float | None) -> str:
        if ms is None:
            return "not measured: the host decides"
        rate = f" {flops / ms / 1e9:7.1f} TFLOP/s" if flops else ""
        beside = f" {of_peer / ms:5.3f}x" if of_peer and peer is not t else ""
        return f"{ms:.4f} ms{rate}{beside}"

    return (
        f"{t['name']:16} flushed {told(t['ms'], peer['ms'])}   back to back {told(t['loaded_ms'], peer['loaded_ms'])}\n"
    )


def main() -> None:
    protocol.over_stdio({"run": run, "bench": bench}).serve()


if __name__ == "__main__":
    main()
