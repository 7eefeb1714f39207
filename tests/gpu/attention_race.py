#!/usr/bin/env python3
"""Times kernels/attention.py beside wgmma_attention (our kernel in plain CUDA C++) and torch's backends on a Hopper GPU.

    python tests/gpu/attention_race.py generate DIR --tool BUILD/src/realize_tool --tessera BUILD/bin/tessera  # anywhere
    python tests/gpu/attention_race.py run DIR [--only WORD] [--results FILE.json]                             # on the GPU

The cases are forward attention in bf16, full and causal, of head dims 64, 96, 128 and 256, with 16384 queries in all, and
causal with 8 heads of queries to one of keys. All kernels of a case are timed in turns in one process, behind a spin that
lets the host enqueue a round, with the L2 cache flushed before each call: three rounds for all, 15 for the best. A kernel
whose result is not cuDNN's up to roundings is left out and named. Exit code 1 where there was one.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import time

import attention_kernels as attention
import core_kernels
import gemm_kernels
import wgmma_attention
from building import run_commands
from measured import cold_cache, timed, write_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "kernels/attention.py"
SECTIONS = (2, 8, 32)
# Constants of kernels/attention.py by head dim: what fits registers and shared memory.
TILES = {
    64: ({"KEYS": 128, "GROUPS": 3}, {"KEYS": 128}),
    96: ({"KEYS": 128},),
    128: ({"KEYS": 128}, {"KEYS": 160}),
    256: ({"KEYS": 80, "Q_SLOTS": 1}, {"KEYS": 64, "Q_SLOTS": 1}),
}


def cases():
    out = []
    for dim, heads in ((64, 32), (128, 16), (256, 8)):
        for batch, length in ((32, 512), (8, 2048), (4, 4096), (1, 16384)):
            out += [
                attention.problem(batch, heads, heads, length, length, dim, "bf16", causal=c) for c in (False, True)
            ]
    out += [attention.problem(8, 16, 16, 2048, 2048, 96, "bf16", causal=c) for c in (False, True)]
    out += [attention.problem(16384 // t, 32, 4, t, t, 128, "bf16") for t in (1024, 2048, 4096, 8192, 16384)]
    return out


def variants():
    for dim, tiles in TILES.items():
        for tile in tiles:
            for section in SECTIONS:
                for causal in (0, 1):
                    yield {"D": dim, **tile, "SECTION": section, "CAUSAL": causal}


def name_of(constants):
    return " ".join(f"{k}={v}" for k, v in constants.items())


def generate(directory, tool, tessera):
    directory.mkdir(parents=True, exist_ok=True)
    problems = [
        {
            **{"rule": "attention", "realizers": ["wgmma_attention"], "limit": 6, "layout": "bhld"},
            **{"value_dim": p["head_dim"], **p, "dtype": "bfloat16", "spec": p},
        }
        for p in cases()
    ]
    subprocess.run([tool, directory, "sm_90a"], input=json.dumps(problems).encode(), check=True)
    for i, constants in enumerate(variants()):
        out = directory / f"language{i}"
        words = [w for k, v in constants.items() for w in ("--set", f"{k}={v}")]
        # Only the text: it is compiled on the GPU's machine, on all cores.
        text = subprocess.run(
            [tessera, "lower", FILE, *words, "--emit", "cuda"], capture_output=True, check=True
        ).stdout
        out.with_suffix(".cu").write_bytes(text)
        out.with_suffix(".json").write_text(json.dumps(constants))
    return 0


def built_by_language(directory):
    """(constants, kernel) of what compiles."""
    sources = sorted(directory.glob("language*.cu"))
    # The same for all whose sides are compiled apart.
    commands = json.loads((directory / "index.json").read_text())[0]["candidates"][0]["commands"]

    def compiled(source):
        library = source.with_suffix(".so")
        right, log = run_commands(commands, source, library)
        return library if right else print("FAILED", source, log[-500:])

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        libraries = list(pool.map(compiled, sources))
    return [
        (json.loads(s.with_suffix(".json").read_text()), core_kernels.Kernel(library))
        for s, library in zip(sources, libraries, strict=True)
        if library
    ]


class Case:
    """A problem's tensors and the calls of everything that takes it."""

    def __init__(self, torch, entry, language, built):
        self.torch, self.spec = torch, entry["problem"]["spec"]
        torch.manual_seed(0)
        self.inputs = attention.inputs(self.spec, False)
        self.out = torch.empty_like(self.inputs[0])
        peers = attention.peers(self.spec, self.inputs)
        self.calls = {name: peers[name] for name in ("cudnn", "flash") if name in peers}
        self.want = self.calls["cudnn"]().double()
        self.wrong = []
        self.add_language(language)
        self.add_wgmma(entry, built)

    def add(self, name, call):
        self.out.fill_(float("nan"))
        call()
        self.torch.cuda.synchronize()
        if core_kernels.rms(self.out, self.want) < 6e-3:
            self.calls[name] = call
        else:
            self.wrong.append(name)

    def add_language(self, language):
        s = self.spec
        for constants, kernel in language:
            if constants["D"] == s["head_dim"] and constants["CAUSAL"] == int(s["causal"]):
                ints = (s["queries"], s["keys"], s["heads"], s["kv_heads"], s["batch"])
                self.add("language " + name_of(constants), kernel.prepared(self.torch, [*self.inputs, self.out], ints))

    def add_wgmma(self, entry, built):
        for candidate in entry["candidates"]:
            for launch in candidate["launches"] if candidate["file"] in built else ():
                kernel = gemm_kernels.Kernel(built[candidate["file"]], launch["ints"])
                prepared = kernel.launch([*self.inputs, self.out])

                def call(kernel=kernel, prepared=prepared):
                    if kernel(prepared, 0, self.torch.cuda.current_stream().cuda_stream):
                        raise RuntimeError(kernel.error())

                self.add(f"wgmma {json.dumps(candidate['config'])} {launch['knobs']}", call)

    def race(self, cache):
        """Milliseconds by name, of torch's backends and the two best of each kind of ours."""
        names = list(self.calls)
        coarse = dict(zip(names, timed(self.torch, [self.calls[n] for n in names], cache, 3), strict=True))
        chosen = [n for n in names if n in ("cudnn", "flash")]
        for kind in ("language", "wgmma"):
            chosen += sorted((n for n in names if n.startswith(kind)), key=coarse.__getitem__)[:2]
        return dict(zip(chosen, timed(self.torch, [self.calls[n] for n in chosen], cache, 15), strict=True))


def row_of(title, spec, times):
    operations = 4.0 * spec["batch"] * spec["heads"] * spec["queries"] * spec["keys"] * spec["head_dim"]
    operations /= 2 if spec["causal"] else 1
    row = {"case": title, "precision": "bf16", "ms": {n: round(t, 5) for n, t in times.items()}}
    best = {k: min(t for n, t in times.items() if n.startswith(k)) for k in ("language", "wgmma")}
    row["tflops"] = round(operations / best["language"] / 1e9)
    row["of_cudnn"] = round(times["cudnn"] / best["language"], 4)
    row["of_wgmma"] = round(best["wgmma"] / best["language"], 4)
    return row


def run(directory, only, results):
    import torch  # noqa: PLC0415: `generate` runs where torch may be missing

    begin = time.time()
    index = json.loads((directory / "index.json").read_text())
    index = [e for e in index if only in wgmma_attention.title(e["problem"])]
    built, failures = gemm_kernels.build(directory, index)
    language = built_by_language(directory)
    cache = cold_cache()
    rows = []
    for entry in index:
        title = wgmma_attention.title(entry["problem"])
        case = Case(torch, entry, language, built)
        failures += [f"{title}: WRONG {name}" for name in case.wrong]
        rows.append(row_of(title, case.spec, case.race(cache)))
        r = rows[-1]
        best = min((n for n in r["ms"] if n.startswith("language")), key=r["ms"].__getitem__)
        print(
            f"{title:32} {r['ms'][best]:8.4f} ms {r['tflops']:4} TFLOP/s  {r['of_cudnn']:.3f}x cuDNN  "
            f"{r['of_wgmma']:.3f}x wgmma_attention  {best}",
            flush=True,
        )
        torch.cuda.empty_cache()
    mean = {k: math.exp(sum(math.log(r[k]) for r in rows) / len(rows)) for k in ("of_cudnn", "of_wgmma")}
    print(f"geometric means {mean}, {time.time() - begin:.0f} s", *failures, sep="\n")
    if results:
        script = "attention_race.py generate DIR; ... run DIR"
        write_rows(torch, results, script, "; the two best of each kind", {"geomean": mean, "rows": rows})
    return int(bool(failures))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["generate", "run"])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tool", default=str(ROOT / "build/src/realize_tool"))
    parser.add_argument("--tessera", default=str(ROOT / "build/bin/tessera"))
    parser.add_argument("--only", default="")
    parser.add_argument("--results", type=pathlib.Path)
    asked = parser.parse_args()
    if asked.step == "generate":
        return generate(asked.directory, asked.tool, asked.tessera)
    return run(asked.directory, asked.only, asked.results)


if __name__ == "__main__":
    sys.exit(main())
