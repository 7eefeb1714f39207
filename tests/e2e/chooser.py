"""A scripted model that picks one of several edits of a wrong kernel. It reads verdicts, as `tessera try --json` gives them,
and the edits as patches; neither the kernel nor which edit is right. One scorer for all kernels.

An edit scores by what the verdict says against what the edit is: the lines that the diagnostics name, the instructions that
their help names, the kind of place that advice points to, the tensors that the result depends on otherwise than it must. When
an edit was wrong, the verdict on the edited kernel tells whether it was the right direction."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

from patches import Patch, read
from wrong_kernels import Edit

# Words of a verdict, and the kinds of place in a patch that they point to (patches.py).
_POINTS = {
    r"\bbounds?\b|round(ed)? up|is rounded|\bextents?\b|first and the last index": ("bound", "start"),
    r"loop starts|start of the loops?|begins? where": ("start",),
    r"\bindex of\b|\bindices\b|\bcoordinates?\b|\bstrides?\b|\boffset\b": ("index",),
    r"start value|\bstarts? a sum\b|identity": ("initial",),
    r"[Aa]ccumulate in|type of the accumulator|narrower type, ": ("type",),
    r"\bconversions?\b|\bpacking\b|packed|own type": ("conversion", "function"),
    r"\bfactors?\b|multiple|\bscale\b": ("factor",),
    r"\baddends?\b": ("addend", "sign"),
    r"\bsign\b|subtracted": ("sign",),
    r"\bmask\b|\bconditions?\b": ("condition",),
    r"order of functions|inside out|in its argument|another order": ("order", "call"),
    r"[Ee]xchange": ("order", "both places"),
}
_SHAPES = ("order", "both places")  # of a patch as a whole
_POINTED = {facet for facets in _POINTS.values() for facet in facets}
# What a diagnostic calls the words of instructions.
_MEANS = {
    "meet": "sync",
    "arrives": "arrive",
    "arrival": "arrive",
    "arrivals": "arrive",
    "waits": "wait",
    "waited": "wait",
    "fenced": "fence",
    "products": "wgmma",
    "bytes": "expect",
    "copies": "load",
    "copy": "load",
    "expects": "expect",
    "swizzles": "swizzle",
}
_KNOWN = {
    "wait", "arrive", "fence", "sync", "cluster", "bulk", "wgmma", "expect", "load", "store", "commit", "parity", "swizzle",
    "async", "shared", "read", "phase", "part", "box", "dims",
}  # fmt: skip
_STRENGTHENS = {"wait", "arrive", "fence", "sync", "expect"}


class Chooser:
    def __init__(self, edits: list[Edit]):
        self._patches = [read(e) for e in edits]
        self._tried: list[tuple[int, dict]] = []
        self._first: dict | None = None

    def pick(self, verdict: dict) -> int:
        """The next edit to try. `verdict`: on the kernel as it is at first, then on it with the edit that was picked last."""
        if self._first is None:
            self._first = verdict
        else:
            self._tried[-1] = (self._tried[-1][0], verdict)
        open_ = [i for i in range(len(self._patches)) if i not in {t for t, _ in self._tried}]
        best = max(open_, key=lambda i: (round(self.score(i), 6), -i))
        self._tried.append((best, {}))
        return best

    def score(self, i: int) -> float:
        assert self._first is not None
        p = self._patches[i]
        total = sum(part(self._first, p) for part in _PARTS)
        for j, verdict in self._tried:
            if verdict:
                total += _learned(self._first, self._patches[j], verdict, p)
        return total


# How well a patch fits a verdict: each from its own part of the verdict.


def _of_advice(verdict: dict, p: Patch) -> float:
    """The kinds of place that advice points to."""
    wanted: Counter = Counter()
    for rank, a in enumerate(verdict.get("advice", [])):
        for part, weight in (("where", 2.0), ("remedy", 2.0), ("cause", 1.0)):
            for pattern, facets in _POINTS.items():
                if re.search(pattern, a[part]):
                    for facet in facets:
                        wanted[facet] += weight / (rank + 1)
    size = sum(wanted.values())
    if not size:
        return 0.0
    places = {f: n for f, n in p.facets.items() if f in _POINTED and f not in _SHAPES}
    at_places = sum(wanted[f] * n for f, n in places.items()) / (sum(places.values()) or 1)
    return 6.0 * (at_places + sum(wanted[f] for f in _SHAPES if f in p.facets)) / size


def _of_names(verdict: dict, p: Patch) -> float:
    """Names that come in or stand beside what changes, the author's or the language's, which the advice uses as words."""
    come = {w.lower() for t in set(p.added) - set(p.removed) for w in t.split("_") if len(w) > 2 or w.isdigit()}
    stay = p.names - come
    score = 0.0
    for rank, a in enumerate(verdict.get("advice", [])):
        told = set(re.findall(r"[a-z]{3,}|\b\d+\b", a["remedy"].lower()))
        score += (min(2, len(come & told)) + 0.5 * min(2, len(stay & told))) / (rank + 1)
    return score


def _of_inputs(verdict: dict, p: Patch) -> float:
    """The tensors that the result depends on otherwise than it must, or that a mistake is made with."""
    wrong = verdict.get("wrong") or {}
    named = {d["tensor"] for d in wrong.get("depends", []) if d["tensor"] >= 0 and d["dim"] >= 0}
    told = {int(n) for n in re.findall(r"\bt(\d) \(", wrong.get("relation_details", ""))}
    named = told or named
    if not named:
        return 0.0
    score = -1.5 * len(p.changed_tensors - named)
    for own, weight in ((p.changed_tensors, 3.0), (p.tensors, 1.5)):
        if named <= own:
            score += weight
        elif named & own:
            score -= weight / 2  # it explains a part
    return score


def _of_weights(verdict: dict, p: Patch) -> float:
    """Whether more elements must come in, or fewer."""
    wrong = verdict.get("wrong") or {}
    weights = [d["weight"] for d in wrong.get("depends", []) if d["dim"] >= 0]
    missing = verdict.get("failure") == "incomplete" or (bool(weights) and all(w == 0 for w in weights))
    foreign = verdict.get("failure") == "out_of_bounds" or (bool(weights) and all(w is None or w > 1 for w in weights))
    if missing == foreign:
        return 0.0
    way = 1 if missing else -1
    return 2.0 * max(-1, min(1, way * p.wider))


def _of_extent(verdict: dict, p: Patch) -> float:
    """As many come in as are missing at the end."""
    found = re.search(r"the last (\d+) of dim", (verdict.get("wrong") or {}).get("details", ""))
    return 1.5 if found and int(found[1]) in p.shrinks else 0.0


def _of_rounding(verdict: dict, p: Patch) -> float:
    """What is too coarse wants fewer conversions and wider types."""
    if (verdict.get("wrong") or {}).get("relation") not in ("rounded", "rounded_input"):
        return 0.0
    calls = Counter(p.removed)["("] - Counter(p.added)["("]
    wide = ("float" in p.added or "double" in p.added) - ("float" in p.removed or "double" in p.removed)
    narrow = any(t in p.added for t in ("bf16", "f16", "half", "int"))
    return 1.5 * max(-1, min(1, calls)) + 1.5 * wide - 2.0 * narrow


def _of_lines(verdict: dict, p: Patch) -> float:
    """How near the patch is to the lines that diagnostics name."""
    best = 0.0
    for rank, d in enumerate(_diagnostics(verdict)):
        for line in _lines_of(d):
            for first, last in p.lines:
                far = max(first - line, line - last, 0)
                best = max(best, 3.0 / (1 + rank) * math.exp(-far / 4))
    return best


def _of_words(verdict: dict, p: Patch) -> float:
    """The instructions that help, expectation and finding name, and the storages of the lines that they speak of."""
    come = _words(" ".join(p.added)) - _words(" ".join(p.removed))
    if not come and not p.inserts:
        come = _words(" ".join(p.subjects))
    score = 0.0
    for rank, d in enumerate(_diagnostics(verdict)):
        told = _words(" ".join([*d.get("help", []), d.get("expected", "")]))
        quoted = _words(" ".join(re.findall(r"`([^`]*)`", " ".join([*d.get("help", []), d.get("expected", "")]))))
        about = _words(" ".join([d.get("message", ""), d.get("found", ""), *d.get("notes", [])[1:3]]))
        weight = 1.0 / (1 + rank)
        if come:
            score += weight * (3.0 * len(come & told) + 2.0 * len(come & quoted)) / math.sqrt(len(come))
            score += weight * 1.0 * len(come & about) / math.sqrt(len(come))
        gone = _words(" ".join(p.removed)) - _words(" ".join(p.added))
        score -= weight * 2.0 * len(gone & told)
        score += weight * (_number_after(d, p) + _numbers(d, p))
    return score


def _of_storage(verdict: dict, p: Patch) -> float:
    """Names of the author's lines that the diagnostics show, in what the patch changes."""
    score, own = 0.0, set(p.added + p.removed) | p.subjects
    for rank, d in enumerate(_diagnostics(verdict)):
        for label in d.get("labels", []):
            names = set(re.findall(r"\b([A-Za-z_]\w*)\b", label.get("source") or "")) - _KNOWN
            score += 0.7 / (1 + rank) * bool(names & own)
        quoted = set(
            re.findall(r"`([A-Za-z_]\w*)", d.get("message", "") + d.get("found", "") + " ".join(d.get("notes", [])[3:]))
        )
        score += 0.7 / (1 + rank) * bool(quoted & own)
    return score


def _of_order(verdict: dict, p: Patch) -> float:
    """What must come between two accesses stands between their lines, or behind the one that help names first."""
    score = 0.0
    for d in _diagnostics(verdict)[:1]:
        lines = _lines_of(d)
        if len(lines) > 1 and p.inserts:
            begin, end = min(lines[:2]), max(lines[:2])
            inside = all(begin < first <= end for first, _ in p.lines)
            score += 1.5 if inside else -0.5
            if inside and "after the access" in " ".join(d.get("help", [])):
                score += 1.5 * math.exp(-(min(first for first, _ in p.lines) - begin - 1) / 2)
    return score


def _of_strength(verdict: dict, p: Patch) -> float:
    """What is not ordered wants more waits, not fewer."""
    if not any(d.get("code", "").startswith("TS086") or d.get("code") == "TS0870" for d in _diagnostics(verdict)):
        return 0.0
    come, gone = Counter(p.added), Counter(p.removed)
    score = sum((come[w] > gone[w]) - 2.0 * (come[w] < gone[w]) for w in _STRENGTHENS)
    numbers = [[int(t) for t in side if t.isdigit()] for side in (p.removed, p.added)]
    if len(numbers[0]) == len(numbers[1]) == 1 and any(w.startswith("wait") for w in p.subjects):
        score += 1.5 if numbers[1] < numbers[0] else -1.5
    return score


def _of_size(verdict: dict, p: Patch) -> float:
    """Small patches first."""
    return -0.02 * len(p.added + p.removed)


def _of_idleness(verdict: dict, p: Patch) -> float:
    """A change that computes the same mends nothing, where there is something to mend."""
    return -3.0 if p.idle and verdict.get("failure", "none") != "none" else 0.0


_PARTS: tuple[Callable[[dict, Patch], float], ...] = (
    _of_advice,
    _of_names,
    _of_inputs,
    _of_weights,
    _of_extent,
    _of_rounding,
    _of_lines,
    _of_words,
    _of_storage,
    _of_order,
    _of_strength,
    _of_size,
    _of_idleness,
)


# What a wrong pick teaches.


def _learned(first: dict, tried: Patch, verdict: dict, p: Patch) -> float:
    alike = _alike(tried, p)
    more = set(tried.lines) < set(p.lines) and set(tried.added) <= set(p.added)
    if _signature(verdict) == _signature(first):
        return -3.0 * alike  # it changed nothing of what is wrong
    if _finding(verdict) != _finding(first):
        score = 1.5 * alike + (3.0 if more else 0.0)  # what was wrong is gone, and something else is
        if verdict.get("failure") in ("out_of_bounds", "invalid_access", "crash") and tried.wider > 0:
            score -= 1.5 * (p.wider > tried.wider)
        return score
    # The place has a part in what is wrong; other changes of it may do better.
    place = 1.0 if set(tried.lines) & set(p.lines) else 0.0
    return place + (alike if _amount(verdict) < _amount(first) else 0.0)


def _amount(verdict: dict) -> tuple:
    """How much is wrong: over how many indices inputs weigh otherwise, how many elements are off, and by how much."""
    wrong = verdict.get("wrong") or {}
    indices = sum(d["last"] - d["first"] + 1 for d in wrong.get("depends", []) if d["dim"] >= 0)
    return indices, wrong.get("count", 0), round(verdict.get("errors", {}).get("rms_error", 0.0), 1)


def _alike(a: Patch, b: Patch) -> float:
    """From 0 to 1: the same lines, the same tokens."""
    lines = bool(set(a.lines) & set(b.lines))
    tokens = max(_share(set(a.added), set(b.added)), _share(set(a.removed), set(b.removed)))
    return 0.6 * lines + 0.4 * tokens


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _finding(verdict: dict) -> tuple:
    told = _diagnostics(verdict)
    return verdict.get("failure"), told[0].get("code") if told else None, told[0].get("message") if told else None


def _signature(verdict: dict) -> tuple:
    wrong = verdict.get("wrong") or {}
    return *_finding(verdict), wrong.get("lies"), wrong.get("relation"), wrong.get("count"), wrong.get("found")


# Reading diagnostics.


def _diagnostics(verdict: dict) -> list[dict]:
    """Those that say different things, three at most."""
    out: list[dict] = []
    for d in verdict.get("diagnostics", []):
        if all((d.get("message"), _lines_of(d)) != (o.get("message"), _lines_of(o)) for o in out):
            out.append(d)
    return out[:3]


def _lines_of(d: dict) -> list[int]:
    lines = [label["line"] for label in d.get("labels", []) if label.get("line")]
    place = (d.get("place") or {}).get("line", 0)
    return lines or ([place] if place else [])


def _words(text: str) -> set[str]:
    found = set()
    for word in re.findall(r"[a-z]+", text.lower().replace("_", " ")):
        word = _MEANS.get(word, word)
        if word in _KNOWN:
            found.add(word)
    return found


def _numbers(d: dict, p: Patch) -> float:
    """Sizes that the diagnostic speaks of, which come in."""
    told = re.findall(r"\d+", " ".join([d.get("message", ""), d.get("expected", ""), *d.get("help", [])]))
    come = {t for t in set(p.added) - set(p.removed) if t.isdigit() and int(t) > 1}
    return 1.5 if come & set(told) else 0.0


def _number_after(d: dict, p: Patch) -> float:
    """An instruction with the number that help gives it."""
    for name, number in re.findall(r"`([\w.:]+)` (\d)", " ".join(d.get("help", []))):
        if _words(name) <= _words(" ".join(p.added)):
            return 2.0 if number in p.added else -2.0
    return 0.0
