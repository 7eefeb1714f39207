"""`tessera judge --device cuda` on a GPU: a kernel of its own passes, and of every cheat it is said what it is.

    python tests/gpu/judge.py [--binary build/bin/tessera] [--unsandboxed]

Needs nvcc for the honest kernel. Prints a line a check; exit code 1 when one fails."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/judge"
SAID = re.compile(r"^Said: ([\w ]+): ?(.*)$", re.MULTILINE)
sys.path[:0] = [str(ROOT / "tests/gpu")]

from judging import check, failed, note  # noqa: E402


def judge(options, where: str, *more: str) -> dict:
    command = [options.binary, "judge", FOLDER / where, "--reference", FOLDER / "cuda_reference.py", "--device", "cuda"]
    command += [*more, "--json", *(["--unsandboxed"] if options.unsandboxed else [])]
    done = subprocess.run(
        [str(c) for c in command],
        env={**os.environ, "TESSERA_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"exit code {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}") from None


def figures(judged: dict) -> str:
    measured, clock = judged["verdict"]["measured"] or {}, judged["clock"] or {}
    if not measured:
        return judged["cause"]
    peers = ", ".join(f"{p['name']} {p['ms']:.4g} ms {p['reason']}".strip() for p in measured["peers"])
    return (
        f"{measured['ms']:.4g} ms outside ({clock['inside_ms']:.4g} inside, {clock['device_ms']:.4g} by events, "
        f"{clock['calls']} calls), floor {measured['floor_ms']:.4g} ms; {peers}; work {judged['work']}"
    )


def honest(options) -> str:
    judged = judge(options, "cuda_honest/own_kernel.py", "--claim", "synthesized")
    assert judged.get("passed"), judged.get("cause", judged)
    assert judged["work"]["label"] == "own", judged["work"]
    assert all(t["ok"] for t in judged["trials"]) and len(judged["trials"]) == 8
    assert judged["clock"]["device_ms"] <= 1.1 * judged["clock"]["outside_ms"], judged["clock"]
    return figures(judged)


def cheats(options) -> str:
    found = {
        Path(j["file"]).stem: j for j in judge(options, "cuda", "--claim", "synthesized", "--peers", "eager")["judged"]
    }
    wrong = []
    for file in sorted((FOLDER / "cuda").glob("*.py")):
        said, judged = SAID.search(file.read_text()), found[file.stem]
        note(f"{file.stem}: {judged['failure']}: {judged['cause']}")
        if judged["passed"] or judged["failure"] not in said[1].split() or said[2] not in judged["cause"]:
            wrong.append(f"{file.stem} ({judged['failure']}, {said[1]} expected)")
    assert not wrong, "; ".join(wrong)
    return f"{len(found)} cheats"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("TESSERA_BINARY", str(ROOT / "build/bin/tessera")))
    parser.add_argument("--unsandboxed", action="store_true")
    options = parser.parse_args()
    check("a kernel of its own", lambda: honest(options))
    check("cheats", lambda: cheats(options))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
