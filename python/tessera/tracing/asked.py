"""What one call shows of the user's code: which functions it runs, and what it asks tensors that a trace answers once (whether they record
gradients, where they begin in their memory, what number stands in one that is nobody's buffer).

A call is looked at while it runs, so that it does not matter by which road code comes to a tensor. What libraries ask is theirs.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator

import torch
from torch import nn
from torch._dynamo import eval_frame
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from tessera.common.errors import BY_GRAPHS, fail
from tessera.running.code_reads import CodeReads, Ran, key_of, of_library
from tessera.tracing.python_state import MOST_NAMED, fails, listed

_attributes = ("requires_grad", "grad", "grad_fn", "is_leaf", "_base", "_version", "_grad")
_methods = ("storage_offset", "storage", "untyped_storage", "_typed_storage", "is_inference", "data_ptr", "is_shared")
_methods += ("is_pinned", "_is_view")
_contents = ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__")
_contents += ("__contains__",)
_in_place = re.compile(r"\w*[a-z0-9]_|__setitem__|__i\w+__")
_compiled = "compile_wrapper"  # what calls a function that torch.compile made
_kept = 1 << 12  # elements of a result that may be asked for its content


class _Asked(TorchFunctionMode):
    """`seen`: questions whose answers another call may find changed, as `requires_grad`. `guarded`: tensors whose gradients guards watch."""

    def __init__(self, guarded: set[int]):
        super().__init__()
        self.seen: dict[str, None] = {}
        self._guarded = guarded
        self._made: dict[int, torch.Tensor] = {}  # of numbers alone, by identity

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = func.__name__
        if name == "__get__":
            name = getattr(func.__self__, "__name__", "")
            asks = name in _attributes and not (name in ("grad", "requires_grad") and id(args[0]) in self._guarded)
        else:
            asks = name in _methods or (name in _contents and bool(args) and id(args[0]) not in self._made)
        if asks and not of_library(sys._getframe(1).f_globals.get("__name__", "builtins")):
            self.seen.setdefault(name)
        result = func(*args, **(kwargs or {}))
        given = (t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
        if all(id(t) in self._made for t in given):
            made = [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.numel() <= _kept]
            self._made.update((id(t), t) for t in made)
        elif _in_place.fullmatch(name):
            self._made.pop(id(args[0]), None)
        return result


@contextlib.contextmanager
def _running() -> Iterator[set]:
    """Gets the keys of the functions that run in this thread. A profiler that is there is told, too."""
    found, before = set(), sys.getprofile()

    def see(frame, event: str, argument) -> None:
        if event == "call":
            found.add(key_of(frame.f_code))
        if before is not None:
            before(frame, event, argument)

    sys.setprofile(see)
    try:
        yield found
    finally:
        sys.setprofile(before)


def look(module: nn.Module, args: tuple, kwargs: dict) -> tuple[list[str], Ran]:
    """What a call asks, by names, in its order; and what it runs, if that is known: what was compiled runs functions as one. The call
    leaves nothing behind; of one that raises nothing is known."""
    with _Asked({id(p) for p in module.parameters()}) as mode, _running() as ran:
        failed = fails(module, args, kwargs)
    if failed:
        return [], None
    compiled = any(file == eval_frame.__file__ and name == _compiled for file, _, name in ran)
    return list(mode.seen), None if compiled else frozenset(ran)


def refuse_unseen(module: nn.Module, args: tuple, kwargs: dict) -> Ran:
    """What a call runs. Error TS0202 where that reads what may change without a guard of ours seeing it; Dynamo follows such code and
    guards it."""
    questions, ran = look(module, args, kwargs)
    reasons = [f"forward reads {what}" for what in CodeReads(module, ran=ran).unseen[:MOST_NAMED]]
    if not reasons and questions:
        reasons = [f"forward asks a tensor for {listed(questions)}"]
    if reasons:
        raise fail(
            "TS0202",
            "graph.untraceable",
            f"another call may compute something else, and a trace holds one answer: {'; '.join(reasons)}",
            helps=["without it the module can be traced", BY_GRAPHS],
        )
    return ran
