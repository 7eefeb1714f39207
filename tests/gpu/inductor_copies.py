"""How far copies of plain torch.compile of one KernelBench task differ, each compiled from an empty cache:

    python tests/gpu/inductor_copies.py KERNELBENCH LEVEL-NUMBER...      # as 3-23

Inductor chooses its kernels by their times, so that two compilations of one module need not be alike. A row that compares
Inductor with itself cannot be closer than this.
"""

import argparse
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import torch
import torch._inductor.codecache

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/cases")]

COPIES, ROUNDS, CALLS, IN_A_ROW = 4, 25, 10, 20


def copy_of(module, at):
    """A compilation of its own: torch keeps what it compiled by the code of the function."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
    torch._inductor.codecache.PyCodeCache.cache_clear()
    space = {"module": module}
    exec(f"def run_{at}(*inputs):\n    return module(*inputs)", space)
    return torch.compile(space[f"run_{at}"])


def milliseconds(way, inputs, calls):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        way(*inputs)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin) / calls


def compare(folder, level, number):
    import kernelbench

    torch.manual_seed(0)
    module, draw = kernelbench.make(folder, level, number, None, "cuda")
    inputs, copies = draw(), []
    for at in range(COPIES):
        copies.append(copy_of(module, at))
        for _ in range(3):
            copies[-1](*inputs)
    single, in_a_row = [[] for _ in copies], [[] for _ in copies]
    for turn in range(ROUNDS):
        for at in random.sample(range(COPIES), COPIES):
            single[at].append(statistics.median(milliseconds(copies[at], inputs, 1) for _ in range(CALLS)))
            if turn % 3 == 0:
                in_a_row[at].append(milliseconds(copies[at], inputs, IN_A_ROW))
    for at in range(COPIES):
        call, back = statistics.median(single[at]), statistics.median(in_a_row[at])
        print(f"L{level}-{number}, copy {at}: {call:.4f} ms a call, {back:.4f} back to back", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelbench", type=pathlib.Path, help="the folder that holds level1, level2, ...")
    parser.add_argument("tasks", nargs="+", metavar="LEVEL-NUMBER")
    arguments = parser.parse_args()
    torch._inductor.config.force_disable_caches = True
    with torch.no_grad():
        for task in arguments.tasks:
            compare(arguments.kernelbench, *map(int, task.split("-")))


if __name__ == "__main__":
    main()
