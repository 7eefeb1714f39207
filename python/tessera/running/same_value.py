"""Whether one plain value stands for another: no program can tell them apart. `2.0` is not `2`, `-0.0` not `0.0`, and NaN is NaN."""

from __future__ import annotations

import functools
import numbers
import types

import torch

from tessera.running.watched import members_of


def same_value(then, now) -> bool:
    """What cannot be compared is another value."""
    if now is then:
        return True
    if type(now) is not type(then) or isinstance(then, torch.Tensor):
        return False
    if isinstance(then, numbers.Number) and not isinstance(then, int):
        return repr(then) == repr(now)  # the shortest text that gives the number back, with its sign
    if isinstance(then, (list, tuple)):
        return len(then) == len(now) and all(map(same_value, then, now))
    if isinstance(then, dict):
        return len(then) == len(now) and all(map(same_value, members_of(then), members_of(now)))
    if isinstance(then, (set, frozenset)):
        return then == now and {(type(x), repr(x)) for x in then} == {(type(x), repr(x)) for x in now}
    if (parts := _parts(then)) is not None:
        return same_value(parts, _parts(now))
    try:
        return bool(then == now)
    except Exception:  # of whatever kind: the comparison is a stranger's
        return False


def _parts(value) -> tuple | None:
    """Of what compares by identity, or by numbers that are equal, the parts that decide."""
    if isinstance(value, slice):
        return value.start, value.stop, value.step
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, types.MethodType):
        return value.__func__, id(value.__self__)
    return None
