"""Measures one unit of work in a process of its own, for run.py: `python bench/worker.py OUT REQUEST`, REQUEST being JSON of
{"suite", "case", "precision", "options"}. OUT gets the rows; one row with `failed` where the case could not be measured."""

from __future__ import annotations

import json
import sys
import traceback
from argparse import Namespace
from pathlib import Path

bench = Path(__file__).resolve().parent
sys.path[:0] = [str(bench.parent / "python"), str(bench)]


def rows_of(request: dict) -> list[dict]:
    import beside
    import rows
    import suites

    suite, options = suites.load(request["suite"]), Namespace(**request["options"])
    try:
        return suite.measure(request["case"], request["precision"], options)
    except Exception as e:
        traceback.print_exc()
        return [rows.failure(request, beside.first_line(e))]


def main() -> int:
    out = Path(sys.argv[1])
    out.write_text(json.dumps(rows_of(json.loads(sys.argv[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
