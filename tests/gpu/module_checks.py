"""The checks of a module on a GPU: what they cost on a Llama block, what they find, and what they do where memory is short.

    python tests/gpu/module_checks.py [--device cpu]

Needs no core: the traced graph stands for the rewritten one. Prints a line a check; exit code 1 when one fails. On a CPU the
block is small, and memory is never short.
"""

from __future__ import annotations

import copy
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples")]

import torch  # noqa: E402
from llama_block import LlamaBlock, Sizes  # noqa: E402
from tessera.judging.kernel_check import check_kernels  # noqa: E402
from tessera.judging.module_check import verify_module  # noqa: E402
from tessera.judging.rewrite_check import check_rewrites  # noqa: E402
from tessera.tracing.held import Held, hold  # noqa: E402

LIMITS = {"rewrites": 1.5, "kernels": 1.5, "module": 5.0}  # seconds of the second run, 1 x 2048 on an H200


def block(device: str) -> Held:
    torch.manual_seed(0)
    sizes = Sizes() if device == "cuda" else Sizes(hidden=256, mlp=512, heads=4, kv_heads=2, sequence=64)
    x = torch.randn(1, sizes.sequence, sizes.hidden, device=device)
    return hold(LlamaBlock(sizes).to(device).eval(), (x,), {}, "bf16")


def plan_of(graph: dict) -> dict:
    """Each linear as a call of the library: a place to check, with the shapes of a product."""
    values = {v["name"]: v for v in graph["values"]}
    steps = []
    for n in graph["nodes"]:
        if not n["op"].startswith("aten.linear"):
            steps.append({"kind": "aten", "node": n["name"]})
            continue
        names = [n["arguments"][a]["value"] for a in ("input", "weight")]
        out = values[n["outputs"][0]]
        k, columns = values[names[0]]["shape"][-1], out["shape"][-1]
        rows = out["shape"][0] * out["shape"][1]
        body = {
            "batch": 1,
            "a": {"tensor": 0, "shape": [1, rows, k], "strides": [rows * k, k, 1]},
            "b": {"tensor": 1, "shape": [1, columns, k], "strides": [columns * k, k, 1]},
            "operands": [],
            "outputs": [{"tensor": 2, "shape": [1, rows, columns], "strides": [rows * columns, columns, 1]}],
        }
        steps.append(
            {
                "kind": "call",
                "pattern": {"id": f"p{len(steps)}", "rule": "gemm", "nodes": [n["name"]], "body": body},
                "inputs": names,
                "outputs": [{"value": out["name"], **{key: out[key] for key in ("dtype", "shape", "strides")}}],
                "candidate": {"label": "cuBLAS", "kind": "library", "call": {"function": "linear", "arguments": {}}},
            }
        )
    return {"schema": "tessera.plan/1", "graph": graph, "precision": "bf16", "steps": steps, "leftover": []}


def keys_not_rotated(graph: dict) -> dict:
    graph = copy.deepcopy(graph)
    producer = {v: n for n in graph["nodes"] for v in n["outputs"]}
    attention = next(n for n in graph["nodes"] if "scaled_dot_product_attention" in n["op"])["arguments"]
    name = attention["key"]["value"]
    while not producer[name]["op"].startswith("aten.add"):
        name = next(iter(producer[name]["arguments"].values()))["value"]
    attention["key"] = producer[producer[name]["arguments"]["self"]["value"]]["arguments"]["self"]
    return graph


class Report:
    failed = False

    def line(self, name: str, right: bool, text: str) -> None:
        self.failed |= not right
        print(f"{'ok    ' if right else 'FAILED'} {name:28} {text}", flush=True)


def timed(call):
    """The second call's answer and seconds: the first loads torch's kernels."""
    call()
    begin = time.perf_counter()
    return call(), time.perf_counter() - begin


def costs(report: Report, held: Held, on_gpu: bool) -> None:
    plan = plan_of(held.graph)
    before = torch.cuda.memory_allocated() if on_gpu else 0
    r, s = timed(lambda: check_rewrites(held, held.graph))
    right = r["ok"] is True and r["form"] == "fp64" and s < LIMITS["rewrites"]
    report.line("rewrites", right, f"{s:.3f} s, rms {r['rms_error']:.2g} {r['reason']}")
    r, s = timed(lambda: check_kernels(held, plan))
    rows = r["kernels"]
    share = max(k.get("share_of_budget", 0.0) for k in rows)
    right = all(k["ok"] is True for k in rows) and len(rows) == 7 and s < LIMITS["kernels"]
    report.line("kernels in place", right, f"{s:.3f} s for {len(rows)}, at most {share:.2f} of the budget")
    r, s = timed(lambda: verify_module(held, plan))
    right = r["ok"] and r["form"] == "fp64" and s < LIMITS["module"]
    report.line("module", right, f"{s:.3f} s {r['reason']}")
    kept = torch.cuda.memory_allocated() - before if on_gpu else 0
    # cuBLAS keeps a workspace of 32 MiB from its first product on.
    report.line("memory is given back", kept <= 33 << 20, f"{kept} bytes kept")


def finds(report: Report, held: Held) -> None:
    r = check_rewrites(held, keys_not_rotated(held.graph))
    report.line("keys not rotated", r["ok"] is False, r["reason"])


def little_memory(report: Report, held: Held) -> None:
    torch.cuda.empty_cache()
    for left in (1 << 30, 256 << 20):
        free, _ = torch.cuda.mem_get_info()
        full = torch.empty(max(0, free - left), dtype=torch.uint8, device="cuda")
        name = f"{left >> 20} MiB free"
        try:
            r = check_rewrites(held, held.graph)
            said = r["form"] == "fp64" or bool(r["reason"])
            report.line(f"rewrites, {name}", r["ok"] is not False and said, f"{r['form']}: {r['reason'][:90]}")
            r = verify_module(held, plan_of(held.graph))
            forms = sorted({k["form"] for k in r["kernels"]})
            report.line(f"module, {name}", r["ok"], f"{r.get('form')}, kernels {forms}: {r['reason'][:90]}")
        except torch.OutOfMemoryError as e:  # the module itself does not run in so little
            report.line(name, left < 1 << 30, str(e).splitlines()[0][:90])
        del full
        torch.cuda.empty_cache()


def main() -> int:
    on_gpu = "cpu" not in sys.argv[1:]
    report, held = Report(), block("cuda" if on_gpu else "cpu")
    costs(report, held, on_gpu)
    finds(report, held)
    if on_gpu:
        little_memory(report, held)
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main())
