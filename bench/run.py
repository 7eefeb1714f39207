"""Measures a suite and replaces its rows in bench/results/SUITE.json (see bench/run.sh).

One row a (case, precision, kernel of ours, peer): the composed module and its peers are timed interleaved in this
process, at equal precision, and checked against fp64. A suite that is stopped keeps the rows it has.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

root = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "python"))
sys.path.insert(0, str(root / "bench"))

SUITES = {
    "gemm": {
        "cases": ["L1-1", "L1-3", "L1-6"],
        "precisions": {"L1-3": ["tf32", "bf16", "fp32", "fp16"], "": ["tf32", "bf16", "fp32", "fp16", "fp8"]},
        "peers": ["cublas"],
        # The table asks what our own kernels reach; the library's time stands beside as the peer.
        "only": "synthesized",
    },
    "blocks": {
        "cases": [
            "minigpt",
            "llama-1x2048",
            "llama-1x2048-written",
            "llama-4x2048",
            "llama-4x2048-written",
            "llama-16x2048",
            "llama-16x2048-written",
        ],
        "precisions": {"minigpt": ["bf16", "tf32", "fp32"], "": ["bf16"]},
        "peers": ["eager", "inductor", "inductor-max-autotune", "tensorrt"],
        "only": "",
    },
}


# What a row keeps of the toolchain: versions, not the places where a machine has it.
TOOLCHAIN_FACTS = ("nvcc_version", "cxx_version", "cutlass_version", "fingerprint")


def precisions_of(suite: str, case: str) -> list[str]:
    p = SUITES[suite]["precisions"]
    return p if isinstance(p, list) else p.get(case, p[""])


def load_example(name: str):
    spec = importlib.util.spec_from_file_location(name, root / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_case(suite: str, case: str, precision: str, device: str):
    """The module and its inputs, cast to the precision's storage type."""
    import torch

    storage = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}
    dtype = storage.get(precision, torch.float32)
    torch.manual_seed(0)
    if suite == "gemm":
        from cases import gemm

        return gemm.make(case, device, dtype)
    from cases import blocks

    module, inputs = blocks.make(case, device)
    return module.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


def module_class(precision: str) -> str | None:
    """What optimize() is asked for; at fp8 the case's operands are of 8 bits already, and nothing is to be converted."""
    return None if precision == "fp8" else precision


def set_flags(precision: str) -> None:
    import torch

    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def rows_for(suite: str, case: str, precision: str, report: dict, about: dict) -> list[dict]:
    times = report.get("module", {}).get("times", {})
    absent = report.get("module", {}).get("absent", {})
    check = report.get("verification", {})
    ours = times.get("tessera", {})
    rows = []
    for peer in SUITES[suite]["peers"]:
        row = {"case": case, "precision": precision, "impl": "tessera", "kind": report.get("kind", "none")}
        row |= {"ms": ours.get("ms"), "ci95": ours.get("ci95"), "peer": peer}
        # The library behind eager's matmul on CUDA is cuBLAS.
        measured = times.get("eager" if peer == "cublas" else peer)
        if measured:
            row |= {"peer_ms": measured["ms"], "peer_ci95": measured.get("ci95")}
            row["ratio"] = measured["ms"] / ours["ms"] if ours.get("ms") else None
        else:
            row |= {"peer_ms": None, "ratio": None, "absent": absent.get(peer, "not measured")}
        row |= {
            "max_error": check.get("max_error"),
            "rms_error": check.get("rms_error"),
            "peer_rms_error": check.get("baseline_rms_error"),
        }
        only = SUITES[suite]["only"]
        placed = [
            (p, next(w for w in p["winners"] if only in ("", w["kind"])))
            for p in report.get("patterns", [])
            if p.get("active")
        ]
        kernels = [
            {
                "rule": p["rule"],
                "summary": p.get("summary"),
                "label": w["label"],
                "kind": w["kind"],
                "ms": w["evidence"]["ms"],
                "knobs": w.get("knobs"),
            }
            for p, w in placed
        ]
        rows.append(row | {"kernels": kernels} | about)
    return rows


def replace_rows(file: Path, rows: list[dict]) -> None:
    old = json.loads(file.read_text()) if file.exists() else []
    fresh = {(r["case"], r["precision"]) for r in rows}
    kept = [r for r in old if (r["case"], r["precision"]) not in fresh]
    merged = sorted(kept + rows, key=lambda r: (r["case"], r["precision"], r["peer"]))
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(merged, indent=1) + "\n")
    temporary.replace(file)


def commit() -> str:
    if given := os.environ.get("TESSERA_COMMIT"):
        return given
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def measure(suite: str, case: str, precision: str, args) -> list[dict]:
    import tessera
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    set_flags(precision)
    module, inputs = build_case(suite, case, precision, device)
    peers = ["eager" if p == "cublas" else p for p in SUITES[suite]["peers"]]
    if args.peers:
        peers = args.peers.split(",")
    begin = time.monotonic()
    fast = tessera.optimize(
        module,
        inputs,
        precision=module_class(precision),
        effort=args.effort,
        seconds=args.seconds,
        leftover=args.leftover,
        only=SUITES[suite]["only"] or "both",
        place_all=args.suite == "gemm",
        measure=peers,
        ablation=False,
        resizes=not args.no_resizes,
        jobs=args.jobs,
    )
    seconds = time.monotonic() - begin
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    about = {
        "device": name,
        "toolchain": {k: v for k, v in fast.report.get("toolchain", {}).items() if k in TOOLCHAIN_FACTS},
        "torch": torch.__version__,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "seconds_to_optimize": round(seconds, 1),
    }
    out = root / "bench" / "out" / f"{suite}-{case}-{precision}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.json").write_text(json.dumps(fast.report, indent=1))
    return rows_for(suite, case, precision, fast.report, about)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("case", nargs="?", help="one case, or several joined by commas")
    parser.add_argument("precision", nargs="?", help="one precision, or several joined by commas")
    parser.add_argument("--effort", default="default")
    parser.add_argument("--seconds", type=float, default=0, help="tuning budget a case (0: by effort)")
    parser.add_argument("--leftover", default="eager")
    parser.add_argument("--peers", default="", help="instead of the suite's own")
    parser.add_argument("--jobs", type=int, default=0, help="compilers at once (0: one a core)")
    parser.add_argument("--no-resizes", action="store_true", help="leave out the check at two other sizes")
    parser.add_argument("--results", type=Path, default=root / "bench" / "results")
    args = parser.parse_args()

    cases = args.case.split(",") if args.case else SUITES[args.suite]["cases"]
    failures = 0
    for case in cases:
        if case not in SUITES[args.suite]["cases"]:
            parser.error(f"suite {args.suite} has no case {case}; it has {', '.join(SUITES[args.suite]['cases'])}")
        wanted = args.precision.split(",") if args.precision else precisions_of(args.suite, case)
        for precision in wanted:
            try:
                rows = measure(args.suite, case, precision, args)
            except Exception:  # one case that fails must not cost the others
                traceback.print_exc()
                failures += 1
                continue
            replace_rows(args.results / f"{args.suite}.json", rows)
            for row in rows:
                ratio = f"{row['ratio']:.3f}x" if row["ratio"] else row.get("absent", "")[:60]
                print(
                    f"{case:22} {precision:5} {row['kind']:12} {row['ms'] or float('nan'):9.4f} ms  "
                    f"{row['peer']:22} {row['peer_ms'] or float('nan'):9.4f} ms  {ratio}  "
                    f"rms {row['rms_error']} (peer {row['peer_rms_error']})  {row['seconds_to_optimize']} s",
                    flush=True,
                )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
