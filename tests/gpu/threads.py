"""Threads that launch the same libraries, on two GPUs where there are two, else on two streams of one.

    python tests/gpu/threads.py DIR [--rounds 100]     # DIR: what `launches.py generate` wrote

Each thread runs the chain of launches.py on buffers of its own and changes to the next GPU after every round, so that what a
library keeps for a GPU is made and read by threads on different ones. The libraries are fresh: the first calls race, too.
Results must equal, bit by bit, those of one thread alone. Exit code 1 when one does not.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import tempfile
import threading

from building import compile_one
from gemm_kernels import Kernel
from launches import SIZES, run_library, shapes

RESULTS = "xhuvypqorzs"


class Run:
    """The chain on one device, for one thread."""

    def __init__(self, torch, made: list, libraries: dict, weights: dict, device: int):
        self.torch, self.device = torch, device
        self.buffers = {name: t.to(f"cuda:{device}", copy=True) for name, t in weights.items()}
        self.first = {name: t.clone() for name, t in self.buffers.items()}
        self.made, self.libraries, self.calls = made, libraries, None

    def prepare(self):
        """What a library keeps for this device is asked for here."""
        calls = []
        for step in self.made:
            tensors = [self.buffers[a] for a in step["arguments"]]
            if "file" not in step:
                calls.append(lambda n=step["name"], t=tensors: run_library(self.torch, n, t))
                continue
            kernel = Kernel(self.libraries[step["file"]], step["ints"])
            size = kernel.workspace_bytes(tensors)
            if size < 0:
                raise RuntimeError(f"{step['name']}: {kernel.error()}")
            space = self.torch.full((max(size, 256),), 255, dtype=self.torch.uint8, device=f"cuda:{self.device}")
            launch = kernel.launch(tensors)
            calls.append(lambda k=kernel, a=launch, s=space, n=step["name"]: self.launch(k, a, s, n))
        return calls

    def launch(self, kernel, launch, space, name):
        if kernel(launch, space.data_ptr(), self.torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(f"{name}: {kernel.error()}")

    def __call__(self, stream) -> dict:
        torch = self.torch
        with torch.cuda.device(self.device), torch.cuda.stream(stream):
            self.calls = self.calls or self.prepare()
            for name, t in self.first.items():
                self.buffers[name].copy_(t)
            for call in self.calls:
                call()
            stream.synchronize()
            return {name: self.buffers[name].cpu() for name in RESULTS}


def differing(torch, got: dict, want: dict) -> list[str]:
    return [n for n in RESULTS if not torch.equal(got[n].view(torch.uint8), want[n].view(torch.uint8))]


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    made = json.loads((arguments.folder / "steps.json").read_text())["small"]
    unique = {s["file"]: s for s in made if "file" in s}
    libraries = {}
    with (
        tempfile.TemporaryDirectory() as place,
        concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        for name, path, _, _, failure in pool.map(lambda s: compile_one(arguments.folder, s), unique.values()):
            if failure:
                raise SystemExit(f"{name}: {failure}")
            libraries[name] = pathlib.Path(place) / path.name
            shutil.copyfile(path, libraries[name])
        torch.manual_seed(0)
        weights = {}
        for name, shape in shapes(SIZES["small"]).items():
            scale = shape[-1] ** -0.5 if name.startswith("W") else 1.0
            weights[name] = (torch.randn(shape) * scale).bfloat16()
        devices = torch.cuda.device_count()
        count = max(2, devices)
        runs = [[Run(torch, made, libraries, weights, d) for d in range(devices)] for _ in range(count)]
        streams = [[torch.cuda.Stream(device=d) for d in range(devices)] for _ in range(count)]
        start = threading.Barrier(count)

        def work(i: int) -> list[dict]:
            start.wait()
            found = []
            for n in range(arguments.rounds):
                d = (i + n) % devices
                found.append(runs[i][d](streams[i][d]))
            return found

        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            found = list(threads.map(work, range(count)))
        want = Run(torch, made, libraries, weights, 0)(torch.cuda.Stream(device=0))
        wrong = [(i, n, bad) for i, all_of in enumerate(found) for n, got in enumerate(all_of)
                 if (bad := differing(torch, got, want))]  # fmt: skip
    for i, n, bad in wrong[:5]:
        print(f"thread {i}, round {n}: {' '.join(bad)} differ")
    print(f"{count} threads, {devices} GPUs, {arguments.rounds} rounds each: {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
