"""Row, pointwise and attention kernels of the tile language on a GPU: checked against fp64, raced against eager,
torch.compile and torch's attention backends.

    python tests/gpu/tile_kernels.py emit DIR [--tools BUILD/src] [--what attention]  # anywhere: sources and cases.json
    python tests/gpu/tile_kernels.py run DIR [--only WORD]         # on the GPU: builds (all cores), checks, times

Needs torch with CUDA and nvcc for `run`. Exit code 1 when a kernel is wrong or cannot be built.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import attention_kernels as attention
from building import run_commands
from measured import cold_cache

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ("layer_norm", "rms_norm", "softmax")
RACES = ((65536, 768), (16384, 4096), (4096, 16384))
ODD = ((37, 1001), (5, 33), (129, 768), (3, 131072), (64, 40000))
CONFIGS = 16  # of the list, the most promising first


def output_of(command: list[str], given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def emit(folder: pathlib.Path, tools: pathlib.Path, kinds: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cases = []

    def ask(what: str, spec: dict) -> str:
        return output_of([str(tools / "tile" / "tile_emit"), what, json.dumps(spec)])

    def add(what: str, spec: dict, race: bool, count: int) -> None:
        spec = {**spec, "target": "cuda"}
        configs = json.loads(ask(what, {**spec, "list": True}))
        step = 1 if race else max(1, len(configs) // count)
        for config in configs[::step][:count]:
            name = f"k{len(cases):03d}"
            text = ask(what, {**spec, "config": config})
            (folder / f"{name}.cu").write_text(text)
            commands = json.loads(output_of([str(tools / "realize_tool"), "commands", "sm_90a"], text))
            case = {"name": name, "what": what, "spec": spec, "config": config, "race": race}
            cases.append({**case, "commands": commands})

    if "attention" in kinds:
        for spec, count in attention.RACES:
            add("attention", spec, True, count)
        for spec in attention.ODD:
            add("attention", spec, False, 2)
    for dtype in ("f32", "bf16") if "rows" in kinds else ():
        for rows, columns in RACES:
            for kind in KINDS:
                spec = {"kind": kind, "rows": rows, "columns": columns, "dtype": dtype, "affine": kind != "softmax"}
                add("rows", spec, True, CONFIGS)
            add("pointwise", {"function": "gelu_tanh", "numel": rows * columns, "dtype": dtype}, True, 6)
    for rows, columns in ODD if "rows" in kinds else ():
        for kind in (*KINDS, "log_softmax"):
            for dtype in ("f32", "bf16", "f16"):
                spec = {"kind": kind, "rows": rows, "columns": columns, "dtype": dtype, "affine": False}
                add("rows", spec, False, 2)
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))
    print(f"{len(cases)} kernels in {folder}")


class Launch(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("tensor_count", ctypes.c_int32),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("int_count", ctypes.c_int32),
    ]


def build(folder: pathlib.Path, case: dict) -> str:
    right, said = run_commands(case["commands"], folder / f"{case['name']}.cu", folder / f"{case['name']}.so")
    return "" if right else said


def load(folder: pathlib.Path, case: dict):
    import torch

    lib = ctypes.CDLL(str(folder / f"{case['name']}.so"))
    lib.tessera_last_error.restype = ctypes.c_char_p
    lib.tessera_run.argtypes = [ctypes.POINTER(Launch), ctypes.c_void_p, ctypes.c_void_p]

    def run(*tensors):
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        launch = Launch(pointers, len(tensors), None, 0)
        if lib.tessera_run(ctypes.byref(launch), None, torch.cuda.current_stream().cuda_stream) != 0:
            raise RuntimeError(lib.tessera_last_error().decode())

    return run


def operation(case: dict):
    """The library call, and its inputs for this case."""
    import torch
    import torch.nn.functional as F

    spec = case["spec"]
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[spec["dtype"]]
    if case["what"] == "pointwise":
        return lambda x: F.gelu(x, approximate="tanh"), [torch.randn(spec["numel"], device="cuda").to(dtype)]
    rows, columns = spec["rows"], spec["columns"]
    inputs = [torch.randn(rows, columns, device="cuda").to(dtype)]
    affine = spec["affine"]
    if affine:
        inputs.append(torch.randn(columns, device="cuda").to(dtype))
    if spec["kind"] == "layer_norm":
        if affine:
            inputs.append(torch.randn(columns, device="cuda").to(dtype))
        return lambda x, w=None, b=None: F.layer_norm(x, (columns,), w, b, 1e-5), inputs
    if spec["kind"] == "rms_norm":
        return lambda x, w=None: F.rms_norm(x, (columns,), w, 1e-5), inputs
    return (lambda x: F.softmax(x, -1)) if spec["kind"] == "softmax" else (lambda x: F.log_softmax(x, -1)), inputs


def reference(case: dict, call, inputs: list):
    """The result in fp64. rms_norm is written out: the library's own kernel finds the mean square as variance + mean^2
    wherever it does not vectorize (fp64, columns not a multiple of 4), so one inf makes the whole row NaN there.
    """
    doubles = [t.double() for t in inputs]
    if case["spec"].get("kind") != "rms_norm":
        return call(*doubles)
    x = doubles[0]
    y = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return y * doubles[1] if len(doubles) > 1 else y


def error(got, want) -> float:
    """Largest error over the reference's scale; inf where the non-finite places differ."""
    import torch

    got = got.double()
    finite = torch.isfinite(want)
    same = torch.equal(torch.isnan(got), torch.isnan(want)) and torch.equal(
        got[torch.isinf(want)], want[torch.isinf(want)]
    )
    if not same or not torch.isfinite(got[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    scale = want[finite].abs().mean().clamp_min(1e-30)
    return ((got[finite] - want[finite]).abs().max() / scale).item()


def check(run, case: dict, seeds: int) -> tuple[float, float]:
    """Our error and the library's, both against fp64; the second seed of unraced cases has rows with inf and NaN."""
    import torch

    worst = library = 0.0
    for seed in range(seeds):
        torch.manual_seed(seed)
        call, inputs = operation(case)
        if not case["race"] and seed == 1:
            x = inputs[0]
            x[0, -1] = float("inf")
            x[1, 3] = float("nan")
            x[2, 5] = float("-inf")
        before = [t.clone() for t in inputs]
        out = torch.full_like(inputs[0], 777.0)
        run(*inputs, out)
        torch.cuda.synchronize()
        assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(before, inputs, strict=True)), (
            "inputs changed"
        )
        want = reference(case, call, inputs)
        worst = max(worst, error(out, want))
        theirs = error(call(*inputs), want)
        library = max(library, theirs if theirs < float("inf") else 0.0)  # its inf must not excuse ours
    return worst, library


def times(calls: list, turns: int = 25) -> list[float]:
    """Median ms of each call, interleaved, the L2 cache flushed before every one."""
    import torch

    cache = cold_cache()
    samples: list[list[float]] = [[] for _ in calls]
    events = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(turns * len(calls))
    ]
    for call in calls:
        call()
    for turn in range(turns):
        for i, call in enumerate(calls):
            start, end = events[turn * len(calls) + i]
            cache.empty()
            start.record()
            call()
            end.record()
    torch.cuda.synchronize()
    for k, (start, end) in enumerate(events):
        samples[k % len(calls)].append(start.elapsed_time(end))
    return [statistics.median(s) for s in samples]


def race(group: list[dict], runs: dict) -> str:
    import torch

    call, inputs = operation(group[0])
    torch._dynamo.reset()
    compiled = torch.compile(call)
    out = torch.empty_like(inputs[0])
    calls = [lambda: call(*inputs), lambda: compiled(*inputs)]
    calls += [lambda r=runs[c["name"]]: r(*inputs, out) for c in group]
    ms = times(calls)
    best = min(range(2, len(ms)), key=lambda i: ms[i])
    bytes_moved = 2 * inputs[0].numel() * inputs[0].element_size()
    spec = group[0]["spec"]
    title = spec.get("kind", spec.get("function"))
    size = f"{spec['rows']}x{spec['columns']}" if "rows" in spec else str(spec["numel"])
    config = " ".join(str(v) for v in group[best - 2]["config"].values())
    return (
        f"{title:10s} {size:>12s} {spec['dtype']:4s} eager {ms[0]:.4f} inductor {ms[1]:.4f} ours {ms[best]:.4f} "
        f"x{ms[1] / ms[best]:.3f} {bytes_moved / ms[best] / 1e9:.2f} TB/s [{config}] first {ms[2]:.4f}"
    )


def run(folder: pathlib.Path, only: str) -> int:

    cases = [c for c in json.loads((folder / "cases.json").read_text()) if only in json.dumps([c["what"], c["spec"]])]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        logs = list(pool.map(lambda c: build(folder, c), cases))
    bad = 0
    for case, log in zip(cases, logs, strict=True):
        if log:
            bad += 1
            print(f"BUILD FAILED {case['name']} {case['spec']} {case['config']}\n{log[:600]}")
    cases = [c for c, log in zip(cases, logs, strict=True) if not log]
    runs = {c["name"]: load(folder, c) for c in cases}
    checked = 0
    groups: dict[str, list[dict]] = {}
    for case in (c for c in cases if c["what"] == "attention"):
        try:
            wrong = attention.check(runs[case["name"]], case["spec"], case["race"])
        except RuntimeError as failure:
            wrong = str(failure)
        if wrong:
            bad += 1
            print(f"WRONG {case['name']} {attention.title(case['spec'])} {case['config']}: {wrong}")
        checked += 1
        if case["race"] and not wrong:
            groups.setdefault(json.dumps(case["spec"]), []).append(case)
    for case in (c for c in cases if c["what"] != "attention"):
        try:
            ours, library = check(runs[case["name"]], case, 1 if case["race"] else 2)
        except (RuntimeError, AssertionError) as failure:
            ours, library = float("inf"), 0.0
            print(f"FAILED {case['name']} {failure}")
        floor = {"f32": 2e-5, "bf16": 4e-2, "f16": 5e-3}[case["spec"]["dtype"]]
        if not ours <= max(2 * library, floor):
            bad += 1
            print(f"WRONG {case['name']} {case['spec']} {case['config']}: error {ours:.2e}, library {library:.2e}")
        checked += 1
        if case["race"]:
            groups.setdefault(json.dumps(case["spec"]), []).append(case)
    print(f"{checked} kernels checked against fp64, {bad} bad")
    for group in groups.values():
        text = attention.race(group, runs, times) if group[0]["what"] == "attention" else race(group, runs)
        print(text, flush=True)
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("emit", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/src", help="for emit: where the tools are")
    parser.add_argument("--what", default="attention,rows", help="for emit: which kernels")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if args.step == "emit":
        emit(args.folder, args.tools, args.what)
        return 0
    return run(args.folder, args.only)


if __name__ == "__main__":
    sys.exit(main())
