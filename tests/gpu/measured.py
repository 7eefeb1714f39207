"""Times of kernels of one process, and where they are kept."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cold_cache():
    """What empties the L2 cache before a call, as tessera's own clock does."""
    sys.path.insert(0, str(ROOT / "python"))
    import torch  # noqa: PLC0415: what only builds runs where torch may be missing
    from tessera.judging.cold_cache import ColdCache  # noqa: PLC0415

    return ColdCache(torch.device("cuda"))


def timed(torch, calls, cache, rounds):
    """Median milliseconds of each call, interleaved, the L2 `cache` (of `cold_cache`) emptied before each."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        events = []
        torch.cuda._sleep(300_000 * len(calls))  # the host enqueues the round meanwhile, however slow it is
        for call in calls:
            cache.empty()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        for i, (begin, end) in enumerate(events):
            times[i].append(begin.elapsed_time(end))
    return [sorted(t)[len(t) // 2] for t in times]


def write_rows(torch, file, script, how, found):
    """`script`: of tests/gpu, by which it is measured again. `how`: after what `timed` does."""
    about = {
        "script": f"tests/gpu/{script} --results FILE",
        "commit": os.environ.get("TESSERA_COMMIT", ""),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "method": "median of 15 rounds, all kernels of a problem in turns in one process, behind a spin, the L2 emptied "
        f"by reads before each call{how}",
    }
    file.write_text(json.dumps({"about": about, **found}, indent=1) + "\n")
