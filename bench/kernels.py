"""Where the time of a case goes: the kernels that each way of running it launches, with their device times.

    python bench/kernels.py SUITE CASE PRECISION [--peers inductor]     # after bench/run.sh of the case

Ours comes out of the registry, so nothing is tuned when the case has been measured before under the same TESSERA_HOME;
cases of `breadth` and `anytime`, which leave nothing, are searched again (--seconds). Prints a table for ours and
one for each peer (mean microseconds a call over the runs, what each kernel launched), and writes
bench/out/SUITE-CASE-PRECISION/kernels.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

import rows
import suites
from suites.tables import module_class, set_flags

sys.path.insert(0, str(rows.root / "python"))


def kernels_of(call, runs: int) -> list[dict]:
    """The device's own records (CUPTI) of `runs` calls, by kernel; microseconds a call."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(runs):
            call()
        torch.cuda.synchronize()
    table = [
        {"kernel": e.key, "launches": e.count / runs, "us": e.self_device_time_total / runs}
        for e in p.key_averages()
        if e.self_device_time_total > 0
    ]
    return sorted(table, key=lambda row: -row["us"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=suites.NAMES)
    parser.add_argument("case")
    parser.add_argument("precision")
    parser.add_argument("--peers", default="inductor")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--effort", default="default")
    parser.add_argument("--seconds", type=float, default=0, help="of search (0: by effort)")
    args = parser.parse_args()
    import tessera
    import torch
    from tessera.judging import peers

    suite = suites.load(args.suite)
    ask: dict = {"effort": args.effort, "seconds": args.seconds, "measure": False}
    flags: contextlib.AbstractContextManager = contextlib.nullcontext()
    if suite.HOME == "shared":  # measured at equal precision; the others under torch's own flags
        set_flags(args.precision)
        flags = peers.equal_precision(args.precision)
        ask |= {"precision": module_class(args.precision), **suite.MORE}
    module, inputs = suite.build(args.case, args.precision, "cuda")
    fast = tessera.optimize(module, inputs, **ask)
    found = {}
    with torch.no_grad(), flags:
        found["tessera"] = kernels_of(lambda: fast(*inputs), args.runs)
        for name in args.peers.split(","):
            peer = peers.make(name, module, {})
            found[name] = peer if isinstance(peer, str) else kernels_of(lambda peer=peer: peer(*inputs), args.runs)
    for name, table in found.items():
        if isinstance(table, str):
            print(f"{name}: {table}")
            continue
        print(
            f"{name}: {sum(row['us'] for row in table):.1f} us in {sum(row['launches'] for row in table):.0f} kernels"
        )
        for row in table[:25]:
            print(f"  {row['us']:9.1f} us  {row['launches']:4.1f} x  {row['kernel'][:110]}")
    out = rows.root / "bench" / "out" / f"{args.suite}-{args.case}-{args.precision}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "kernels.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
