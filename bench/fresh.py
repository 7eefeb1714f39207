"""Optimizes one case in a process of its own and writes what came of it:

    python bench/fresh.py OUT '{"suite": "blocks", "case": ..., "precision": ..., "optimize": {...}}'

OUT holds {"seconds_to_optimize", "seconds_to_first_result", "built", "plan", "report"}: seconds from the call of
tessera.optimize with the module on the device, imports not counted; `built`: what compilers made meanwhile.
`run` starts such a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

bench = Path(__file__).resolve().parent
sys.path[:0] = [str(bench.parent / "python"), str(bench)]


class Failed(Exception):
    """The module could not be optimized there, or the process died."""


def run(request: dict, environment: dict[str, str]) -> dict:
    """Under `environment`, until it is done."""
    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as folder:
        out = Path(folder) / "fresh.json"
        command = [sys.executable, str(bench / "fresh.py"), str(out), json.dumps(request)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(done.stdout, flush=True)
        if not out.exists():
            tail = done.stdout.strip().splitlines()[-1:]
            raise Failed(": ".join([f"its process ended with code {done.returncode}", *tail]))
        answer = json.loads(out.read_text())
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer


def optimized(request: dict) -> dict:
    import device as devices
    import homes
    import suites
    import tessera
    import torch

    device = devices.default()
    suite = suites.load(request["suite"])
    module, inputs = suite.build(request["case"], request["precision"], device)
    sync = devices.sync_of(device)
    sync()
    before = homes.built()
    begin = time.monotonic()
    fast = tessera.optimize(module, inputs, **request["optimize"])
    callable_after = time.monotonic() - begin
    with torch.no_grad():
        fast(*inputs)
    sync()
    return {
        "seconds_to_optimize": callable_after,
        "seconds_to_first_result": time.monotonic() - begin,
        "built": sorted(Path(p).name for p in homes.built() - before),
        "plan": fast.plan,
        "report": fast.report,
    }


def main() -> int:
    out, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    try:
        answer = optimized(request)
    except Exception as e:
        import beside

        traceback.print_exc()
        answer = {"failed": beside.first_line(e)}
    out.write_text(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
