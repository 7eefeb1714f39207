"""Checks and times attention kernels by wgmma beside torch's attention backends on a Hopper GPU: those of the realizer
wgmma_attention, or with --realizer tile_flash_attention those of the kernel language, where they take the problem; with
--realizer wgmma_attention tile_flash_attention both, which are timed in one process.

    python tests/gpu/wgmma_attention.py generate DIR --tool BUILD/src/realize_tool       # anywhere
    python tests/gpu/wgmma_attention.py run DIR [--only REGEX] [--results FILE.json]      # on the GPU: builds (all cores)

`run` holds each problem against fp64 with every built instance that takes it: RMS error within the evaluator's budget
(docs/measuring.md) around the best of torch's fused backends, on a poisoned result amid margins that must stay as they
are, twice with the same bits, in every order of heads; and with a NaN and an inf in two queries. Problems that are timed
come last. Exit code 1 when something is wrong.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

import attention_kernels as attention
import gemm_kernels as gemm
from measured import cold_cache, write_rows

problem = attention.problem
REALIZER = "wgmma_attention"
MARGIN = 4096  # elements before and after each tensor
SECTIONS = (1, 3)  # checked beside the launches' own: (batch, head) pairs that are worked on at once
BROKEN = (3, 7)  # queries of the first head that attention.inputs breaks


def fitting(spec: dict) -> bool:
    return spec["precision"] in ("bf16", "fp16") and not spec["mask"]


FAR = -(1 << 20)  # no lower bound

# (problem, what the description has besides)
RACES = [
    *((spec, {}) for spec, _ in attention.RACES if fitting(spec)),
    (problem(1, 32, 8, 2048, 2048, 128, "bf16"), {"layout": "blhd"}),
    (problem(1, 32, 8, 2048, 2048, 128, "bf16", causal=False), {}),
    (problem(4, 16, 16, 4096, 4096, 64, "bf16"), {"layout": "blhd"}),
    (problem(1, 16, 16, 8192, 8192, 128, "fp16"), {}),
    # Sliding windows; a part of a prompt behind what a cache holds.
    (problem(1, 32, 8, 8192, 8192, 128, "bf16", band=(-4095, 0)), {"layout": "blhd"}),
    (problem(1, 32, 8, 8192, 8192, 128, "bf16", band=(-1023, 0)), {}),
    (problem(2, 16, 8, 4096, 4096, 64, "bf16", band=(-511, 0)), {}),
    (problem(1, 8, 4, 8192, 8192, 256, "bf16", band=(-4095, 0)), {}),
    (problem(1, 32, 8, 1024, 8192, 128, "bf16", band=(FAR, 7168)), {}),
    # Gemma 2: capped scores, every second layer with a window.
    (problem(1, 8, 4, 8192, 8192, 256, "bf16", softcap=50.0), {}),
    (problem(1, 8, 4, 8192, 8192, 256, "bf16", band=(-4095, 0), softcap=50.0), {}),
    (problem(1, 32, 16, 8192, 8192, 128, "bf16", softcap=50.0), {"layout": "blhd"}),
    (problem(1, 32, 16, 8192, 8192, 128, "bf16", band=(-4095, 0), softcap=50.0), {"layout": "blhd"}),
]
ODD = [
    *((spec, {}) for spec in attention.ODD if fitting(spec)),
    (problem(2, 4, 2, 77, 200, 64, "bf16", causal=False), {}),
    (problem(2, 4, 2, 300, 130, 64, "bf16"), {"layout": "blhd"}),
    (problem(1, 1, 1, 1, 1, 64, "bf16"), {}),
    (problem(1, 1, 1, 1, 1, 64, "bf16", causal=False), {"layout": "blhd"}),
    # More tiles than multiprocessors, more blocks of keys than stages.
    (problem(3, 8, 4, 1000, 1000, 64, "bf16"), {}),
    (problem(2, 6, 2, 77, 200, 72, "fp16"), {}),
    (problem(1, 4, 4, 300, 130, 96, "bf16"), {"layout": "blhd"}),
    (problem(1, 4, 2, 77, 200, 96, "bf16"), {}),
    (problem(2, 8, 2, 300, 130, 128, "bf16"), {}),
    (problem(1, 8, 2, 1000, 1000, 128, "bf16"), {"layout": "blhd"}),
    (problem(2, 8, 2, 77, 200, 128, "bf16", causal=False), {"layout": "blhd"}),
    (problem(1, 32, 8, 1, 513, 128, "bf16", causal=False), {}),
    (problem(1, 4, 2, 300, 130, 128, "fp16"), {}),
    (problem(1, 4, 2, 300, 130, 256, "bf16"), {"layout": "blhd"}),
    (problem(1, 4, 2, 77, 200, 256, "fp16", causal=False), {"layout": "blhd"}),
    (problem(1, 4, 2, 300, 130, 64, "bf16"), {"value_dim": 128}),
    (problem(1, 4, 1, 77, 200, 128, "fp16", causal=False), {"value_dim": 64, "layout": "blhd"}),
    (problem(1, 2, 1, 77, 200, 72, "bf16", causal=False), {"value_dim": 40}),
    (problem(1, 4, 2, 333, 333, 128, "bf16", band=(-20, 0)), {}),
    (problem(1, 4, 4, 1000, 1000, 64, "fp16", band=(-300, 0)), {"layout": "blhd"}),
    (problem(2, 4, 2, 77, 200, 96, "bf16", band=(-70, 40)), {}),
    (problem(1, 4, 2, 300, 130, 64, "bf16", band=(-200, 0)), {}),
    (problem(1, 2, 2, 500, 900, 128, "bf16", band=(FAR, 400)), {}),
    (problem(1, 2, 1, 700, 700, 256, "bf16", band=(-64, 64)), {}),
    (problem(1, 2, 2, 700, 700, 128, "bf16", band=(0, 0)), {}),
    (problem(1, 2, 2, 400, 900, 64, "bf16", band=(350, 420)), {}),
    (problem(1, 2, 2, 640, 640, 128, "fp16", band=(-100, 1 << 20)), {}),
    (problem(1, 4, 2, 333, 333, 128, "bf16", softcap=2.0), {}),
    (problem(1, 4, 2, 333, 500, 64, "fp16", causal=False, softcap=20.0), {"layout": "blhd"}),
    (problem(1, 4, 2, 333, 333, 256, "bf16", band=(-70, 0), softcap=1.0), {}),
]


def descriptions(realizers: list[str]) -> list[dict]:
    """What realize_tool reads. `limit` is all instances, so that those that another problem builds are checked too. Of an
    odd problem those at `builds` are built, around the list and each time others, so that all kinds of configurations are
    among them; of a problem that is timed, all."""
    everything = [(spec, [at, at + 3, at + 7, at + 12], more) for at, (spec, more) in enumerate(ODD)]
    everything += [(spec, None, more) for spec, more in RACES]
    return [
        {
            **{"rule": "attention", "realizers": realizers, "limit": 100, "layout": "bhld"},
            **{"value_dim": spec["head_dim"], **spec, "dtype": attention.DTYPES[spec["dtype"]], **more},
            **{"spec": spec, "builds": builds, "race": builds is None},
        }
        for spec, builds, more in everything
    ]


def chosen(index: list[dict]) -> list[dict]:
    """The index with the candidates that are built."""
    out = []
    for entry in index:
        at, built = entry["problem"]["builds"], []
        for realizer in entry["problem"]["realizers"]:
            own = [c for c in entry["candidates"] if c["realizer"] == realizer]
            built += own if at is None else [own[i] for i in sorted({i % len(own) for i in at if own})]
        out.append({**entry, "candidates": built})
    return out


def generate(directory: pathlib.Path, tool: str, realizers: list[str], races: str) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    problems = [d for d in descriptions(realizers) if not d["race"] or re.search(races, title(d))]
    subprocess.run([tool, directory, "sm_90a"], input=json.dumps(problems).encode(), check=True)
    index = json.loads((directory / "index.json").read_text())
    built = {c["file"] for e in chosen(index) for c in e["candidates"]}
    for source in {c["file"] for e in index for c in e["candidates"]} - built:
        (directory / source).unlink()
    for entry in index:
        count = sum(c["file"] in built for c in entry["candidates"])
        print(f"{title(entry['problem'])}: {count} of {len(entry['candidates'])} instances", entry["unsupported"] or "")
    print(f"{len(built)} distinct sources")
    missing = any(REALIZER in e["unsupported"] or not e["candidates"] for e in index)
    return int(REALIZER in realizers and missing)


def title(p: dict) -> str:
    text = attention.title(p["spec"])
    text += f", {p['keys']} keys" if p["keys"] != p["queries"] else ""
    text += ", band {}..{}".format(*p["band"]) if p["band"] else ""
    text += ", capped at {}".format(p["softcap"]) if p["softcap"] else ""
    text += f", values of {p['value_dim']}" if p["value_dim"] != p["head_dim"] else ""
    return text + (", causal" if p["causal"] else "") + (", heads in rows" if p["layout"] == "blhd" else "")


class Stored:
    """A copy of [batch, heads, length, dim] in the problem's layout, amid margins of NaN."""

    def __init__(self, torch, values, layout: str):
        self.torch = torch
        order = values.transpose(1, 2) if layout == "blhd" else values
        self.whole = torch.full((values.numel() + 2 * MARGIN,), float("nan"), dtype=values.dtype, device=values.device)
        inner = self.whole[MARGIN:-MARGIN].view(order.shape)
        self.view = inner.transpose(1, 2) if layout == "blhd" else inner
        self.view.copy_(values)
        self.before = self.bits().clone()

    def bits(self):
        return self.whole.view(self.torch.int16)

    def kept(self) -> bool:
        return self.torch.equal(self.bits(), self.before)

    def margins_kept(self) -> bool:
        now, before = self.bits(), self.before
        return all(self.torch.equal(now[s], before[s]) for s in (slice(MARGIN), slice(-MARGIN, None)))


class Case:
    """A problem's tensors and truth."""

    def __init__(self, torch, p: dict, broken: bool):
        torch.manual_seed(0)
        self.torch, self.p, self.spec = torch, p, p["spec"]
        q, k, v = attention.inputs(self.spec, broken)
        if p["value_dim"] != p["head_dim"]:
            v = attention.inputs({**self.spec, "head_dim": p["value_dim"]}, False)[2]
        # An inf beside negative keys only is a row that sees nothing; all rows see the first key.
        k[:, :, 0, 2].abs_()
        self.inputs = [Stored(torch, t, p["layout"]) for t in (q, k, v)]
        nothing = torch.full((*q.shape[:3], v.shape[3]), float("nan"), dtype=q.dtype, device=q.device)
        self.result = Stored(torch, nothing, p["layout"])
        self.want = attention.reference(self.spec, self.views())

    def views(self) -> list:
        return [t.view for t in self.inputs]

    def library_error(self) -> float:
        """The least of torch's fused backends; with the heads repeated, since some share none. inf without any."""
        q, k, v = self.views()
        group = q.shape[1] // k.shape[1]
        repeated = [q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)]
        found = fused(attention.peers({**self.spec, "kv_heads": self.spec["heads"]}, repeated))
        return min((attention.rms(call(), self.want) for call in found.values()), default=float("inf"))

    def limit(self, library: float) -> float:
        """The RMS error that an instance may have where torch's is `library`."""
        from tessera.judging import verify

        baseline = {"rms": library, "max": library, "peak": 1.0}
        return verify.budget(self.spec["precision"], self.result.view.dtype, baseline)["rms"]

    def run(self, call) -> tuple[float, object]:
        """RMS error and the bits of the result; Wrong says what else is."""
        self.result.whole.copy_(self.result.before.view(self.result.whole.dtype))
        call()
        self.torch.cuda.synchronize()
        if not all(t.kept() for t in self.inputs):
            raise Wrong("inputs changed")
        if not self.result.margins_kept():
            raise Wrong("written outside of the result")
        return attention.rms(self.result.view, self.want), self.result.bits().clone()

    def call_of(self, library: pathlib.Path, ints: list[int]):
        kernel = gemm.Kernel(library, ints)
        tensors = [*self.views(), self.result.view]
        launch = kernel.launch(tensors)
        if kernel.workspace_bytes(tensors) != 0:
            raise Wrong("it wants a workspace")

        def call():
            if kernel(launch, 0, self.torch.cuda.current_stream().cuda_stream):
                raise Wrong(kernel.error())

        return call


class Wrong(Exception):
    """Of one instance; the others are still run."""


def fused(peers: dict) -> dict:
    """Without the backend that writes the scores out and does not round the powers."""
    return {name: call for name, call in peers.items() if name != "math"}


def orders(candidate: dict) -> list[list[int]]:
    """The ints of the launches, and of one more for each of SECTIONS."""
    own = [launch["ints"] for launch in candidate["launches"]]
    if candidate["realizer"] != REALIZER:  # whose last integer is no section
        return own
    return own + [[*own[0][:-1], s] for s in SECTIONS if all(ints[-1] != s for ints in own)]


def check(case: Case, library: pathlib.Path, candidate: dict, limit: float) -> float:
    """The RMS error of an instance, which is right in every order."""
    first = None
    for ints in orders(candidate):
        call = case.call_of(library, ints)
        error, bits = case.run(call)
        if not error <= limit:
            raise Wrong(f"section {ints[-1]}: RMS error {error:.3e}, at most {limit:.3e}")
        if not case.torch.equal(case.run(call)[1], bits):
            raise Wrong(f"section {ints[-1]}: another result the second time")
        if first is None:
            first = error, bits
        elif not case.torch.equal(first[1], bits):
            raise Wrong(f"section {ints[-1]}: another result than in the first order")
    return first[0]


def check_broken(case: Case, library: pathlib.Path, candidate: dict, limit: float) -> None:
    """Exactly the queries with a NaN or an inf have no finite result, the others are as right as ever."""
    broken = ~case.torch.isfinite(case.want)  # a cap makes what is infinite finite again
    call = case.call_of(library, candidate["launches"][0]["ints"])
    error, _ = case.run(call)
    finite = case.torch.isfinite(case.result.view)
    if not case.torch.equal(finite, ~broken):
        rows = (finite == broken).any(-1).nonzero().tolist()
        raise Wrong(f"NaN and inf in queries {BROKEN}: wrong are [batch, head, query] {rows[:8]}")
    if not error <= limit:
        raise Wrong(f"NaN and inf in two queries: RMS error {error:.3e} of the others, at most {limit:.3e}")


def race(case: Case, right: list[tuple], cache) -> tuple[str, dict]:
    """The fastest instances and orders beside torch's backends; in words and as a row."""
    torch, p = case.torch, case.p
    theirs = fused(attention.peers(case.spec, case.views()))
    if p["band"] and not p["softcap"]:
        theirs["flex"] = attention.flex(case.spec, case.views())
    calls = [
        (case.call_of(library, launch["ints"]), candidate, launch, error)
        for library, candidate, error in right
        for launch in candidate["launches"]
    ]
    coarse = gemm.timed(torch, [c[0] for c in calls], cache, 3)
    best = []
    for realizer in p["realizers"]:
        own = [i for i in range(len(calls)) if calls[i][1]["realizer"] == realizer]
        best += [calls[i] for i in sorted(own, key=lambda i: coarse[i])[: 5 if len(p["realizers"]) == 1 else 3]]
    fine = gemm.timed(torch, [*theirs.values(), *(c[0] for c in best)], cache, 15)
    ours = sorted(zip(fine[len(theirs) :], best), key=lambda pair: pair[0])
    operations = 2 * p["batch"] * p["heads"] * p["queries"] * p["keys"] * (p["head_dim"] + p["value_dim"])
    operations /= 2 if p["causal"] else 1
    if p["band"]:
        operations *= attention.seen(case.spec, "cuda").double().mean().item()
    ms, (_, _, _, error) = ours[0]
    peers = "".join(f", {name} {t:.4f} ms x{t / ms:.3f}" for name, t in zip(theirs, fine, strict=False))
    lines = [f"{title(p)}: {ms:.4f} ms {operations / ms / 1e9:.0f} TFLOP/s, rms {error:.2e}{peers or ', no peer'}"]
    for t, (_, candidate, launch, _) in ours:
        predicted = f"predicted {candidate['predicted_ms']:.4f}"
        which = f"{candidate['realizer']} {candidate['config']} {json.dumps(launch['knobs'])}"
        lines.append(f"    {t:.4f} {predicted} {which}")
    row = {
        **{"case": title(p), "precision": case.spec["precision"], "ms": round(ms, 5), "error": error},
        **{"realizer": ours[0][1][1]["realizer"], "config": ours[0][1][1]["config"], "launch": ours[0][1][2]["knobs"]},
        "ms_of": {c[1]["realizer"]: round(t, 5) for t, c in reversed(ours)},
        **{"tflops": round(operations / ms / 1e9), "peers_ms": {n: round(t, 5) for n, t in zip(theirs, fine)}},
    }
    return "\n".join(lines), row


def check_and_race(torch, entry: dict, built: dict, cache, rows: list) -> list[str]:
    """What is wrong; `rows` gets what was timed."""
    p, failures, right = entry["problem"], [], []
    candidates = [c for c in entry["candidates"] if c["file"] in built]
    if not candidates:
        return ["nothing was built"]
    case = Case(torch, p, broken=False)
    library = case.library_error()
    if library == float("inf"):
        return ["no fused backend of torch takes it, so nothing bounds the error"]
    limit = case.limit(library)
    breakable = not p["race"] and p["queries"] > max(BROKEN)
    with_broken = Case(torch, p, broken=True) if breakable else None
    for candidate in candidates:
        path = built[candidate["file"]]
        try:
            error = check(case, path, candidate, limit)
            if with_broken:
                check_broken(with_broken, path, candidate, limit)
            right.append((path, candidate, error))
        except Wrong as wrong:
            failures.append(f"{candidate['config']}: {wrong}")
    if right and p["race"]:
        text, row = race(case, right, cache)
        rows.append(row)
        print(text, flush=True)
    else:
        worst = max((error for _, _, error in right), default=float("nan"))
        found = f"rms {worst:.2e} of {limit:.2e}, torch {library:.2e}"
        print(f"{title(p):60s} {len(right)} of {len(candidates)} right, {found}", flush=True)
    return failures


def run(directory: pathlib.Path, only: str, results: pathlib.Path | None) -> int:
    import torch

    start, rows = time.time(), []
    index = json.loads((directory / "index.json").read_text())
    index = [e for e in index if re.search(only, title(e["problem"]))]
    index = [e for e in index if REALIZER in e["problem"]["realizers"] or e["candidates"]]
    built, failures = gemm.build(directory, chosen(index))
    cache = cold_cache()
    for entry in sorted(index, key=lambda e: e["problem"]["race"]):
        name = title(entry["problem"])
        # The kernel language takes fewer problems.
        failures += [f"{name}: unsupported: {why}" for who, why in entry["unsupported"].items() if who == REALIZER]
        try:
            failures += [f"{name}: {wrong}" for wrong in check_and_race(torch, entry, built, cache, rows)]
        except RuntimeError as fault:  # also out of memory
            failures.append(f"{name}: {str(fault)[:300]}")
            break  # the context is gone after a fault in a kernel
        torch.cuda.empty_cache()
    if results:
        write_rows(torch, results, "wgmma_attention.py run DIR", ", the best of all configurations", {"rows": rows})
    print(f"\n{len(failures)} remarks, {time.time() - start:.0f} s in total")
    for text in failures:
        print(" -", text[:700])
    return 1 if failures or not index else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("generate", "run"))
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tool", default=str(gemm.ROOT / "build/src/realize_tool"))
    parser.add_argument("--realizer", nargs="+", default=[REALIZER], help="for generate: others of 16-bit attention")
    parser.add_argument("--races", default="", help="for generate: of the timed problems those whose title this finds")
    parser.add_argument("--results", type=pathlib.Path, help="for run: file for what was timed")
    parser.add_argument("--only", default="", help="for run: problems whose title this expression finds")
    arguments = parser.parse_args()
    if arguments.step == "generate":
        return generate(arguments.directory, arguments.tool, arguments.realizer, arguments.races)
    return run(arguments.directory, arguments.only, arguments.results)


if __name__ == "__main__":
    sys.exit(main())
