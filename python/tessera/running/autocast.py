"""Autocast around a call, made a part of what is traced: a graph holds the casts as ops, so it runs with autocast off, and stands for
the original only where autocast is on as it was."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator

import torch
from torch import nn

from tessera.common.errors import BY_GRAPHS, fail
from tessera.running.compose import ComposedModule
from tessera.running.guards import Miss

States = tuple[tuple[str, torch.dtype], ...]  # kind of device and dtype of each autocast that is on

_kinds = ("cpu", "cuda")


def states() -> States:
    return tuple((kind, torch.get_autocast_dtype(kind)) for kind in _kinds if torch.is_autocast_enabled(kind))


@contextlib.contextmanager
def entered(wanted: States) -> Iterator[None]:
    """These on, others off."""
    with contextlib.ExitStack() as stack:
        for kind, dtype in wanted:
            stack.enter_context(torch.autocast(kind, dtype))
        for kind, _ in states():
            if kind not in dict(wanted):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def under(module: nn.Module, wanted: States) -> nn.Module:
    """The same module, attribute by attribute, whose forward enters autocast by itself."""
    if not wanted:
        return module
    kind, own = type(module), module.__dict__.get("forward")
    if own is not None:
        raise fail(
            "TS0202",
            "graph.untraceable",
            "autocast is on, and the module has a forward of its own in the place of its class's",
            helps=["enter autocast within forward", BY_GRAPHS],
        )

    @functools.wraps(kind.forward)
    def entering(self, *args, **kwargs):
        with entered(wanted):
            return kind.forward(self, *args, **kwargs)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "forward": entering}
    made = object.__new__(type(kind.__name__, (kind,), names))
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


def written_into(gm: torch.fx.GraphModule, wanted: States) -> torch.fx.GraphModule:
    """A captured graph that enters autocast by itself, as Dynamo writes it where forward does."""
    if not wanted:
        return gm
    from torch.amp.autocast_mode import _enter_autocast, _exit_autocast

    made = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
    first = next(n for n in made.graph.nodes if n.op != "placeholder")
    with made.graph.inserting_before(first):
        inside = [made.graph.call_function(_enter_autocast, (kind, dtype, True, None)) for kind, dtype in wanted]
    with made.graph.inserting_before(made.graph.output_node()):
        for node in reversed(inside):
            made.graph.call_function(_exit_autocast, (node,))
    made.recompile()
    return made


class UnderAutocast(ComposedModule):
    """A composed module of `under(module, wanted)` that stands for the module itself."""

    @classmethod
    def of(cls, composed: ComposedModule, module: nn.Module, wanted: States) -> ComposedModule:
        if not wanted:
            return composed
        composed.__class__ = cls
        composed.__dict__.update(original=module, _wanted=wanted)
        composed.__dict__["_own"] = composed._own | {"_wanted"}
        return composed

    def forward(self, *args, **kwargs):
        if (now := states()) != self._wanted:
            self._counts.calls += 1
            miss = Miss("autocast", f"autocast is {_text(now)}; it was {_text(self._wanted)} when traced")
            self._events.add(miss, "the original module runs")
            return self.original(*args, **kwargs)
        with entered(()):
            return super().forward(*args, **kwargs)

    def _fall_back(self, miss: Miss, args, kwargs):
        with entered(self._wanted):
            return super()._fall_back(miss, args, kwargs)

    def _again(self, original: nn.Module, **changes) -> ComposedModule:
        made = ComposedModule(under(original, self._wanted), self.plan, **{**self._options(), **changes})
        return UnderAutocast.of(made, original, self._wanted)

    def __reduce__(self):
        return _restored, (self.original, self.plan, self._options(), self._wanted)


def _restored(original: nn.Module, plan: dict, options: dict, wanted: States) -> ComposedModule:
    return UnderAutocast.of(ComposedModule(under(original, wanted), plan, **options), original, wanted)


def _text(now: States) -> str:
    return ", ".join(f"{str(dtype).removeprefix('torch.')} on {kind}" for kind, dtype in now) or "off"
