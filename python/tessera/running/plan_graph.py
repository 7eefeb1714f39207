"""A plan (docs/protocol.md, tessera.plan/1) as torch.fx graph modules.

`build` makes two: `pack`, which computes the values that are kept from call to call, and `main`, which computes the module's
outputs from its inputs, those values, and parameters. Everything that they read is a placeholder, so neither holds a tensor.
What becomes of the plan's prepacked values is said in packing.py. Whatever a step does not produce itself is emitted on demand
as the ATen calls of the graph's nodes; so a pattern whose kernel is missing or switched off runs as the ATen calls that it
stands for, with no special case.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import fx

from tessera.common import flex_calls
from tessera.common.arguments import tensor_arguments
from tessera.common.errors import Error, fail
from tessera.common.laid import in_layout
from tessera.common.reference import (
    attention_results,
    cloned_result,
    keeps_layout,
    may_lie_otherwise,
    overload,
)
from tessera.running import library, library_steps
from tessera.running.extension import KernelSpec, Operator, TensorType
from tessera.running.extension import operator as kernel_operator
from tessera.running.packing import Packing, kept_and_neighbours
from tessera.running.results import Completed, Ending, Lent, lent_results, may_alias, shared_results, strides_of_results
from tessera.running.whole_ops import whole
from tessera.running.written_forms import form_of


@dataclass
class PatternUse:
    """One pattern of the plan in a composed module."""

    id: str
    rule: str
    realizer: str
    kind: str  # "synthesized" or "library"
    label: str
    nodes: list[str]
    active: bool = True
    reason: str = ""  # why it is not active
    operator: Operator | None = None


@dataclass
class Built:
    main: fx.GraphModule
    # The value of each placeholder of `main`: user inputs first, then state, what `pack` makes, and neighbours.
    feeds: list[str]
    pack: fx.GraphModule | None
    pack_feeds: list[str]
    packed: list[str]  # the values that `pack` returns
    neighbours: dict[str, tuple[str, ...]]  # value: the parameters whose concatenation along dim 0 it is
    patterns: list[PatternUse] = field(default_factory=list)
    leftover: list[dict] = field(default_factory=list)
    # By result: what is taken from a feed, which `main` does not return.
    lent: list[Lent | None] = field(default_factory=list)
    strides: list[list[int]] | None = None  # of the results
    shared: list[dict[int, int]] = field(default_factory=list)  # results that lie in one memory

    def completed(self, run: Callable) -> Callable:
        """`main`, or what runs it, with all results of the graph as the module lays them out."""
        if not self.strides and not any(self.lent):
            return run
        return Completed(run, self.lent, self.feeds, self.strides, self.shared)


def dtype_of(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise fail("TS0213", "graph.unknown_dtype", f"no element type `{name}` in this torch")
    return dtype


def type_of(value: dict) -> TensorType:
    return TensorType(dtype_of(value["dtype"]), tuple(value["shape"]), tuple(value["strides"]))


def device_of(value: dict, device: torch.device) -> torch.device:
    """Where a value lies: a graph may have some elsewhere than on its own `device`, as scalars on the host."""
    return torch.device(value["device"]) if "device" in value else device


_enums = {torch.memory_format: "memory_format", torch.layout: "layout"}


def _plain(value, schema_type: str):
    """An argument of the graph's JSON to what the operator takes. Tensors are handled by the caller."""
    if isinstance(value, dict):
        if "dtype" in value:
            return dtype_of(value["dtype"])
        if "float" in value:
            return float(value["float"])
    if isinstance(value, str):
        found = getattr(torch, value.removeprefix("torch."), None)
        if type(found) in _enums and value not in ("", "none"):
            return found
    return value


class _Emitter:
    """Emits nodes into one fx graph; `have` maps value names to fx nodes, `feed` makes placeholders on demand."""

    def __init__(self, graph: dict, outside: set[str]):
        self.values = {v["name"]: v for v in graph["values"]}
        self.whole_ops, self.absorbed = whole(graph)
        self.producer = {name: node for node in graph["nodes"] for name in node["outputs"]} | self.whole_ops
        self.device = torch.device(graph.get("device", "cpu"))
        self.outside = outside  # values that come in as placeholders
        self.fx = fx.Graph()
        self.have: dict[str, fx.Node] = {}
        self.feeds: list[str] = []
        self.shareable = _shareable(graph)

    def get(self, value: str) -> fx.Node:
        """The fx node of a value; its producers are emitted first. Iterative: chains may be deeper than the stack."""
        pending = [value]
        while pending:
            name = pending[-1]
            if name in self.have:
                pending.pop()
            elif name in self.outside:
                self._feed(name)
            elif name not in self.producer:
                raise fail("TS0214", "plan.malformed", f"the plan needs the value `{name}`, which nothing produces")
            else:
                missing = [t for t in tensor_arguments(self.producer[name]) if t not in self.have]
                if missing:
                    pending += missing
                else:
                    self._emit(self.producer[name])
        return self.have[value]

    def _feed(self, name: str) -> None:
        first = next((n for n in self.fx.nodes if n.op != "placeholder"), None)
        with self.fx.inserting_before(first) if first else nullcontext():
            self.have[name] = self.fx.placeholder(f"v_{_identifier(name)}")
        self.feeds.append(name)

    def _emit(self, node: dict) -> None:
        if (source := cloned_result(node, self.shareable)) is not None:
            shared = self.have[source]
            if not keeps_layout(node):
                shared = self.fx.call_function(_contiguous, (shared,))
            self.results(node["outputs"], shared, False)
            return
        op = overload(node["op"])
        args, kwargs = [], {}
        for a in op._schema.arguments:
            if a.name not in node["arguments"]:
                if not a.has_default_value():
                    raise fail("TS0214", "plan.malformed", f"node `{node['name']}` lacks the argument `{a.name}`")
                value = a.default_value
            else:
                value = self._argument(node["arguments"][a.name], str(a.type), node)
            if a.kwarg_only:
                kwargs[a.name] = value
            else:
                args.append(value)
        made = self.fx.call_function(form_of(node, self.device) or op, tuple(args), kwargs)
        several = len(op._schema.returns) > 1 or str(op._schema.returns[0].type).startswith("List[")
        # The ops that the module has written give a whole op's layout already.
        if node["outputs"][0] not in self.whole_ops and may_lie_otherwise(node, self.values):
            value = self.values[node["outputs"][0]]
            made = self.fx.call_function(in_layout, (made, value["shape"], value["strides"]))
        self.results(node["outputs"], made, several)

    def _argument(self, value, schema_type: str, node: dict):
        if isinstance(value, list):
            return [self._argument(v, schema_type, node) for v in value]
        if isinstance(value, dict) and "value" in value:
            return self.have[value["value"]]
        if isinstance(value, str) and "Device" in schema_type:
            return device_of(self.values[node["outputs"][0]], self.device)
        return _plain(value, schema_type)

    def results(self, names: list[str], made: fx.Node, several: bool) -> None:
        """Names the result of a call, or its parts."""
        if not several:
            self.have[names[0]] = made
            return
        for i, name in enumerate(names):
            if name:
                self.have[name] = self.fx.call_function(operator.getitem, (made, i))


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_contiguous() else tensor.clone(memory_format=torch.contiguous_format)


_contiguous.passes_memory = True


def _shareable(graph: dict) -> dict[str, str]:
    """Views of attention's results whose clones may be the results themselves: written-out attention copies where torch's
    kernels have written in that layout already. Not those whose memory the caller sees besides the clone."""
    own = attention_results(graph["nodes"])
    seen = {*graph["outputs"], *(m["value"] for m in graph.get("mutations", ()))}
    for node in reversed(graph["nodes"]) if own else ():  # what those may be views of
        if seen & set(node["outputs"]) and may_alias(node["op"]):
            seen.update(tensor_arguments(node))
    kept = {own[v] for v in seen if v in own}
    clones = [(cloned_result(n, own), n["outputs"][0]) for n in graph["nodes"] if n["outputs"]]
    roots = [own[source] for source, name in clones if source is not None and name in seen]
    kept |= {root for root in roots if roots.count(root) > 1}
    return {view: root for view, root in own.items() if root not in kept}


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def passed(step: dict) -> list[str]:
    """The values that a kernel is given. In the place of one that it is spared (it never looks at it, and nobody computes it)
    stands its first."""
    spared = set(step.get("spared", ()))
    return [step["inputs"][0] if i in spared else name for i, name in enumerate(step["inputs"])]


def kernel_spec(step: dict, values: dict[str, dict]) -> KernelSpec:
    c = step["candidate"]
    return KernelSpec(
        stem=step["pattern"].get("rule", "kernel"),
        library=c["library"],
        sha=c.get("sha") or "",
        ints=tuple(int(i) for i in c.get("launch", {}).get("ints", ())),
        inputs=tuple(type_of(values[name]) for name in passed(step)),
        outputs=tuple(type_of(o) for o in step["outputs"]),
    )


def _use(step: dict) -> PatternUse:
    p, c = step["pattern"], step.get("candidate", {})
    return PatternUse(
        id=p["id"],
        rule=p.get("rule", ""),
        realizer=c.get("realizer", ""),
        kind=c.get("kind", ""),
        label=c.get("label", ""),
        nodes=list(p.get("nodes", ())),
    )


def _library_function(step: dict, graph: dict):
    """A call step as a function of tensors that returns a tensor or a tuple. Errors: TS0430, TS0431."""
    call = step["candidate"]["call"]
    pattern = {"inputs": step["inputs"], "outputs": [o["value"] for o in step["outputs"]], **step["pattern"]}
    run = library.make(call["function"], pattern, call.get("arguments") or {}, graph, graph.get("device", "cpu"))

    def library_call(*tensors):
        made = run(list(tensors))
        return made[0] if len(made) == 1 else tuple(made)

    return library_call


def _emit_step(e: _Emitter, step: dict, use: PatternUse, graph: dict) -> None:
    """A kernel or call step; where it cannot run, the use says why and its values are left to ATen."""
    names = [o["value"] for o in step["outputs"]]
    if step["kind"] == "call" and step["candidate"]["call"]["function"] == "aten":
        return  # the pattern's own ATen calls, emitted on demand
    try:
        if step["kind"] == "kernel":
            use.operator = kernel_operator(kernel_spec(step, e.values))
            function = use.operator.op
        else:
            function = _library_function(step, graph)
    except Error as error:
        use.active, use.reason = False, str(error)
        return
    given = tuple(e.get(v) for v in passed(step))
    made = library_steps.emit(e.fx, step, e.values, list(given)) if step["kind"] == "call" else None
    e.results(names, e.fx.call_function(function, given) if made is None else made, len(names) > 1)


def build(plan: dict, *, disabled: frozenset[str] = frozenset(), packing: Packing = Packing()) -> Built:  # noqa: B008
    """`disabled`: ids of patterns to run as ATen. Errors: TS02xx for a malformed plan."""
    graph = plan["graph"]
    flex_calls.define(graph.get("meta", {}).get("calls", {}))
    inputs = set(graph["inputs"])
    kept, neighbours = kept_and_neighbours(plan, packing)
    pack = _Emitter(graph, inputs)
    main = _Emitter(graph, inputs | kept | neighbours.keys())
    for name in graph["inputs"]:  # user inputs come first, so that a call passes them on as they are
        if main.values[name]["origin"] == "user_input":
            main.get(name)
    patterns = []
    for step in plan["steps"]:
        if step["kind"] in ("kernel", "call"):
            use = _use(step)
            patterns.append(use)
            if use.id in disabled:
                use.active, use.reason = False, "switched off"
            else:
                _emit_step(main, step, use, graph)
        elif step["kind"] == "aten":
            node = next((n for n in graph["nodes"] if n["name"] == step["node"]), None)
            if node is None:
                raise fail(
                    "TS0214", "plan.malformed", f"the plan runs the node `{step['node']}`, which the graph lacks"
                )
            if node["name"] in main.absorbed:
                continue  # whoever needs it all the same asks for it
            for name in filter(None, node["outputs"]):
                main.get(name)
        elif step["kind"] != "prepack":
            raise fail(
                "TS0214", "plan.malformed", f"a step of kind `{step['kind']}`", expected="prepack, kernel, call or aten"
            )
    lent = lent_results(graph)
    for of in lent:
        if of is not None and of.result is None:
            main.get(of.feed)
    ending = Ending(main.fx, graph)
    returned = tuple(ending.results(main.get))
    ending.writes(main.get)
    main.fx.output(returned)
    packed = [v for v in main.feeds if v in kept]  # what only other kept values are made from is not kept
    pack_module = None
    if packed:
        pack.fx.output(tuple(pack.get(v) for v in packed))
        pack_module = fx.GraphModule({}, pack.fx)
    return Built(
        fx.GraphModule({}, main.fx),
        main.feeds,
        pack_module,
        pack.feeds if packed else [],
        packed,
        {v: parts for v, parts in neighbours.items() if v in main.feeds},
        patterns,
        list(plan.get("leftover", ())),
        lent,
        strides_of_results(graph),
        shared_results(graph),
    )


def build_pattern(graph: dict, inputs: list[str], outputs: list[str]) -> fx.GraphModule:
    """The ATen calls between these values of a graph: a function of the inputs, in their order, to a tuple of the outputs. What
    they read besides are buffers and constants of equal elements, of which the graph holds the number."""
    e = _Emitter(graph, set(inputs))
    for name in inputs:
        e.get(name)
    for name, value in e.values.items():
        if name not in e.outside and name not in e.producer and "scalar" in (value.get("facts") or {}):
            e.outside.add(name)
    made = tuple(e.get(name) for name in outputs)
    for name in e.feeds[len(inputs) :]:
        _write_out(e, e.have[name], e.values[name])
    e.fx.output(made)
    return fx.GraphModule({}, e.fx)


def _write_out(e: _Emitter, fed: fx.Node, value: dict) -> None:
    """A value of equal elements in the place of a placeholder."""
    number, dtype = float(value["facts"]["scalar"]), dtype_of(value["dtype"])
    aten = torch.ops.aten
    with e.fx.inserting_before(next(n for n in e.fx.nodes if n.op != "placeholder")):
        # Types of one byte cannot be filled everywhere.
        filled = torch.float32 if dtype.itemsize == 1 else dtype
        settings = {"dtype": filled, "device": device_of(value, e.device)}
        made = e.fx.call_function(aten.full.default, (value["shape"], number), settings)
        if filled is not dtype:
            made = e.fx.call_function(aten.to.dtype, (made, dtype))
    fed.replace_all_uses_with(made)
    e.fx.erase_node(fed)
