"""Keyword arguments in one order: that of forward's signature, then those that `**others` takes, as they are given: forward sees their
order. A graph's inputs follow from it."""

from __future__ import annotations

import inspect

from torch import nn

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def signature_of(module: nn.Module) -> inspect.Signature | None:
    try:
        return inspect.signature(module.forward)
    except (TypeError, ValueError):
        return None


def ordered(signature: inspect.Signature | None, kwargs: dict) -> dict:
    named = [p.name for p in signature.parameters.values() if p.kind in _NAMED] if signature is not None else []
    first = {name: kwargs[name] for name in named if name in kwargs}
    return first | {name: kwargs[name] for name in kwargs if name not in first}
