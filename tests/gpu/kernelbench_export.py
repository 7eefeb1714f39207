"""`tessera export --kernelbench` by KernelBench's own evaluator, on a GPU.

    python tests/gpu/kernelbench_export.py --kernelbench DIR [--tasks 2:70 1:14] [--seconds 60] [--binary build/bin/tessera]

DIR is a clone of KernelBench; its evaluator needs pydantic, requests and numpy. Exports the tasks, has the clone's
eval_kernel_against_ref evaluate each, and prints what it says beside what `tessera judge` says of the same file. Exit code 1 when
the evaluator does not find a task right."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/gpu"), str(ROOT)]

import torch  # noqa: E402
from judging import check, failed, note  # noqa: E402

from bench.cases.kernelbench import file_of, folder  # noqa: E402


def evaluator(clone: Path):
    """The clone's eval_kernel_against_ref, wherever this version has it."""
    for place, module in ((clone / "src", "kernelbench.eval"), (clone, "src.eval")):
        if (place / (module.replace(".", "/") + ".py")).is_file():
            sys.path.insert(0, str(place))
            return importlib.import_module(module).eval_kernel_against_ref
    raise SystemExit(f"{clone} has no src/kernelbench/eval.py and no src/eval.py: give a clone of KernelBench")


def tessera(options, *arguments) -> dict:
    done = subprocess.run(
        [options.binary, *map(str, arguments), "--json"],
        env={**os.environ, "TESSERA_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"exit code {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}") from None


def evaluated(options, task: Path, new: Path) -> str:
    wanted = {
        "original_model_src": task.read_text(),
        "custom_model_src": new.read_text(),
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "measure_performance": True,
        "verbose": False,
        "device": torch.device("cuda:0"),
        "backend": "cuda",
        "precision": torch.float32,
    }
    takes = inspect.signature(options.evaluate).parameters
    result = options.evaluate(**{k: v for k, v in wanted.items() if k in takes})
    assert result is not None and result.compiled and result.correctness, f"KernelBench: {result}"
    reference = getattr(result, "ref_runtime", -1.0)
    gain = f", {reference / result.runtime:.2f}x of its reference ({reference:.4g} ms)" if reference > 0 else ""
    return f"compiled and correct ({result.metadata.get('correctness_trials')}), {result.runtime:.4g} ms{gain}"


def one(options, level: int, number: int) -> str:
    task = file_of(options.root, level, number, None)
    out = Path(options.output) / f"level{level}_{number}"
    made = tessera(
        options, "export", task, "--kernelbench", "--output", out, "--device", "cuda", "--seconds", options.seconds
    )
    assert made.get("schema") == "tessera.exported/1", made
    note(f"{task.name}: {made['kernels']} kernels, run by {made['runner']}")
    theirs = evaluated(options, task, out / "model_new.py")
    note(f"KernelBench: {theirs}")
    more = ["--device", "cuda", "--reads", out, *(["--unsandboxed"] if options.unsandboxed else [])]
    judged = tessera(options, "judge", out / "model_new.py", "--reference", task, *more)
    if measured := (judged.get("verdict") or {}).get("measured"):
        peers = ", ".join(f"{judged['speedups'].get(p['name'], 0):.2f}x of {p['name']}" for p in measured["peers"])
        device = judged["clock"]["device_ms"]
        note(f"tessera judge: {measured['ms']:.4g} ms by the outside clock, {device:.4g} ms by events, {peers}")
    assert judged.get("passed"), f"tessera judge: {judged.get('cause', judged)}"
    return theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernelbench", required=True)
    parser.add_argument("--tasks", nargs="+", default=["2:70", "1:14"], help="LEVEL:NUMBER")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--output", default=tempfile.mkdtemp(prefix="kernelbench-"))
    parser.add_argument("--binary", default=os.environ.get("TESSERA_BINARY", str(ROOT / "build/bin/tessera")))
    parser.add_argument("--unsandboxed", action="store_true")
    options = parser.parse_args()
    options.evaluate = evaluator(Path(options.kernelbench))
    options.root = folder(options.kernelbench)
    for task in options.tasks:
        level, number = map(int, task.split(":"))
        check(f"level {level}, task {number}", lambda level=level, number=number: one(options, level, number))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
