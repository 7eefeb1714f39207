"""Where the time of a case goes: the kernels that each way of running it launches, with their device times.

    python bench/kernels.py SUITE CASE PRECISION [--peers inductor]     # after bench/run.sh of the case

Ours comes out of the registry, so nothing is tuned when the case has been measured before. Prints a table for ours and
one for each peer (mean microseconds a call over the runs, what each kernel launched), and writes
bench/out/SUITE-CASE-PRECISION/kernels.json.
"""

from __future__ import annotations

import argparse
import json

from run import SUITES, build_case, module_class, root, set_flags


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
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("case")
    parser.add_argument("precision")
    parser.add_argument("--peers", default="inductor")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--effort", default="default")
    args = parser.parse_args()
    import tessera
    import torch
    from tessera import peers

    set_flags(args.precision)
    module, inputs = build_case(args.suite, args.case, args.precision, "cuda")
    only = SUITES[args.suite]["only"] or "both"
    fast = tessera.optimize(
        module, inputs, precision=module_class(args.precision), effort=args.effort, only=only, measure=False
    )
    found = {}
    with torch.no_grad(), peers.equal_precision(args.precision):
        found["tessera"] = kernels_of(lambda: fast(*inputs), args.runs)
        for name in args.peers.split(","):
            peer = peers.make(name, module)
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
    out = root / "bench" / "out" / f"{args.suite}-{args.case}-{args.precision}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "kernels.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
