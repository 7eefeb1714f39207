"""One file a suite. Each defines:

CASES                         names, in the order in which they are measured
HOME                          "shared": its cases go on from what the others built; "empty": each starts from nothing
precisions(case)              what a case is measured in
unit(row)                     which unit of work a row belongs to: (case, precision) or (case, precision, search_seconds)
asked_seconds(options)        the seconds of search in that unit, None where they are not part of it
build(case, precision, device)  the module and its inputs
measure(case, precision, options) -> rows, in a process of its own
line(row) -> str              for the terminal
summary(rows) -> [str]        how that compares with what the suite is to show

They import torch where they need it: the process that starts the others does not.
"""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("gemm", "attention", "blocks", "breadth", "kinds", "anytime", "mutations")


def load(name: str) -> ModuleType:
    return importlib.import_module(f"suites.{name}")
