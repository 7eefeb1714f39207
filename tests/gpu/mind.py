"""`optimize --mind llm` with a scripted model on a GPU: two patterns that no rule knows, by CUTLASS.

    python tests/gpu/mind.py [--binary build/bin/tessera] [--keep DIR]

The model proposes a product whose rows are rolled, and the part of a product on and below the diagonal. Its first kernels are
wrong; the script takes the right ones only where the verdict says what was wrong with the first. Then it tunes the blocks. The
run is killed while it tunes the second, and resumed. Prints a line a check; exit code 1 when one fails."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/gpu"
sys.path[:0] = [str(HERE)]

from judging import check, failed, note  # noqa: E402

MODEL = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4096, 512) / 23)

    def forward(self, x, q, k):
        return torch.roll(F.linear(x, self.weight), 2048, 0), torch.tril(F.linear(q, k))


def get_inputs():
    return [torch.randn(16384, 512), torch.randn(8192, 1024) / 6, torch.randn(8192, 1024) / 6]
"""
PROPOSE, PLAN, WRITE = "You look for subgraphs", "You choose which", "You write one kernel"
FIX, TUNE = "did not pass", "passed all gates. Make it"
NODES = {"rolled": ["linear", "roll"], "lower": ["linear_1", "tril"]}
# The edit that makes the first kernel wrong; a word of the facts that tells the pattern; what the verdict says of it.
WRONG = {
    "rolled": ("SHIFT = 2048;", "SHIFT = 1024;", "aten.roll(", "shifted by -1024 along dim 0"),
    "lower": ("if (column + i > row)", "if (column + i >= row)", "aten.tril(", "wrong elements lie along a diagonal"),
}


def proposals() -> str:
    return json.dumps({"proposals": [{"name": n, "nodes": v, "rationale": "one pass"} for n, v in NODES.items()]})


class Run:
    def __init__(self, options, home: Path):
        self.binary, self.home = str(options.binary), home
        self.environment = {**os.environ, "TESSERA_PYTHON": sys.executable, "TESSERA_HOME": str(home)}

    def tessera(self, *words: str) -> dict:
        done = subprocess.run(
            [self.binary, *words, "--json"], env=self.environment, cwd=self.home, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
        return json.loads(done.stdout)

    def command(self) -> list[str]:
        words = ["--mind", "llm", "--model", "replies.json", "--device", "cuda", "--precision", "bf16", "-o", "out"]
        return [self.binary, "optimize", "model.py", *words, "--seconds", "20", "--peers", "eager", "--json"]

    def records(self) -> list[dict]:
        file = self.home / "out/mind/turns.jsonl"
        return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def sources(home: Path) -> None:
    product = (HERE / "mind/product.cu").read_text()
    for name, (right, wrong, *_) in WRONG.items():
        text = product + (HERE / f"mind/{name}.cu").read_text()
        assert text.count(right) == 1, name
        (home / f"{name}_right.cu").write_text(text)
        (home / f"{name}_wrong.cu").write_text(text.replace(right, wrong))
        (home / f"{name}_tuned.cu").write_text("// tunable: TILE_N = 128, 256\n" + text)


def script(home: Path, ids: dict[str, str], slow: float) -> None:
    rows = [
        {"when": [PROPOSE], "text": proposals()},
        {"when": [PLAN], "text": json.dumps({"order": [ids["rolled"], ids["lower"]]})},
    ]
    for name, (_, _, fact, word) in WRONG.items():
        seconds = slow if name == "lower" else 0
        rows += [
            {"when": [WRITE, fact], "text": "By CUTLASS.", "file": f"{name}_wrong.cu"},
            {"when": [FIX, fact, word], "text": f"It is {word}.", "file": f"{name}_right.cu"},
            {
                "when": [TUNE, fact],
                "unless": ["you: Blocks."],
                "text": "Blocks.",
                "file": f"{name}_tuned.cu",
                "seconds": seconds,
            },
        ]
    rows.append({"text": "DONE: that is all"})
    (home / "replies.json").write_text(json.dumps({"schema": "tessera.script/1", "replies": rows}))


def named(run: Run) -> dict[str, str]:
    """The names that the patterns get, by a registry that is thrown away."""
    (run.home / "all.json").write_text(proposals())
    place = ["--device", "cuda", "--precision", "bf16", "--registry", "scratch.sqlite"]
    found = run.tessera("discover", "model.py", "--propose", "all.json", *place)
    return {
        name: next(p["id"] for p in found["patterns"] if p["rule"] == "proposed" and set(nodes) <= set(p["subgraph"]))
        for name, nodes in NODES.items()
    }


def killed(run: Run) -> str:
    """SIGKILL while the second pattern's kernel is being tuned."""
    with open(run.home / "first.log", "w") as log:
        process = subprocess.Popen(run.command(), env=run.environment, cwd=run.home, stdout=log, stderr=log)
    end = time.monotonic() + 500

    def tuning() -> bool:
        asked = [r for r in run.records() if r["kind"] == "request"]
        return bool(asked) and TUNE in asked[-1]["data"]["system"] and WRONG["lower"][2] in asked[-1]["data"]["view"]

    while not tuning():
        ended = process.poll() is not None or time.monotonic() > end
        assert not ended, (run.home / "first.log").read_text()[-3000:]
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return f"{len(run.records())} records until then"


def placed(report: dict) -> list[str]:
    """The kernels by hand that are in the module: one of each subgraph."""
    active = [p for p in report["patterns"] if p["active"] and p["winners"][0]["label"].startswith("by_hand")]
    subgraphs = sorted(p["subgraph"][0] for p in active)
    assert subgraphs == ["linear", "linear_1"], [
        (p["id"], p["active"], p["inactive_because"]) for p in report["patterns"]
    ]
    return [p["winners"][0]["label"] for p in active]


def resumed(run: Run) -> str:
    done = run.tessera(*run.command()[1:-1])
    mind, report = done["mind"], done["report"]
    assert [r["event"] if "event" in r else r["data"]["event"] for r in run.records() if r["kind"] == "note"] == [
        "resumed",
        "finished",
    ]
    assert mind["stopped"] == "" and mind["failure"] is None, mind
    for p in mind["patterns"]:
        tried = [t["outcome"] for t in p["tried"]]
        note(
            f"{p['id']}: {', '.join(tried)}; {p['best_ms']:.4f} ms by {p['tunables']}, eager {p['eager_ms']:.4f}; won: {p['won']}"
        )
        assert tried == ["wrong_result", "passed", "passed"] and p["won"] and p["best_ms"] < p["eager_ms"], p
    assert report["verification"]["ok"] is True
    labels = placed(report)
    metrics = mind["metrics"]
    return f"{metrics['calls']} calls, pass@1 {metrics['pass_at_1']}, pass@3 {metrics['pass_at_3']}; placed: {', '.join(labels)}"


def again(run: Run) -> str:
    """The registry's kernels are placed by an ordinary search of a module that has both subgraphs."""
    words = [
        "optimize",
        "model.py",
        "--device",
        "cuda",
        "--precision",
        "bf16",
        "-o",
        "again",
        "--peers",
        "eager",
        "--seconds",
        "30",
    ]
    report = run.tessera(*words)["report"]
    assert report["verification"]["ok"] is True
    return ", ".join(placed(report))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/bin/tessera")
    parser.add_argument("--keep", type=Path, help="work there, and leave it")
    options = parser.parse_args()
    home = options.keep or Path(tempfile.mkdtemp(prefix="tessera-mind-"))
    home.mkdir(parents=True, exist_ok=True)
    run = Run(options, home.resolve())
    (home / "model.py").write_text(MODEL)
    sources(home)
    ids = named(run)
    script(home, ids, slow=600)
    check("killed while it tunes", lambda: killed(run))
    script(home, ids, slow=0)
    check("resumed to the end", lambda: resumed(run))
    check("placed by a later search", lambda: again(run))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
