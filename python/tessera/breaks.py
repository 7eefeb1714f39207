"""What torch.compile did not capture, and why: where it broke a graph, and the frames that it left to Python whole. One row a place:
{"file", "line", "reason"}."""

from __future__ import annotations

import inspect
import os
import types
from dataclasses import dataclass

import torch
from torch import nn
from torch._dynamo import utils

_torch = os.path.dirname(torch.__file__) + os.sep
_here = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True)
class Mark:
    """A moment: of what Dynamo keeps, the entries behind it."""

    breaks: int
    start_us: int

    @staticmethod
    def now() -> Mark:
        latest = utils.get_compilation_metrics()[-1:]
        return Mark(len(utils.graph_break_reasons), latest[0].start_time_us + 1 if latest else 0)


def not_captured(function, since: Mark | None = None) -> list[dict]:
    """Of a module, a function or a method, as far as torch remembers: of frames it keeps what it says of the latest 64. One place and
    reason once."""
    ranges = _ranges_of(function)
    first = since.breaks if since and since.breaks <= len(utils.graph_break_reasons) else 0
    found = []
    for why in utils.graph_break_reasons[first:]:
        place = next((f for f in reversed(why.user_stack) if _within(ranges, f.filename, f.lineno)), None)
        if place is not None:
            found.append((place.filename, place.lineno, words_of(why.reason)))
    for m in utils.get_compilation_metrics():
        if not m.fail_reason or (since and (m.start_time_us or 0) < since.start_us):
            continue
        if _within(ranges, m.co_filename, m.co_firstlineno):
            file, line = m.fail_user_frame_filename, m.fail_user_frame_lineno
            place = (file, line) if file and _of_user(file) else (m.co_filename, m.co_firstlineno)
            found.append((*place, words_of(m.fail_reason)))
    return [{"file": file, "line": line or 0, "reason": reason} for file, line, reason in dict.fromkeys(found)]


def text_of(row: dict) -> str:
    return f"{row['file'].removeprefix(os.getcwd() + os.sep)}:{row['line']}: {row['reason']}"


def _within(ranges: dict[str, list[tuple[int, int]]], file: str | None, line: int | None) -> bool:
    return any(first <= (line or 0) <= last for first, last in ranges.get(file or "", ()))


def _ranges_of(function) -> dict[str, list[tuple[int, int]]]:
    """Lines, by file, of the functions that it may run: methods of its modules' classes, and functions that these name."""
    owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
    pending = [] if owner is function else [function]
    if isinstance(owner, nn.Module):
        classes = {c for m in owner.modules() for c in type(m).__mro__ if c.__module__.partition(".")[0] != "torch"}
        classes.add(type(owner))  # torch's own where it is around the user's, as DistributedDataParallel
        pending += [f for c in classes for f in vars(c).values()]
        pending += [f for m in owner.modules() if (f := vars(m).get("forward"))]
    seen: set[types.CodeType] = set()
    while pending:
        f = inspect.unwrap(getattr(g := pending.pop(), "__func__", g))
        if not isinstance(f, types.FunctionType) or f.__code__ in seen:
            continue
        seen.add(f.__code__)
        named = (f.__globals__.get(n) for n in f.__code__.co_names)
        pending += [g for g in named if isinstance(g, types.FunctionType) and _of_user(g.__code__.co_filename)]
    ranges: dict[str, list[tuple[int, int]]] = {}
    for code in seen:
        lines = [line for _, _, line in code.co_lines() if line]
        ranges.setdefault(code.co_filename, []).append((code.co_firstlineno, max(lines, default=code.co_firstlineno)))
    return ranges


def _of_user(file: str) -> bool:
    return not os.path.abspath(file).startswith((_torch, _here))


def words_of(reason: str) -> str:
    """Dynamo's paragraphs as one line: what it is, and its explanation."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    if not lines:
        return "no reason is given"
    if lines[0].startswith(("generic_jump", "Data-dependent branching")):
        return "an `if` or a loop asks for the value of a tensor"
    explained = [x.removeprefix("Explanation: ") for x in lines[1:] if x.startswith("Explanation: ")]
    return ": ".join([lines[0], *explained[:1]])[:240]
