"""What a patch is, by its text alone: which tokens it changes, where in a statement they stand, and in which direction.

It knows C++ and the kernel language as far as brackets, loops, declarations and calls go, and no kernel."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from dataclasses import dataclass, field

from wrong_kernels import Edit

_TOKEN = re.compile(
    r"\"[^\"]*\"|\d[\w.+]*?(?:[eE]-?\d+)?[fuUlL]*\b|[A-Za-z_]\w*|<=|>=|==|!=|\+=|-=|\*=|/=|\+\+|--|&&|\|\||//|\S"
)
_TYPES = {"float", "double", "int", "bf16", "f16", "half", "unsigned", "long", "f32", "char", "int64_t", "uint16_t"}
_WORD = re.compile(r"[A-Za-z_]\w*$")
_BRACKET = {"(": ")", "[": "]", "{": "}"}


def tokens(line: str) -> list[str]:
    return _TOKEN.findall(line.split("  # ")[0])


@dataclass
class Patch:
    """Of one edit. `facets`: what kind of place it changes, with weights; `wider`: over 0 if it lets more in, below if
    less."""

    facets: Counter = field(default_factory=Counter)
    lines: list[tuple[int, int]] = field(
        default_factory=list
    )  # [first, last] of the lines that it replaces or stands before
    tensors: set[int] = field(default_factory=set)  # that the lines name
    changed_tensors: set[int] = field(default_factory=set)  # that stand where something changes
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # parts of the names in its lines
    subjects: set[str] = field(default_factory=set)  # calls and storages whose arguments or indices change
    wider: int = 0
    shrinks: set[int] = field(default_factory=set)  # numbers that are no longer taken off, or are added
    inserts: bool = False  # lines come in and none goes
    idle: bool = False  # by its text the kernel computes the same


def read(edit: Edit) -> Patch:
    p = Patch()
    inserted = []
    for change in edit.changes:
        old, new = [t for line in change.old for t in tokens(line)], [t for line in change.new for t in tokens(line)]
        p.lines.append((change.line, change.line + max(0, len(change.old) - 1)))
        inserted.append(not change.old)
        _compare(p, old, new)
        p.tensors |= _tensors(old) | _tensors(new)
        p.names |= {w.lower() for t in old + new for w in t.split("_") if len(w) > 2}
    p.inserts = all(inserted)
    if len(edit.changes) > 1:
        p.facets["both places"] += 1
    if Counter(p.added) == Counter(p.removed) and p.added:
        p.facets["order"] += 1
    p.idle = _is_idle(p)
    return p


def _tensors(text: list[str]) -> set[int]:
    return {int(t[1:]) for t in text if re.fullmatch(r"t\d", t)}


def _compare(p: Patch, old: list[str], new: list[str]) -> None:
    for op, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            continue
        p.removed += old[a:b]
        p.added += new[c:d]
        for text, begin, end in ((old, a, b), (new, c, d)):
            place = _place(text, begin)
            p.facets[place] += 1
            p.changed_tensors |= _near(text, begin, end)
            p.subjects |= {part for _, word, at in _stack(text, begin) for part in _dotted(text, at)}
            for at in range(begin, end):
                _of_token(p, text, at, place)
        p.wider += _direction(old, new, a, b, c, d)
        p.shrinks |= _steps(old[a:b], "-") | _steps(new[c:d], "+")
    for facet in p.facets:
        p.facets[facet] = min(p.facets[facet], 2)


def _stack(text: list[str], at: int) -> list[tuple[str, str, int]]:
    """The brackets around a token: (bracket, the word before it, position)."""
    stack: list[tuple[str, str, int]] = []
    for i, t in enumerate(text[:at]):
        if t in _BRACKET:
            stack.append((t, text[i - 1] if i else "", i))
        elif t in _BRACKET.values() and stack:
            stack.pop()
    return stack


def _dotted(text: list[str], at: int) -> list[str]:
    """The name before a bracket: `wgmma.wait(` is two words."""
    words = []
    while at > 0 and (_WORD.match(text[at - 1]) or text[at - 1] == "."):
        at -= 1
        words.append(text[at])
    return [w for w in words if w != "."]


def _place(text: list[str], at: int) -> str:
    """What part of a statement a token stands in."""
    stack = _stack(text, at)
    for bracket, word, position in reversed(stack):
        if bracket == "[":
            return "index"
        if word == "for":
            return ("start", "bound", "step")[min(2, text[position:at].count(";"))]
        if word in ("range", "ring", "tiles", "parts"):
            return "bound"
        if word in ("if", "while"):
            return "condition"
    head = text[:at]
    if "=" in head and _is_pointer(text):
        return "index"
    if "=" in head and _declares(text):
        return "initial" if len(text) - text.index("=") <= 4 and "[" not in text else "value"
    if "?" in text and "=" in head:
        return "condition"
    return "value"


def _is_pointer(text: list[str]) -> bool:
    return "*" in text[: text.index("=")] and bool(_tensors(text))


def _declares(text: list[str]) -> bool:
    return any(t in _TYPES for t in text[: text.index("=")])


def _near(text: list[str], begin: int, end: int) -> set[int]:
    """The tensors in what changes, and the one that an index belongs to."""
    found = _tensors(text[max(0, begin) : end])
    for bracket, word, _ in _stack(text, begin):
        if bracket == "[" and re.fullmatch(r"t\d", word):
            found.add(int(word[1:]))
    if "=" in text[:begin] and _is_pointer(text):
        found |= _tensors(text)
    return found


def _of_token(p: Patch, text: list[str], at: int, place: str) -> None:
    token = text[at]
    if token in _TYPES:
        p.facets["type"] += 1
    if place == "index":
        return
    behind_operand = at > 0 and bool(re.match(r"[\w)\]]", text[at - 1])) and text[at - 1] != "return"
    if token in ("*", "/", "*=", "/="):
        p.facets["factor"] += 1
    elif token in "+-" and text[at + 1 : at + 2] and text[at + 1].isdigit():
        p.facets["bound"] += 1  # by a number
    elif token in ("+", "+="):
        p.facets["addend"] += 1
    elif token in ("-", "-=") and behind_operand:
        p.facets["sign"] += 1
    elif token in ("?", "if", "continue", "and", "or", "&&", "||"):
        p.facets["condition"] += 1
    elif token in ("(", ")"):
        p.facets["call"] += 1
    elif token.startswith("0x") or token in (">>", "isfinite"):
        p.facets["conversion"] += 1
    elif _WORD.match(token) and text[at + 1 : at + 2] == ["("]:
        p.facets["function"] += 1


def _direction(old: list[str], new: list[str], a: int, b: int, c: int, d: int) -> int:
    """Whether a bound or a condition lets more in: 1, or less: -1."""
    place = {_place(old, a), _place(new, c)}
    gone, come = old[a:b], new[c:d]
    if "if" in come or "?" in come or "%" in come:
        return -1
    if not place & {"bound", "condition", "start"}:
        return 0
    way = 0
    way += ("<=" in come) - ("<=" in gone) - ("<" in come) * ("<=" in gone)
    way += ("-" in gone) - ("-" in come)
    way += ("+" in come) - ("+" in gone)
    return -way if place == {"start"} else way


def _steps(text: list[str], signs: str) -> set[int]:
    """The numbers that are added or taken off."""
    return {int(b) for a, b in itertools.pairwise(text) if a in signs and b.isdigit()}


def _number(token: str) -> float | None:
    try:
        return float(token.rstrip("fuUlL"))
    except ValueError:
        return None


def _is_idle(p: Patch) -> bool:
    """Operands of a commutative operator that change places, a number written otherwise, a wider type of float."""
    gone, come = p.removed, p.added
    if len(gone) == len(come) == 1:
        a, b = _number(gone[0]), _number(come[0])
        if a is not None and b is not None:
            return abs(a - b) <= 1e-6 * abs(a)
    if set(come) <= {"double", "float", "(", ")", "std", ":"} and set(gone) <= {"float"}:
        return True
    if "index" in p.facets or "both places" in p.facets:
        return False
    return (
        bool(gone)
        and Counter(gone) == Counter(come)
        and all(_WORD.match(t) or t in "*+" for t in gone)
        and len(gone) <= 4
    )
