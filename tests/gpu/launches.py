"""Programmatic dependent launch on a Hopper GPU: chains of kernels with and without it must agree bit by bit.

    python tests/gpu/launches.py generate DIR --tools BUILD/src     # anywhere: sources and steps.json
    python tests/gpu/launches.py run DIR [--rounds 200]             # on the GPU: builds (all cores), compares, times

A chain is tile and CUTLASS kernels with library kernels, a copy and a memset between them; each step reads what the one
before it wrote and writes over what an earlier one read. It runs as a CUDA graph of several chains, and eagerly on the
default stream and on another. Every buffer is NaN before a run, so stale data shows. Two copies of each library are
loaded, one of them with TESSERA_PROGRAMMATIC_LAUNCH=0. Exit code 1 when a bit differs.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from building import compile_one
from gemm_kernels import Kernel

# Rows of the activations, of `WIDTH` columns. Kernels of 2 us, where nothing hides a launch, and longer ones.
SIZES = {"small": 256, "large": 2048}
WIDTH = 1024
LINKS = 8  # chains in one graph
SWITCH = "TESSERA_PROGRAMMATIC_LAUNCH"

Step = collections.namedtuple("Step", "name tool what arguments")


def steps(rows: int) -> list[Step]:
    """In order of execution; the last of `arguments` is written. A name in brackets is a torch call of run_library."""
    d = WIDTH
    rows_spec = {"rows": rows, "columns": d, "dtype": "bf16", "affine": True}
    heads = {"batch": 1, "heads": rows // 32, "kv_heads": rows // 32, "queries": 512, "keys": 512, "head_dim": 64}

    def gemm(name: str, arguments: str, realizer: str, n: int, k: int, m: int = rows, **more) -> Step:
        return Step(name, "realize", dict(m=m, n=n, k=k, limit=1, realizers=[realizer], **more), arguments)

    return [
        Step("rms_norm", "rows", {**rows_spec, "kind": "rms_norm"}, "x w h"),
        gemm("up+gelu", "h W1 b1 u", "cutlass_gemm", 4 * d, d, epilogue="bias_gelu"),
        Step("gelu", "pointwise", {"function": "gelu_tanh", "numel": rows * 4 * d, "dtype": "bf16"}, "u v"),
        gemm("down+residual", "v W2 b2 x y", "cutlass_gemm", d, 4 * d, epilogue="bias_residual"),
        Step("[mean]", "", {}, "y s"),
        gemm("by a scalar", "y W3 s h", "cutlass_gemm", d, d, epilogue="scalar"),
        gemm("gated in one", "h W3 W4 p", "cutlass_gated_fused", d, d, epilogue="gated_silu"),
        gemm("gated in two", "p W3 W4 q", "cutlass_gated", d, d, epilogue="gated_silu"),
        Step("[copy]", "", {}, "q p"),
        gemm("arrays", "p W5 r", "cutlass_gemm_array", 128, d, m=rows // 8, batch=8),
        gemm("slices", "q W6 b6 z", "cutlass_split_k", 64, rows * 8, m=128, epilogue="bias_gelu"),
        Step("[memset]", "", {}, "u"),
        Step("attention", "attention", {**heads, "causal": True, "mask": False, "dtype": "bf16", "precision": "bf16"},
             "q p y o"),
        Step("attention, wgmma", "realize",
             {**heads, "rule": "attention", "causal": True, "limit": 1, "realizers": ["wgmma_attention"]},
             "o y q p"),
        Step("layer_norm", "rows", {**rows_spec, "kind": "layer_norm"}, "p w b x"),
    ]  # fmt: skip


def shapes(rows: int) -> dict[str, tuple]:
    d = WIDTH
    weights = {"w": (d,), "b": (d,), "W1": (4 * d, d), "b1": (4 * d,), "W2": (d, 4 * d), "b2": (d,), "W3": (d, d),
               "W4": (d, d), "W5": (8, 128, d), "W6": (64, rows * 8), "b6": (64,)}  # fmt: skip
    wide = dict.fromkeys("uv", (rows, 4 * d))
    return {**weights, **wide, **dict.fromkeys("xhypqo", (rows, d)), "r": (rows, 128), "z": (128, 64), "s": (1,)}


def generate(folder: pathlib.Path, tools: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    def ask(*argv: str, given: str = "") -> str:
        done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(argv)}: {done.stderr}")
        return done.stdout

    everything = {}
    for size, rows in SIZES.items():
        everything[size] = []
        for i, step in enumerate(steps(rows)):
            made = {"name": step.name, "arguments": step.arguments.split(), "ints": []}
            if step.tool == "realize":
                ask(str(tools / "realize_tool"), str(folder), "sm_90a", given=json.dumps([step.what]))
                (entry,) = json.loads((folder / "index.json").read_text())
                if not entry["candidates"]:
                    raise SystemExit(f"{size}, {step.name}: no candidate: {entry['unsupported']}")
                made.update({k: entry["candidates"][0][k] for k in ("file", "commands")})
                made["ints"] = entry["candidates"][0]["launches"][0]["ints"]
            elif step.tool:
                text = ask(str(tools / "tile" / "tile_emit"), step.tool, json.dumps({**step.what, "target": "cuda"}))
                commands = json.loads(ask(str(tools / "realize_tool"), "commands", "sm_90a", given=text))
                made.update(file=f"{size}{i}.cu", commands=commands)
                (folder / made["file"]).write_text(text)
            everything[size].append(made)
    (folder / "steps.json").write_text(json.dumps(everything, indent=1))
    print(f"{sum(len(s) for s in everything.values())} steps in {folder}")


def run_library(torch, name: str, arguments: list) -> None:
    if name == "[mean]":
        torch.mean(arguments[0].abs(), dim=(0, 1), keepdim=False, out=arguments[1].view(()))
    elif name == "[copy]":
        arguments[1].copy_(arguments[0])
    elif name == "[memset]":
        arguments[0].zero_()
    else:
        raise ValueError(name)


class Chain:
    """The steps over one set of buffers, with the attribute on its launches or without."""

    def __init__(self, torch, made: list, built: dict, buffers: dict, on: bool):
        self.torch, self.steps, self.buffers = torch, [], buffers
        self.folder = tempfile.TemporaryDirectory()  # of this chain's own copies: a library asks the environment once
        os.environ[SWITCH] = "1" if on else "0"
        for step in made:
            tensors = [buffers[a] for a in step["arguments"]]
            if "file" not in step:
                self.steps.append((step["name"], lambda n=step["name"], t=tensors: run_library(torch, n, t)))
                continue
            path = built[step["file"]]
            copy = pathlib.Path(self.folder.name) / path.name
            if not copy.exists():
                shutil.copyfile(path, copy)
            kernel = Kernel(copy, step["ints"])
            size = kernel.workspace_bytes(tensors)
            if size < 0:
                raise SystemExit(f"{step['name']}: {kernel.error()}")
            workspace = torch.full((max(size, 256),), 255, dtype=torch.uint8, device="cuda")
            call = self.caller(step["name"], kernel, kernel.launch(tensors), workspace)
            call()  # the library asks now
            self.steps.append((step["name"], call))
        torch.cuda.synchronize()
        os.environ.pop(SWITCH)

    def caller(self, name: str, kernel, launch, workspace):
        def call():
            if kernel(launch, workspace.data_ptr(), self.torch.cuda.current_stream().cuda_stream):
                raise SystemExit(f"{name}: {kernel.error()}")

        return call

    def run(self, links: int = 1, library: bool = True) -> None:
        for _ in range(links):
            for name, call in self.steps:
                if library or not name.startswith("["):
                    call()


def graph_of(torch, function):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def microseconds(torch, replays: list, rounds: int = 15) -> list[float]:
    """Medians, the graphs taking turns."""
    times = [[] for _ in replays]
    for _ in range(rounds):
        for graph, mine in zip(replays, times):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            mine.append(begin.elapsed_time(end) * 1e3)
    return [sorted(t)[len(t) // 2] for t in times]


def compare(torch, size: str, chains: dict, buffers: dict, rounds: int) -> int:
    """Differing runs among `rounds` of each way to run."""
    results = [name for name in buffers if name in "xhuvypqorzs"]
    graphs = {on: graph_of(torch, lambda c=c: c.run(LINKS)) for on, c in chains.items()}
    side, wrong = torch.cuda.Stream(), 0

    def results_of(way, on, x):
        for name in results:
            buffers[name].view(torch.uint8).fill_(255)
        buffers["x"].copy_(x)
        torch.cuda.synchronize()
        if way == "graph":
            graphs[on].replay()
        else:
            with torch.cuda.stream(side if way == "stream" else torch.cuda.current_stream()):
                chains[on].run(LINKS)
        torch.cuda.synchronize()
        return {name: buffers[name].clone() for name in results}

    for way in ("graph", "eager", "stream"):
        bad = 0
        for seed in range(rounds):
            torch.manual_seed(seed)
            x = torch.randn_like(buffers["x"])
            want = results_of(way, False, x)
            if not all(torch.isfinite(t.float()).all() for t in want.values()):
                raise SystemExit(f"{size}: the chain without the attribute is not finite")
            got = results_of(way, True, x)
            differ = [n for n in results if not torch.equal(got[n].view(torch.uint8), want[n].view(torch.uint8))]
            if differ:
                bad += 1
                if bad <= 3:
                    print(f"  {way}, seed {seed}: {' '.join(differ)} differ")
        kernels = rounds * LINKS * len(chains[True].steps)
        print(
            f"{size:6s} {way:6s} {rounds} runs, {kernels} steps: {'DIFFER: ' + str(bad) if bad else 'equal bit by bit'}"
        )
        wrong += bad
    return wrong


def time_steps(torch, size: str, chains: dict, repeats: int = 40) -> None:
    def both(function, count):
        graphs = [graph_of(torch, lambda c=chains[on]: function(c)) for on in (False, True)]
        return [t / count for t in microseconds(torch, graphs)]

    print(f"{size}: us a step       plain  programmatic  saved")

    def say(name, plain, early):
        print(f"  {name:20s} {plain:8.2f}  {early:12.2f}  {plain - early:5.2f}")

    names = [name for name, _ in chains[True].steps]
    for i, name in enumerate(names):
        if not name.startswith("["):
            say(name, *both(lambda c, i=i: [c.steps[i][1]() for _ in range(repeats)], repeats))
    ours = sum(not n.startswith("[") for n in names)
    say(f"chain of {ours}, a step", *both(lambda c: c.run(LINKS, library=False), LINKS * ours))
    say(f"with library, {len(names)}", *both(lambda c: c.run(LINKS), LINKS * len(names)))


def run(folder: pathlib.Path, rounds: int) -> int:
    import torch

    everything = json.loads((folder / "steps.json").read_text())
    unique = {s["file"]: s for made in everything.values() for s in made if "file" in s}
    built = {}
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, path, _, _, failure in pool.map(lambda s: compile_one(folder, s), unique.values()):
            if failure:
                raise SystemExit(f"{name}: {failure}")
            built[name] = path
    wrong = 0
    for size, made in everything.items():
        torch.manual_seed(0)
        buffers = {}
        for name, shape in shapes(SIZES[size]).items():
            scale = shape[-1] ** -0.5 if name.startswith("W") else 1.0
            buffers[name] = (torch.randn(shape, device="cuda") * scale).bfloat16()
        chains = {on: Chain(torch, made, built, buffers, on) for on in (False, True)}
        wrong += compare(torch, size, chains, buffers, rounds)
        time_steps(torch, size, chains)
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("generate", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path("build/src"))
    parser.add_argument("--rounds", type=int, default=200)
    a = parser.parse_args()
    if a.step == "generate":
        generate(a.folder, a.tools)
        return 0
    return run(a.folder, a.rounds)


if __name__ == "__main__":
    sys.exit(main())
