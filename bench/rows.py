"""The rows of a suite in bench/results/SUITE.json, and what every row says of where it comes from."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

root = Path(__file__).resolve().parent.parent

# What a row keeps of the toolchain: versions, not the places where a machine has it.
TOOLCHAIN_FACTS = ("nvcc_version", "cxx_version", "cutlass_version", "fingerprint")
UNKNOWN = "unknown"
_ORDER = ("case", "precision", "operator", "peer", "door", "stop", "search_seconds")


def commit() -> str:
    """$TESSERA_COMMIT where there is no git."""
    if given := os.environ.get("TESSERA_COMMIT"):
        return given
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def about(device_name: str, report: dict | None, torch_version: str) -> dict:
    toolchain = (report or {}).get("toolchain", {})
    return {
        "device": device_name,
        "toolchain": {k: v for k, v in toolchain.items() if k in TOOLCHAIN_FACTS},
        "torch": torch_version,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
    }


def load(file: Path) -> list[dict]:
    return json.loads(file.read_text()) if file.exists() else []


@contextlib.contextmanager
def _locked(file: Path):
    """Two shards of a suite write one file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace(file: Path, rows: list[dict], unit: Callable[[dict], tuple]) -> None:
    """Rows take the place of all that belong to the same units of work; a unit that failed whole does not where rows of
    the same commit are right."""
    with _locked(file):
        old = load(file)
        kept = {(unit(r), r.get("commit")) for r in old if "failed" not in r}
        right = {unit(r) for r in rows if "failed" not in r}
        rows = [r for r in rows if unit(r) in right or (unit(r), r.get("commit")) not in kept]
        fresh = {unit(r) for r in rows}
        merged = [r for r in old if unit(r) not in fresh] + rows
        merged.sort(key=_place)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(merged, indent=1) + "\n")
        temporary.replace(file)


def _place(row: dict) -> list[tuple]:
    return [(row.get(k) is not None, isinstance(row.get(k), str), row.get(k)) for k in _ORDER]


def measured(file: Path, unit: Callable[[dict], tuple], at: str) -> dict[tuple, bool]:
    """The units of work that have rows of commit `at`; the value says whether they failed. None are known of an unknown
    commit."""
    found: dict[tuple, bool] = {}
    for row in load(file) if at != UNKNOWN else []:
        if row.get("commit") == at:
            found[unit(row)] = "failed" in row or found.get(unit(row), False)
    return found


def failure(request: dict, reason: str) -> dict:
    """The row of a unit of work that could not be measured."""
    return {
        "case": request["case"],
        "precision": request["precision"],
        "search_seconds": request["search_seconds"],
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "failed": reason,
    }
