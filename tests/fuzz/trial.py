"""Programs through a road and beside eager: by themselves, or several in one export, since an export costs the most."""

from __future__ import annotations

import functools
import re
import traceback
import warnings
from dataclasses import dataclass

import torch
from budget import Budget
from comparing import Difference, differences
from program import Program
from road import Way
from tessera.common.errors import Error
from tessera.judging.trace_check import refuse_other_results
from tessera.tracing.held import hold
from twin import ERRORS, Twin, poison, twin, under
from undefined import is_undefined


@dataclass
class Failure:
    """`stage`: refused, crash, undefined (by eager, undefined.py), trace (the graph as traced is wrong), rewrite (only the
    rewritten one is), kernels."""

    stage: str
    change: str  # kind of the change before the wrong call; "first call", "later call" where there was none
    differences: list[Difference]

    @property
    def kind(self) -> str:
        first = self.differences[0]
        return f"{self.stage} | {first.symptom} of {first.where} | {self.change}"

    def __str__(self) -> str:
        return "\n".join([self.kind, *(f"  {d.where} {d.symptom}: {d.text}" for d in self.differences[:6])])


def rounds_of(p: Program) -> list[tuple[int, dict | None]]:
    return [(0, None), (1, None), *((2 + i, c) for i, c in enumerate(p.changes))]


def name_of(r: int, change: dict | None) -> str:
    return change["kind"] if change else "later call" if r else "first call"


_SLIPS = (AttributeError, KeyError, IndexError, TypeError, AssertionError)


def _slipped(error: BaseException | None) -> bool:
    """Whether code of the package raised it, and no diagnostic."""
    if not isinstance(error, _SLIPS) or isinstance(error, Error):
        return False
    return "/tessera/" in traceback.extract_tb(error.__traceback__)[-1].filename


def refused(error: Exception) -> Failure:
    """By a diagnostic; anything else that the road raises is a fault, also where the engine passes it on (TS0901), or where the
    tracer takes an error of its own for one of torch.export's."""
    text = str(error)[:600]
    if not isinstance(error, Error) or error.diagnostic["code"] == "TS0901" or _slipped(error.__cause__):
        return Failure(
            "crash",
            type(error).__name__,
            [Difference("error", "road", "".join(traceback.format_exception(error))[-600:])],
        )
    about = re.sub(r"`[^`]*`|programs\.|\d+|\[.*", "", text.split("]: ", 1)[-1].splitlines()[0])
    code = error.diagnostic["code"]
    return Failure("refused", f"{code} {about[:90].strip()}", [Difference("error", "trace", text)])


def _raised(stage: str, r: int, change, error: Exception | None, eager: Exception | None) -> Failure:
    said = f"eager {eager!r}, here {error!r}"[:600]
    return Failure(stage, name_of(r, change), [Difference("error", "call", said)])


def alone(p: Program, make=Way, stage: str = "rewrite", plain=lambda module: module) -> Failure | None:
    """The first thing that a program's own road does otherwise than eager; `make(module, args)` is the road, `plain(module)` eager."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, other = twin(p), twin(p)
        try:
            way = make(other.module, other.prepare(0))
        except Exception as e:  # noqa: BLE001 - a diagnostic, or a fault
            return refused(e)
        theirs = plain(eager.module)
        done: list = []
        for r, change in rounds_of(p):
            done.append((r, change))
            failure, goes_on = _round(p, eager, theirs, other, way, stage, done)
            if failure and is_undefined(p, done):
                return Failure("undefined", failure.change, failure.differences)
            if failure or not goes_on:
                return failure
    return None


def _round(p: Program, eager: Twin, theirs, other: Twin, way, stage: str, done: list) -> tuple[Failure | None, bool]:
    r, change = done[-1]
    wanted = raised = got = None
    try:
        wanted = eager.call(r, change, theirs)
    except ERRORS as e:
        raised = e
    try:
        got = other.call(r, change, way.composed)
    except Exception as e:  # noqa: BLE001 - whatever it raises is to be told
        return (None if raised else _raised(stage, r, change, e, raised)), False
    if raised:
        # What nobody reads is dropped with its errors, unless guards have the original run, as torch.compile does.
        dropped = getattr(way, "drops_errors", False) or "fill" in (change or {})
        return (None if dropped else _raised(stage, r, change, None, raised)), False
    return judged(p, wanted, got, way.exact(0, len(p.outputs), ""), stage, done), True


def _after_writes(p: Program) -> str:
    """What it computes from the first write in place on. A graph has no writes, so that its values may lie otherwise; PyTorch's code
    for consecutive elements rounds a function otherwise than that for single ones (`pow` of float64, say), and adds up in another
    order."""
    texts = [step[1] for step in p.steps]
    first = next((i for i, text in enumerate(texts) if _write.search(text)), len(texts))
    return " ".join(texts[first:])


def _nearly_equal(_name: str, eager: torch.Tensor, other: torch.Tensor, signs: bool = True) -> torch.Tensor:
    """By element: whether it is within four units in the last place. `signs`: zeros have the same one."""
    if not eager.is_floating_point():
        return torch.zeros(eager.shape, dtype=torch.bool)
    e, o = eager.double(), other.double()
    same = ((e == o) & (~torch.tensor(signs) | (e.signbit() == o.signbit()))) | (e.isnan() & o.isnan())
    return same | ((e != o) & ((e - o).abs() <= 4 * torch.finfo(eager.dtype).eps * e.abs()))


_write = re.compile(r"[a-z0-9]_\(|\] = ")
_function = re.compile(r"pow|exp|log|sin|cos|tan|erf|elu|sigmoid|silu|mish|soft|gamma|norm")
_sum = re.compile(r"mean|sum|var\b|std|prod")
_zeros_of_vectors = re.compile(r"softshrink|lerp")  # which eager gives another sign than single numbers


def judged(p: Program, wanted, got, how: str, stage: str, done: list) -> Failure | None:
    """`how`: what road.Way.exact says of the results."""
    found = differences(wanted, got)
    if how == "product":
        found = [d for d in found if d.symptom != "zero sign"]
    then = _after_writes(p) if how == "exact" else ""
    numbers = any(d.symptom in ("value", "zero sign") for d in found)
    if numbers and (how != "exact" or _sum.search(then) or _function.search(then)):
        budgeted = how != "exact" or _sum.search(then)
        near = functools.partial(_nearly_equal, signs=not _zeros_of_vectors.search(then))
        tolerated = Budget(p, done, signs=how != "product").tolerated if budgeted else near
        found = differences(wanted, got, tolerated)
    return Failure(stage, name_of(*done[-1]), found) if found else None


def staged(p: Program) -> Failure | None:
    """`alone`, and whether the traced graph is wrong already, or refused by the check that tessera.optimize makes of it."""
    failure = alone(p)
    if failure and failure.stage == "rewrite":
        before = alone(p, lambda module, args: Way(module, args, rewritten=False), "trace")
        return (before and before.stage == "trace" and _refused_by_the_check(p)) or before or failure
    return failure


def _refused_by_the_check(p: Program) -> Failure | None:
    made = twin(p)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            refuse_other_results(hold(made.module, tuple(made.prepare(0)), {}))
        except Error as e:
            return refused(e)
    return None


class Several(torch.nn.Module):
    def __init__(self, modules: list, counts: list[int]):
        super().__init__()
        self.programs, self.counts = torch.nn.ModuleList(modules), counts

    def forward(self, *given):
        made, at = [], 0
        for module, count in zip(self.programs, self.counts, strict=True):
            made.append(module(*given[at : at + count]))
            at += count
        return made


class Together:
    """Programs in one export. `suspects` are to be tried alone: a guard that misses for one runs the original for all, so a
    round changes one program."""

    def __init__(self, programs: list[Program], make=Way):
        self.programs = programs
        self.eager, self.other = [twin(p) for p in programs], [twin(p) for p in programs]
        self.suspects: set[int] = set()
        several = Several([t.module for t in self.other], [len(p.given) for p in programs])
        several.training = False
        given = [a for t in self.other for a in t.prepare(0)]
        self.way = make(several, given)
        self.done: list[list] = [[] for _ in programs]
        firsts = [sum(len(p.outputs) for p in programs[:i]) for i in range(len(programs))]
        self.exact = [
            self.way.exact(f, len(p.outputs), f"programs.{i}.") for i, (f, p) in enumerate(zip(firsts, programs))
        ]

    def run(self) -> set[int]:
        rounds = [(0, None, None), (1, None, None)]
        changes = [(i, c) for i, p in enumerate(self.programs) for c in p.changes]
        changes.sort(key=lambda pair: pair[1].get("raises", False))
        rounds += [(2 + n, i, c) for n, (i, c) in enumerate(changes)]
        for r, i, change in rounds:
            raises = bool(change and change.get("raises"))
            try:
                self._round(r, i, change, raises)
            except Exception:  # noqa: BLE001 - whoever it was is found alone
                self.suspects |= set(range(len(self.programs))) if i is None else {i}
                return self.suspects
        return self.suspects

    def _round(self, r: int, which: int | None, change: dict | None, raises: bool) -> None:
        wanted = self._called(self.eager, r, which, change, None, raises)
        got = self._called(self.other, r, which, change, self.way.composed, raises)
        if raises:
            if got is not None:
                self.suspects.add(which)
            return
        for i, (p, w, g) in enumerate(zip(self.programs, wanted, got, strict=True)):
            self.done[i].append((r, change if i == which else None))
            if i not in self.suspects and judged(p, w, g, self.exact[i], "", self.done[i]):
                self.suspects.add(i)

    def _called(self, twins: list[Twin], r: int, which, change, runner, raises: bool) -> list | None:
        mine = [change if i == which else None for i in range(len(twins))]
        given = [t.prepare(r, c) for t, c in zip(twins, mine, strict=True)]
        try:
            with under(change):
                torch.manual_seed(r)
                if runner:
                    results = runner(*[a for args in given for a in args])
                else:
                    results = [t.module(*args) for t, args in zip(twins, given, strict=True)]
            seen = [t.observe(args, result) for t, args, result in zip(twins, given, results, strict=True)]
        except ERRORS:
            if raises:
                return None
            raise
        finally:
            for t, c in zip(twins, mine, strict=True):
                t.undo(c)
        for s in seen:
            poison(s)
        return seen
