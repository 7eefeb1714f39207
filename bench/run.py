"""Measures a suite and replaces its rows in bench/results/SUITE.json (see bench/run.sh).

A unit of work is a case at a precision, measured by a process of its own (worker.py); this one starts them, one at a time,
and keeps their rows. Units that have rows of this commit are passed over, so a run that was cut short is gone on with by
the same command.
"""

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

bench = Path(__file__).resolve().parent
sys.path.insert(0, str(bench))

import homes  # noqa: E402
import rows  # noqa: E402
import suites  # noqa: E402


class OutOfTime(Exception):
    """--stop-after came while a unit was being measured."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=suites.NAMES)
    parser.add_argument("case", nargs="?", help="one case, or several joined by commas")
    parser.add_argument("precision", nargs="?", help="one precision, or several joined by commas")
    which = parser.add_argument_group("what is run")
    which.add_argument("--products", action="store_true", help="breadth: the cases of products alone")
    which.add_argument("--shard", default="1/1", help="I/N: every N-th unit, beginning with the I-th")
    which.add_argument(
        "--stop-after", type=float, default=0, metavar="SECONDS", help="end by then, with the rows so far"
    )
    which.add_argument("--again", action="store_true", help="also what has rows of this commit")
    which.add_argument("--summary", action="store_true", help="measure nothing, say how the rows stand to the goals")
    which.add_argument("--results", type=Path, default=rows.root / "bench" / "results")
    which.add_argument(
        "--fresh-home", type=Path, metavar="DIR", help="gemm, blocks: a cache that is empty at the start"
    )
    which.add_argument("--kernelbench", default="", metavar="DIR", help="breadth: task files (or $KERNELBENCH)")
    how = parser.add_argument_group("how it is measured")
    how.add_argument("--effort", default="", help="instead of tessera's default")
    how.add_argument("--seconds", type=float, default=0, help="of search a case (0: the suite's, or by effort)")
    how.add_argument("--leftover", default="", help="instead of tessera's default")
    how.add_argument("--jobs", type=int, default=0, help="compilers at once (0: one a core)")
    how.add_argument("--doors", default="optimize,compile", help="breadth, kinds: which of the two")
    how.add_argument(
        "--second-door", choices=("shared", "empty"), default="shared", help="breadth, kinds: whose cache it finds"
    )
    how.add_argument("--peers", default="", help="gemm, blocks: instead of the suite's own")
    how.add_argument("--no-resizes", action="store_true", help="gemm, blocks: leave out the check at two other sizes")
    how.add_argument("--no-second-run", action="store_true", help="blocks: leave out the second run")
    args = parser.parse_intermixed_args(arguments)
    try:
        args.units = shard(chosen(args), args.shard)
    except ValueError as e:
        parser.error(str(e))
    return args


def chosen(args: argparse.Namespace) -> list[tuple[str, str]]:
    """The units asked for: (case, precision)."""
    suite = suites.load(args.suite)
    known = suite.products() if args.products else suite.CASES
    cases = args.case.split(",") if args.case else known
    for case in cases:
        if case not in known:
            raise ValueError(f"suite {args.suite} has no case {case}; it has {', '.join(known)}")
    wanted = args.precision.split(",") if args.precision else None
    return [(case, precision) for case in cases for precision in wanted or suite.precisions(case)]


def shard(units: list, which: str) -> list:
    try:
        i, n = map(int, which.split("/"))
    except ValueError:
        raise ValueError(f"--shard {which}: expected I/N") from None
    if not 1 <= i <= n:
        raise ValueError(f"--shard {which}: I is one of 1 to N")
    return units[i - 1 :: n]


def to_do(args: argparse.Namespace, suite, file: Path) -> list[tuple[str, str]]:
    """Units without rows of this commit, then those that failed."""
    if args.again:
        return args.units
    done = rows.measured(file, suite.unit, rows.commit())

    def state(unit: tuple[str, str]) -> bool | None:
        row = {"case": unit[0], "precision": unit[1], "search_seconds": suite.asked_seconds(args)}
        return done.get(suite.unit(row))

    return [u for u in args.units if state(u) is None] + [u for u in args.units if state(u)]


def options_of(args: argparse.Namespace) -> dict:
    names = ("effort", "seconds", "leftover", "jobs", "doors", "second_door", "peers", "no_resizes", "no_second_run")
    return {name: getattr(args, name) for name in names} | {"kernelbench": args.kernelbench or None}


def run_worker(request: dict, environment: dict[str, str], log: Path, limit: float | None) -> list[dict]:
    """The unit's rows, or the row of a failure. OutOfTime: after `limit` seconds, with the process ended."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as folder, open(log, "w") as output:
        out = Path(folder) / "rows.json"
        worker = subprocess.Popen(
            [sys.executable, str(bench / "worker.py"), str(out), json.dumps(request)],
            env=os.environ | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = worker.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        finally:
            if worker.poll() is None:
                end(worker)
        if out.exists():
            return json.loads(out.read_text())
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    tail = [text for text in log.read_text(errors="replace").splitlines() if text.strip()][-1:]
    return [rows.failure(request, ": ".join([f"its process ended by {how}", *tail])[:500])]


def end(worker: subprocess.Popen) -> None:
    for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
        try:
            os.killpg(worker.pid, how)
            worker.wait(timeout=seconds)
            return
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


def measure(args: argparse.Namespace, suite, file: Path, units: list[tuple[str, str]]) -> int:
    """How many units are left when the time is up; 0 when all are measured."""
    begin, longest = time.monotonic(), 0.0
    home = homes.shared(args.fresh_home, rows.commit()) if args.fresh_home and suite.HOME == "shared" else {}
    for at, (case, precision) in enumerate(units):
        left = args.stop_after - (time.monotonic() - begin) if args.stop_after else None
        if left is not None and left < longest:
            return len(units) - at
        request = {"suite": args.suite, "case": case, "precision": precision, "options": options_of(args)}
        request["search_seconds"] = suite.asked_seconds(args)
        log = bench / "out" / f"{args.suite}-{case}-{precision}" / "log.txt"
        started = time.monotonic()
        try:
            if suite.HOME == "empty":
                with homes.empty() as nothing:
                    found = run_worker(request, nothing, log, left)
            else:
                found = run_worker(request, home, log, left)
        except OutOfTime:
            return len(units) - at
        longest = max(longest, time.monotonic() - started)
        rows.replace(file, found, suite.unit)
        for row in found:
            print(suite.line(row), flush=True)
    return 0


def main(arguments: list[str] | None = None) -> int:
    args = parse(arguments)
    suite, file = suites.load(args.suite), args.results / f"{args.suite}.json"
    left = 0
    if not args.summary:
        units = to_do(args, suite, file)
        if len(units) < len(args.units):
            print(f"{len(args.units) - len(units)} units have rows of this commit (--again measures them anew)")
        try:
            left = measure(args, suite, file, units)
        except homes.Used as e:
            print(f"bench: {e}", file=sys.stderr)
            return 3
    print("\n".join(suite.summary(rows.load(file))))
    if left:
        print(f"the time is up; {left} units are left: the same command goes on with them")
        return 0
    now = rows.measured(file, suite.unit, rows.commit())
    return 1 if not args.summary and any(now.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
