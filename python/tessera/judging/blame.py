"""Which of a wrong module's patterns are to blame: those without which it is right."""

from __future__ import annotations

from collections.abc import Callable

_tries = 3  # of what went wrong once


def blamed(ids: list[str], wrong: Callable[[set[str]], str], why: str) -> tuple[list[tuple[str, str]], bool]:
    """Patterns with what was wrong while they ran, and whether they were found by what they do: False when it could not be
    made to happen again, and all are suspected. `wrong(off)`: what is wrong with the module whose patterns `off` run as
    ATen, "" when it is right; `why`: its answer with none off. No patterns when the module is wrong without any of them."""
    if wrong(set(ids)):
        return [], True
    found: list[tuple[str, str]] = []
    off: set[str] = set()
    tries = 0
    while why:
        rest = [i for i in ids if i not in off]
        first = _first_wrong(rest, lambda later: wrong(off | later))
        tries += 1
        if first is None and tries < _tries:
            continue
        if first is None:
            return [(i, why) for i in ids], False
        found.append((first, why))
        off.add(first)
        tries = 0
        why = wrong(off)
    return found, True


def _first_wrong(ids: list[str], wrong: Callable[[set[str]], str]) -> str | None:
    """The last of the shortest run of patterns from the front that is wrong with all behind it off."""
    right, bad = 0, len(ids)
    seen = False
    while bad - right > 1:
        middle = (right + bad) // 2
        if wrong(set(ids[middle:])):
            bad, seen = middle, True
        else:
            right = middle
    return ids[bad - 1] if ids and (seen or wrong(set(ids[bad:]))) else None
