"""One edit in right kernels: what the checker finds of it, whether the interpreter replays the witness, and whether the report
leads to the edit. No GPU and no torch. A case is a kernel; `correct` are right kernels, which have to be proved.

The program `mutations` (tests/mutations/tools/mutations.cpp) judges the mutants, one process a core: build it first, or name it by
$TESSERA_MUTATIONS. Its oracle decides what the checker did not refute: 1000 schedules at small sizes."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import rows as table

CASES = [
    "plain",
    "clusters",
    "clusters_beside",
    "turns",
    "direct",
    "turns_direct",
    "columns",
    "batches",
    "tf32",
    "relu",
    "tf32_registers",
    "tf32_registers_turns",
    "slices_tf32",
    "fp32",
    "unaligned",
    "added_up",
    "copies",
    "residual",
    "bias_direct",
    "attention",
    "attention_causal",
    "attention_turns",
    "storages",
    "storages_clusters",
    "storages_direct",
    "correct",
]
HOME = "shared"

# What it is to show (milliseconds of one core, shares).
MUTANTS, CORRECT = 1000, 40
MOST_EQUIVALENT, LEAST_REPLAYED_DATA, LEAST_NAMED = 0.15, 0.97, 0.90
MOST_MEDIAN, MOST_P95 = 50, 500


def precisions(case: str) -> list[str]:
    """None is measured; the word stands where other suites have one."""
    return ["all"]


def unit(row: dict) -> tuple:
    return row["case"], row["precision"]


def asked_seconds(options) -> None:
    return None


def build(case: str, precision: str, device: str):
    raise NotImplementedError("a kernel's mutants have no module")


def program() -> Path:
    path = Path(os.environ.get("TESSERA_MUTATIONS", table.root / "build" / "tests" / "mutations"))
    if not path.exists():
        raise FileNotFoundError(f"{path}: run ninja -C build mutations, or set TESSERA_MUTATIONS")
    return path


def judged(case: str) -> list[dict]:
    """A dictionary a mutant, as the program writes them."""
    shards = len(os.sched_getaffinity(0))
    running = [
        subprocess.Popen([program(), case, table.root, f"{i + 1}/{shards}"], stdout=subprocess.PIPE, text=True)
        for i in range(shards)
    ]
    texts = [p.communicate()[0] for p in running]
    if any(p.returncode for p in running):
        raise RuntimeError(f"{program()} {case} ended by {[p.returncode for p in running]}")
    return [json.loads(text) for out in texts for text in out.splitlines()]


def about() -> dict:
    import datetime

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((text.split(":", 1)[1].strip() for text in lines if text.startswith("model name")), "cpu")
    return {"device": model, "commit": table.commit(), "date": datetime.date.today().isoformat()}


def measure(case: str, precision: str, options) -> list[dict]:
    by_operator = defaultdict(list)
    for mutant in judged(case):
        by_operator[mutant["operator"]].append(mutant)
    head = {"case": case, "precision": precision}
    make = correct_row if case == "correct" else operator_row
    return [head | {"operator": name} | make(group) | about() for name, group in sorted(by_operator.items())]


def milliseconds(group: list[dict]) -> list[float]:
    return [round(1000 * m["seconds"], 1) for m in group if m["verdict"] != "same text"]


def correct_row(group: list[dict]) -> dict:
    (kernel,) = group
    return {"verdict": kernel["verdict"], "detail": kernel["detail"], "milliseconds": milliseconds(group)}


def operator_row(group: list[dict]) -> dict:
    def told(some: list[dict]) -> list[str]:
        return [" ".join(filter(None, (f"{m['site']}: {m['edit']}", m["verdict"], m["detail"]))) for m in some]

    equivalent = [m for m in group if m["oracle"] == "equivalent"]
    left = [m for m in group if m["oracle"] != "equivalent"]
    refused = [m for m in left if m["verdict"] == "refused"]
    refuted = [m for m in left if m["verdict"] == "refuted"]
    replayed = [m for m in refuted if m["replayed"] == "same"]
    caught = refused + refuted
    row = {
        "synchronization": any(m["synchronization"] for m in group),
        "mutants": len(group),
        "equivalent": len(equivalent),
        "refused": len(refused),
        "refuted": len(refuted),
        "replayed": len(replayed),
        "named": sum(bool(m["named"]) for m in caught),
        "named_line": sum(m["named"] == "line" for m in caught),
        "unknown": sum(m["verdict"] in ("unknown", "unsupported") for m in group),
        "missed": len(left) - len(caught),
        "false_alarms": sum(m["verdict"] in ("refuted", "refused") for m in equivalent),
        "explored": sum(m["complete"] for m in equivalent),
        "milliseconds": milliseconds(group),
    }
    lists = {
        "equivalents": equivalent,
        "misses": [m for m in left if m not in caught],
        "not_replayed": [m for m in refuted if m not in replayed],
        "not_named": [m for m in caught if not m["named"]],
    }
    return row | {name: told(some) for name, some in lists.items() if some}


def line(row: dict) -> str:
    if "failed" in row:
        return f"{row['case']}: {row['failed']}"
    if row["case"] == "correct":
        return f"correct {row['operator']}: {row['verdict']}"
    parts = ("mutants", "equivalent", "refused", "refuted", "replayed", "named", "unknown", "missed")
    return f"{row['case']} {row['operator']}: " + ", ".join(f"{row[p]} {p}" for p in parts)


def summary(rows: list[dict]) -> list[str]:
    rows = [r for r in rows if "failed" not in r]
    mutants, correct = [r for r in rows if r["case"] != "correct"], [r for r in rows if r["case"] == "correct"]
    if not mutants:
        return []

    def total(name: str, some: list[dict] = mutants) -> int:
        return sum(r[name] for r in some)

    def share(part: int, of: int) -> str:
        return f"{part} of {of} ({100 * part / max(of, 1):.1f} %)"

    times = sorted(t for r in rows for t in r["milliseconds"])
    caught = total("refused") + total("refuted")
    out = [
        f"{total('mutants')} mutants (at least {MUTANTS}); equivalent {share(total('equivalent'), total('mutants'))}, at most "
        f"{100 * MOST_EQUIVALENT:.0f} %; missed {total('missed')}, unknown {total('unknown')}, false alarms "
        f"{total('false_alarms')}",
        f"named {share(total('named'), caught)}, at least {100 * LEAST_NAMED:.0f} %; the edited line itself "
        f"{share(total('named_line'), caught)}; refused before they are checked {total('refused')}",
    ]
    for what, least, wanted in (("synchronization", 1.0, True), ("data", LEAST_REPLAYED_DATA, False)):
        some = [r for r in mutants if r["synchronization"] is wanted]
        shown = total("refused", some) + total("replayed", some)
        left = total("mutants", some) - total("equivalent", some)
        out.append(f"{what}: refused, or refuted and replayed {share(shown, left)}, at least {100 * least:.0f} %")
    proved = sum(r["verdict"] == "proved" for r in correct)
    out.append(f"right kernels: proved {share(proved, len(correct))}; at least {CORRECT}, all")
    out.append(
        f"checking: median {times[len(times) // 2]:.1f} ms (at most {MOST_MEDIAN}), 95th percentile "
        f"{times[int(0.95 * len(times))]:.1f} ms (at most {MOST_P95})"
    )
    return out
