"""Transformers' own tests of torch.export and torch.compile, from a clone of theirs: as they are, then through tessera."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_NEEDED = ("src/transformers/exporters/exporter_dynamo.py", "tests/exporters/test_export.py", "conftest.py")
# Sizes are fixed in a module of ours, so that their tests with varying ones would be those with fixed ones again.
_CHOSEN = ["-m", "torch_compile_test or torch_export_test", "-k", "not dynamic"]
_PER_TEST = 900  # seconds


def run(clone: Path, families: list[str], seconds: float) -> int:
    """Prints a row for each test; the exit code is 1 where one passes as it is and not through tessera. `families`: folders of tests/models."""
    if missing := [part for part in _NEEDED if not (clone / part).is_file()]:
        raise SystemExit(f"{clone} has no {missing[0]}: expected a clone of Transformers (5.9 or later) with its tests")
    counts: collections.Counter = collections.Counter()
    for family in families:
        files = sorted((clone / "tests/models" / family).glob("test_modeling_*.py"))
        if not files:
            print(f"{family}: the clone has no tests of it")
            continue
        plain, _ = _outcomes(clone, files, [], {})
        with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as log:
            ours, last = _outcomes(
                clone,
                files,
                ["-p", "transformers_plugin"],
                {"TESSERA_TESTS_LOG": log.name, "TESSERA_TESTS_SECONDS": str(seconds)},
            )
            made = [json.loads(line) for line in log]
        if not plain or not ours:
            counts["not run"] += 1
            print(f"{family}: pytest collected nothing\n{last}")
        for test, (verdict, why) in ours.items():
            theirs = plain.get(test, ("missing", ""))[0]
            outcome = (
                verdict if verdict in ("passed", "skipped") else "fails as it is" if theirs != "passed" else "wrong"
            )
            mine = [row for row in made if row["test"] == test]
            kernels, runners = sum(row["kernels"] for row in mine), collections.Counter(row["runner"] for row in mine)
            counts[outcome] += 1
            counts["with kernels"] += outcome == "passed" and kernels > 0
            if outcome != "skipped":
                print(
                    f"{family:16} {test:58} {outcome:8} {kernels:3} kernels  {dict(runners)}  {why if outcome == 'wrong' else ''}",
                    flush=True,
                )
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return int(counts["wrong"] + counts["not run"] > 0)


def _outcomes(
    clone: Path, files: list[Path], plugin: list[str], settings: dict
) -> tuple[dict[str, tuple[str, str]], str]:
    """By the test: passed, skipped or failed, and why; and the last that pytest said."""
    path = [str(clone / "src"), str(_HERE), *(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)]
    path = [str(Path(p).resolve()) for p in path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path), "RUN_SLOW": "1", "HF_HUB_OFFLINE": "1"} | settings
    with tempfile.NamedTemporaryFile("r", suffix=".xml") as report:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            "--tb=short",
            f"--timeout={_PER_TEST}",
        ]
        command += [*plugin, f"--junitxml={report.name}", "-o", "junit_family=xunit1", *_CHOSEN, *map(str, files)]
        done = subprocess.run(
            command, cwd=clone, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        text = report.read()
    outcomes: dict[str, tuple[str, str]] = {}
    for case in ElementTree.fromstring(text).iter("testcase") if text else ():
        test = f"{case.get('classname', '').split('.')[-1]}::{case.get('name')}"
        faults = [*case.iter("failure"), *case.iter("error")]
        skipped = case.find("skipped") is not None
        verdict = "failed" if faults else "skipped" if skipped else "passed"
        why = " ".join((faults[0].get("message") or faults[0].text or "").split())[:300] if faults else ""
        if outcomes.get(test, ("passed", ""))[0] != "failed":  # a test has a case for each part of it
            outcomes[test] = (verdict, why)
    died = done.stdout.find("Fatal Python error")
    said = done.stdout[-2000:] if died < 0 else done.stdout[max(0, died - 300) : died + 3000]
    return outcomes, f"exit code {done.returncode}: {said}"
