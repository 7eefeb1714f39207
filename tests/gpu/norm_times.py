"""Layer norms, RMS norms and softmax by themselves on a GPU, beside eager and Inductor: whole modules, each in a CUDA graph of
many calls, so that the host does not count. Errors are relative root mean squares against fp64.

    python tests/gpu/norm_times.py [--out bench/results/norms.json] [--only WORD] [--seconds 10]

A search runs for each; exit code 1 where no kernel was placed or one is wrong.
"""

from __future__ import annotations

import argparse
import copy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

import rows as table  # noqa: E402
import tessera  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

SHAPES = (
    (32768, 4096, torch.bfloat16),
    (8192, 1024, torch.bfloat16),
    (8192, 768, torch.float32),
    (2048, 16384, torch.float32),
    (128, 131072, torch.float32),
    (64, 4096, torch.float32),
    (1, 4096, torch.bfloat16),
)
MAKES = {"layer_norm": nn.LayerNorm, "rms_norm": nn.RMSNorm, "softmax": lambda width: nn.Softmax(-1)}
ROUNDS = 15
TIMES_OF_EAGER = 3.0  # the error that a kernel may have, of eager's


def graph_of(call, inputs: list[torch.Tensor]) -> tuple[torch.cuda.CUDAGraph, int]:
    """One call of each input, recorded."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for x in inputs[:3]:
            call(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for x in inputs:
            call(x)
    return graph, len(inputs)


def times(ways: dict, inputs: list[torch.Tensor]) -> dict[str, float]:
    """Microseconds a call, the median of rounds in which each way has its turn."""
    graphs = {name: graph_of(way, inputs) for name, way in ways.items()}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (graph, calls) in graphs.items():
            graph.replay()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(5):
                graph.replay()
            end.record()
            torch.cuda.synchronize()
            found[name].append(begin.elapsed_time(end) * 1e3 / (5 * calls))
    return {name: sorted(of)[ROUNDS // 2] for name, of in found.items()}


@torch.no_grad()
def measure(name: str, rows: int, columns: int, dtype: torch.dtype, seconds: float) -> dict:
    torch.manual_seed(0)
    torch.compiler.reset()  # Inductor is to compile each; after eight forms of one function Dynamo gives up
    module = MAKES[name](columns).cuda().to(dtype)
    draw = lambda: torch.randn(rows, columns, device="cuda").to(dtype)  # noqa: E731
    x = draw()
    ours = tessera.optimize(
        module, (x,), seconds=seconds, place_all=True, only="synthesized", resizes=False, progress=False
    )
    # Large inputs do not lie in the L2 cache when their turn comes; those of a megabyte and less do.
    sets = [x] + [draw() for _ in range(7 if x.numel() * x.element_size() > 2**20 else 31)]
    want = copy.deepcopy(module).double()(x.double())
    errors = {
        way: float((call(x).double() - want).norm() / want.norm()) for way, call in (("ours", ours), ("eager", module))
    }
    us = times({"ours": ours, "eager": module, "inductor": torch.compile(module)}, sets)
    return {
        "case": f"{name}-{rows}x{columns}",
        "precision": str(dtype).removeprefix("torch."),
        "us": us,
        "ratio": min(us["eager"], us["inductor"]) / us["ours"],
        "rms_error": errors,
        "kernels": len(ours.status()["active"]),
        "search_seconds": seconds,
        **table.about(torch.cuda.get_device_name(), ours.report, torch.__version__),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "norms.json")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    wrong = 0
    for name in MAKES:
        for rows, columns, dtype in SHAPES:
            if args.only not in f"{name}-{rows}x{columns}":
                continue
            row = measure(name, rows, columns, dtype, args.seconds)
            good = row["kernels"] > 0 and row["rms_error"]["ours"] <= TIMES_OF_EAGER * row["rms_error"]["eager"]
            wrong += not good
            us = "  ".join(f"{way} {of:8.2f}" for way, of in row["us"].items())
            print(
                f"{'ok   ' if good else 'WRONG'} {row['case']:24} {row['precision']:9} {us}  {row['ratio']:.3f}",
                flush=True,
            )
            table.replace(args.out, [row], lambda r: (r["case"], r["precision"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
