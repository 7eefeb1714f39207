"""The fuzzer: random programs beside eager PyTorch.

    python tests/fuzz/fuzz.py --programs 20000 --seed 0             traced, rewritten, run op by op; no compiler
    python tests/fuzz/fuzz.py --programs 20000 --jobs 16            the same in 16 processes
    python tests/fuzz/fuzz.py --programs 100 --kernels              with kernels placed on `host`
    python tests/fuzz/fuzz.py --programs 100 --kernels --device cuda     on the GPU
    python tests/fuzz/fuzz.py --programs 500 --behind               behind torch.compile
    python tests/fuzz/fuzz.py --seeds                               the programs that failed once, and those that still do (tests/fuzz/seeds/)
    python tests/fuzz/fuzz.py --script tests/fuzz/seeds/failed.jsonl:3      one of them as a script that runs by itself

What fails is made small and printed as a script; `--keep FILE` appends it to a file of seeds. Exit code 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parent)]
if "--kernels" not in sys.argv:
    os.environ.setdefault("TESSERA_EXTENSION", "python")  # nothing is compiled

import road  # noqa: E402
from campaign import Campaign, Found  # noqa: E402
from kept import kept  # noqa: E402
from program import Program  # noqa: E402
from scripts import script  # noqa: E402
from tally import Tally  # noqa: E402
from trial import staged  # noqa: E402

_PART = 240  # programs of one process, one after another


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument(
        "--device", default="cpu", help="where the programs run; --kernels: what kernels are placed for"
    )
    parser.add_argument("--behind", action="store_true", help="behind torch.compile, one by one")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the programs")
    parser.add_argument("--shrink", type=float, default=45.0, help="seconds a failure is made smaller for")
    parser.add_argument("--keep", help="a file that failing programs are appended to")
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--script", help="FILE:LINE of a kept program")
    return parser.parse_args()


def _again() -> int:
    """Those that are mended, and those that are not yet."""
    rows = [*kept(), *kept("open.jsonl")]
    wrong = 0
    for row in rows:
        if failure := staged(Program(**row["program"])):
            wrong += 1
            print(f"{row['why']}\n{failure}\n")
    print(f"{wrong} of {len(rows)} kept programs fail")
    return wrong


def _part(o: argparse.Namespace, first: int, count: int, minutes: float) -> tuple[Tally, list[Found], list[str]]:
    torch.set_num_threads(1)
    torch.set_default_device(o.device)
    if o.kernels:
        from placing import KernelCampaign as Kind
    elif o.behind:
        from behind import BehindCampaign as Kind
    else:
        Kind = Campaign
    campaign = Kind(first, count, minutes, shrink_seconds=o.shrink)
    return campaign.run(), campaign.found, []


def _shared(o: argparse.Namespace) -> tuple[Tally, list[Found], list[str]]:
    """In `jobs` processes; the third are the parts whose process ended, by a signal say."""
    tally, found, lost = Tally(), [], []
    end = time.monotonic() + 60 * o.minutes if o.minutes else None
    starts = range(o.seed, o.seed + o.programs, _PART)
    with ThreadPoolExecutor(o.jobs) as threads:
        parts = {first: threads.submit(_apart, o, first, end) for first in starts}
        for first, part in parts.items():
            try:
                more = part.result()
            except Exception as e:  # noqa: BLE001 - its process ended, or the fuzzer failed
                lost.append(f"seeds {first} to {first + _PART - 1}: {type(e).__name__} {e}"[:400])
            else:
                tally.add(more[0])
                found += more[1]
    return tally, found, lost


def _apart(o: argparse.Namespace, first: int, end: float | None) -> tuple[Tally, list[Found], list[str]]:
    """A process of its own, so that one which dies takes no other's programs along."""
    minutes = 0.0 if end is None else (end - time.monotonic()) / 60
    if minutes < 0:
        return Tally(), [], []
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_part, o, first, min(_PART, o.seed + o.programs - first), minutes).result()


def main() -> int:
    o = _options()
    torch.set_num_threads(1)
    if o.script:
        path, _, line = o.script.rpartition(":")
        row = json.loads(Path(path).read_text().splitlines()[int(line) - 1])
        print(script(Program(**row["program"]), row["why"]))
        return 0
    if road.tool() is None:
        raise SystemExit("graph_tool is not built: ninja -C build graph_tool")
    if o.seeds:
        return bool(_again())
    begin = time.monotonic()
    tally, found, lost = _shared(o) if o.jobs > 1 else _part(o, o.seed, o.programs, o.minutes)
    if o.keep:
        with open(o.keep, "a") as file:
            for f in found:
                row = {"why": f"seed {f.seed}: {f.failure.kind}", "program": json.loads(f.program.to_json())}
                file.write(json.dumps(row) + "\n")
    print(tally.text())
    for part in lost:
        print(f"not judged: {part}")
    print(f"{time.monotonic() - begin:.0f} s")
    return bool(found or lost)


if __name__ == "__main__":
    sys.exit(main())
