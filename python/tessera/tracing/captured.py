"""A graph that torch.compile captured, as a traced module, and a composed module as the function of flat inputs that torch.compile
calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from torch.autograd import forward_ad

from tessera.running import leftover, neighbours
from tessera.running.compose import ComposedModule
from tessera.running.guards import Miss
from tessera.tracing.held import Held, describe_device
from tessera.tracing.tracer import trace_graph_module


class Captured(nn.Module):
    """A captured graph whose weights are buffers and whose forward takes the rest: what a traced module looks like."""

    def __init__(self, gm: torch.fx.GraphModule, names: list[str], inputs: list):
        super().__init__()
        self.__dict__["gm"], self.names = gm, names  # "" for a placeholder that is no weight
        self._buffers.update({name: t for name, t in zip(names, inputs, strict=True) if name})

    def flat(self, rest: tuple) -> list:
        rest = iter(rest)
        return [self._buffers[name] if name else next(rest) for name in self.names]

    def forward(self, *rest):
        return self.gm.forward(*self.flat(rest))


class HeldGraph(Held):
    """A captured graph with its first inputs; `inductor(*flat)` is what plain torch.compile would run."""

    def _changing(self) -> dict[str, torch.Tensor]:
        """Weights are buffers of a captured graph; few are written to, and copies of all would take their memory again."""
        return {name: self.module._buffers[name] for name in self.written()}

    def inductor(self) -> Callable:
        if self._compiled is None:
            with torch.no_grad():  # as it is called; compiled where gradients are recorded, results would ask for them
                self._compiled = leftover.compile_inductor(self.module.gm, self._inputs, self.options["inductor"])
            self._inputs = None
        return self._compiled

    def torch_runner(self, name: str) -> Callable:
        if name == "eager":
            return self.module
        compiled, module = self.inductor(), self.module
        return lambda *rest: compiled(*module.flat(rest))


def hold_graph(gm: torch.fx.GraphModule, inputs: list, settings: dict) -> HeldGraph:
    """Weights are the inputs that are parameters. `settings`: Inductor's."""
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    names = [n.name if isinstance(t, nn.Parameter) else "" for n, t in zip(placeholders, inputs, strict=True)]
    traced = trace_graph_module(gm, inputs, names)
    module = Captured(gm, names, inputs)
    users = [u for u, name in zip(traced.user_inputs, names, strict=True) if not name]
    traced = replace(traced, module=module, user_inputs=users)
    describe_device(traced.graph)
    rest = tuple(t for name, t in zip(names, inputs, strict=True) if not name)
    inputs_of_call = [n for n, name in zip(placeholders, names, strict=True) if not name]
    lasting = tuple(i for i, n in enumerate(inputs_of_call) if _keeps_its_address(n))
    options = {"inductor": settings, "captured": lasting}
    held = HeldGraph(module, rest, {}, traced, resizable=False, options=options)
    held._compiled, held._inputs = None, inputs
    return held


def _keeps_its_address(placeholder: torch.fx.Node) -> bool:
    """As Dynamo notes of buffers, and of what torch._dynamo.mark_static_address was called for."""
    return bool(placeholder.meta.get("tensor_dict", {}).get("_dynamo_static_input_type"))


class FlatCall:
    """The plan on a captured graph's flat inputs. torch.compile guards shapes, types, modes, attributes and which arguments are one
    object; what is left to look at is torch's precision flag, forward-mode AD, tensors that are negated lazily, memory that the graph
    writes to and arguments share, and whether weights lie where kernels read several as one."""

    def __init__(self, composed: ComposedModule, held: HeldGraph):
        built = composed._built
        place = {value: i for i, value in enumerate(_values_of(composed, held.module.names)) if value}
        self.composed, self._held = composed, held
        self._from = [place.get(value, -1) for value in built.feeds]
        self._joined = [
            (i, [place[part] for part in built.neighbours[v]])
            for i, v in enumerate(built.feeds)
            if v in built.neighbours
        ]
        fixed = {**composed._constants, **composed._feeds.packed}
        self._fixed = [(i, fixed[v]) for i, v in enumerate(built.feeds) if v in fixed and v not in place]
        self._runner, self._wholes, self._rooms = composed._runner, {}, composed._feeds.rooms
        self._wrap = composed._wrap  # a graph may return numbers, too
        self._memory = composed._guard.memory
        self._named = [(value, place[value]) for value in self._memory.names]
        self._weights = [(value, i) for value, i in place.items() if value not in self._memory.names]

    def __call__(self, *flat):
        composed = self.composed
        composed._counts.calls += 1
        if (miss := composed._state.precision()) is not None:
            composed._events.add(miss, "Inductor runs the graph")
            return self._held.inductor()(*flat)
        if (miss := self._unguarded(flat)) is not None:
            composed._events.add(miss, "the graph runs op by op")
            return self._held.module.gm.forward(*flat)
        values = [flat[i] if i >= 0 else None for i in self._from]
        for i, tensor in self._fixed:
            values[i] = tensor
        for i, parts in self._joined:
            values[i] = self._join(i, [flat[p] for p in parts])
        return self._wrap(self._runner(*values))

    def _unguarded(self, flat: tuple) -> Miss | None:
        if forward_ad._current_level >= 0:
            return Miss("transform", "tangents may be recorded; kernels have none")
        if any(flat[i].is_neg() for _, i in self._named):
            return Miss("type", "an argument is negated where it is read; kernels read its memory")
        return self._overlap(flat) if self._memory.writes else None

    def _overlap(self, flat: tuple) -> Miss | None:
        return self._memory.overlap([flat[i] for _, i in self._named], [(v, flat[i]) for v, i in self._weights])

    def _join(self, i: int, parts: list[torch.Tensor]) -> torch.Tensor:
        pointers = [t.data_ptr() for t in parts]
        known = self._wholes.get(i)
        if known is not None and known[0] == pointers:
            return known[1]
        whole = neighbours.adopt(parts, given_up=[known[1]] if known else [])
        if whole is None:
            self._wholes.pop(i, None)
            return neighbours.concatenated(parts, self._rooms, i)
        self._wholes[i] = ([t.data_ptr() for t in parts], whole)
        return whole


def _values_of(composed: ComposedModule, names: list[str]) -> list[str]:
    """The graph's value of every flat input."""
    graph = composed.plan["graph"]
    weights = {v["target"]: v["name"] for v in graph["values"] if v.get("target") and v["origin"] == "parameter"}
    users = iter([n for n in graph["inputs"] if composed._values[n]["origin"] == "user_input"])
    return [weights.get(name, "") if name else next(users) for name in names]
