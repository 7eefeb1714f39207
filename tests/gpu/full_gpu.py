"""Optimizes modules on a GPU that other work has nearly filled: candidates may be lost, the run may not.

    python tests/gpu/full_gpu.py [--seconds 12]

Once with a tenth of the memory left, once with 2 GiB. Each module must come back callable and right, and leave torch able to
allocate what it could before. Exit code 1 when one does not.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "python"))

import tessera  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

GIB = 1 << 30


def mlp() -> tuple[nn.Module, torch.Tensor]:
    """A call needs 0.5 GiB, its inputs 128 MiB."""
    layers = [nn.LayerNorm(4096), nn.Linear(4096, 8192), nn.GELU(), nn.Linear(8192, 4096)]
    return nn.Sequential(*layers).cuda().bfloat16().eval(), torch.randn(16384, 4096, device="cuda").bfloat16()


def norm() -> tuple[nn.Module, torch.Tensor]:
    """Inputs of 0.5 GiB in fp32: kept inputs and fp64 references do not fit where 2 GiB are left."""
    return nn.Sequential(nn.LayerNorm(4096), nn.SiLU()).cuda().eval(), torch.randn(32768, 4096, device="cuda")


def left() -> int:
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def fill(keep: int) -> torch.Tensor:
    """Takes all but `keep` bytes of the GPU."""
    return torch.empty(max(0, left() - keep), dtype=torch.uint8, device="cuda")


def check(make, keep: int, seconds: float) -> bool:
    torch.manual_seed(0)
    module, x = make()
    with torch.no_grad():
        expected = module(x)
    filled = fill(keep)
    before, begin = left(), time.monotonic()
    problems, runner, said = [], "none", []
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fast = tessera.optimize(module, x, seconds=seconds, progress=False)
        runner = fast.status()["runner"]
        with torch.no_grad():
            got = fast(x)
        off = float((got.double() - expected.double()).norm() / expected.double().norm())
        del got, fast
        if not off < 8e-3:
            problems.append(f"off by {off:.2e}")
    except Exception as e:  # noqa: BLE001 - the run is lost, which is what is tested
        problems.append(f"{type(e).__name__}: {str(e)[:600]}")
    took = time.monotonic() - begin
    if before - left() > GIB // 2:
        problems.append(f"{(before - left()) / GIB:.2f} GiB are not given back")
    del filled
    words = "; ".join(problems) or "right"
    print(f"{make.__name__:6} {keep / GIB:5.1f} GiB left: {words}, run by {runner}, {took:.0f} s", flush=True)
    for w in said[:3]:
        print("    " + str(w.message).splitlines()[0][:200])
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0)
    seconds = parser.parse_args().seconds
    tenth = torch.cuda.mem_get_info()[1] // 10
    results = [check(make, keep, seconds) for keep in (tenth, 2 * GIB) for make in (mlp, norm)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
