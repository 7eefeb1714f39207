"""Traces every problem file of some folders without computing anything and says what became of it.

    python tools/sweep_problems.py KernelBench/level1 KernelBench/level2 [--arch sm_90a] [--json OUT] [--only 31,83]

Files follow the KernelBench interface (Model, get_inputs, get_init_inputs) and are traced at their own sizes with fake
inputs, so that a problem of 8 GB takes no memory. For each: does it import into the engine, which ops are opaque to it (they
stay in PyTorch), what was found, and what is left with its reason. The exit status is 1 when one failed. Low priority, one
thread. rules_tool is taken from the newest build folder, or from TESSERA_RULES_TOOL.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from tessera.common.errors import Error  # noqa: E402
from tessera.tracing import loading, tracer  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402


def tool() -> str:
    given = os.environ.get("TESSERA_RULES_TOOL")
    found = [given] if given else sorted(ROOT.glob("build*/src/rules/tools/rules_tool"), key=os.path.getmtime)
    if not found:
        sys.exit("rules_tool is not built: ninja -C build rules_tool")
    return str(found[-1])


def number(path: Path) -> tuple:
    digits = re.match(r"\d+", path.name)
    return path.parent.name, int(digits.group()) if digits else 0, path.name


def fake_graph(path: Path) -> dict:
    source = loading._import(str(path))
    cls = loading._pick(source, str(path), None)
    init_args, init_kwargs = loading._init_inputs(source, cls, str(path))
    module = cls(*init_args, **init_kwargs)
    with FakeTensorMode(allow_non_fake_inputs=True):
        args, kwargs = loading._inputs(source, cls, str(path))
    return tracer.trace_module(module, tuple(args), kwargs).graph


def discovery(graph: dict, arch: str) -> dict:
    done = subprocess.run([tool(), "json", arch], input=json.dumps(graph), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"rules_tool exits with {done.returncode}")
    return json.loads(done.stdout)


def sweep(path: Path, arch: str) -> dict:
    started = time.monotonic()
    row = {"problem": f"{path.parent.name}/{path.stem}"}
    try:
        graph = fake_graph(path)
        found = discovery(graph, arch)
    except Error as e:
        row["failed"] = f"{e.diagnostic['code']}: {e.diagnostic['message']}"
    except Exception as e:  # noqa: BLE001 - a sweep goes on
        row["failed"] = f"{type(e).__name__}: {e}"
    else:
        row["nodes"] = len(graph["nodes"])
        row["patterns"] = dict(collections.Counter(p["rule"] for p in found["patterns"]))
        row["left"] = [f"{u['op'].split('.')[1]}: {u['reason']}" for u in found["uncovered"]]
        row["opaque"] = sorted({u["op"] for u in found["uncovered"] if u["kind"] == "opaque"})
    row["seconds"] = round(time.monotonic() - started, 1)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="numbers of problems, with commas")
    given = parser.parse_args()
    os.nice(10)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    only = {int(n) for n in given.only.split(",") if n}
    rows = []
    for path in sorted((p for f in given.folders for p in f.glob("*.py")), key=number):
        if only and number(path)[1] not in only:
            continue
        row = sweep(path, given.arch)
        rows.append(row)
        print(
            f"{row['problem']:<58} {row['seconds']:>6} s  "
            + (f"FAILED {row['failed'][:300]}" if "failed" in row else f"{row['nodes']:>4} nodes  {row['patterns']}"),
            *(f"\n    opaque {op}" for op in row.get("opaque", ())),
            flush=True,
        )
    reasons = collections.Counter(text for row in rows for text in row.get("left", ()))
    print("\nleft to PyTorch, most frequent first:")
    for text, count in reasons.most_common(60):
        print(f"{count:>6}  {text}")
    failed = [row["problem"] for row in rows if "failed" in row]
    opaque = sorted({op for row in rows for op in row.get("opaque", ())})
    print(
        f"\n{len(rows) - len(failed)} of {len(rows)} import; failed: {failed or 'none'}; opaque ops: {opaque or 'none'}"
    )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
