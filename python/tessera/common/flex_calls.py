"""FlexAttention in a traced graph: a call with functions of scores and masks in it becomes one operator of ours, on tensors alone.

The functions are graphs themselves, which tessera's graphs have no word for. What is around such a call is searched as in any
other module; the call is PyTorch's. Where Inductor compiles what is left, it gets the call back as it was (`opened`). Elsewhere
the operator runs it compiled by Inductor, as FlexAttention is meant to run; in another type than it was traced with, as in
float64 when rewrites are checked, it runs as eager PyTorch does, which computes all scores.

A graph's `meta.calls` says what its operators mean: {name: {"functions": [{"inputs", "nodes": [{"op", "arguments", "options"}],
"result"}], "arguments", "options", "results", "dtypes"}}. An argument is a number, a string, null, a list, or one of {"tensor": i},
{"function": i}, {"input": i}, {"node": i}, {"tuple"}, {"mapping"}, {"float"}, {"dtype"}, {"device"}. `results`: which of the call's
results the operator returns; `dtypes`: of the tensors that it takes. The name is the hash of it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import operator
import threading
from dataclasses import dataclass, field

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from tessera.common.errors import fail

FLEX = torch.ops.higher_order.flex_attention
_PREFIX = "flex_attention_"
NAMESPACES = ("aten", "prims")  # of the ops in functions


@dataclass
class _Call:
    """One call: `module` maps its tensors to a tuple of those of its results that are used."""

    meaning: dict
    module: fx.GraphModule
    compiled: dict = field(default_factory=dict)  # by the tensors' shapes, strides and devices
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, tensors: list[torch.Tensor]):
        as_traced = name_of(tensors[0].dtype) == self.meaning["dtypes"][0]
        if as_traced and not isinstance(tensors[0], FakeTensor):
            made = self._by_inductor(tensors)(*tensors)
        else:
            made = self.module(*tensors)
        return tuple(made) if len(made) > 1 else made[0]

    def _by_inductor(self, tensors: list[torch.Tensor]):
        from torch._inductor.compile_fx import compile_fx

        key = tuple((t.shape, t.stride(), t.device) for t in tensors)
        with self.lock:
            if key not in self.compiled:
                own = fx.GraphModule(self.module, copy.deepcopy(self.module.graph))  # the compiler may change it
                # Not as a part of what torch.compile may be tracing at the moment.
                with torch.no_grad(), torch._guards.tracing(None):
                    self.compiled[key] = compile_fx(own, list(tensors))
            return self.compiled[key]


_calls: dict[str, _Call] = {}  # by the operator's name
_defining = threading.Lock()


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def define(meanings: dict[str, dict]) -> None:
    """Makes the operators of a graph's `meta.calls`."""
    for meaning in meanings.values():
        defined(meaning)


def defined(meaning: dict) -> tuple[str, object]:
    """The operator that means this, and its name."""
    text = json.dumps(meaning, sort_keys=True)
    name = _PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]
    with _defining:
        if name not in _calls:
            _calls[name] = call = _Call(meaning, _module(meaning))
            several = len(meaning["results"])
            returns = f"({', '.join(['Tensor'] * several)})" if several > 1 else "Tensor"
            torch.library.define(f"tessera::{name}", f"(Tensor[] tensors) -> {returns}")
            torch.library.impl(f"tessera::{name}", "CompositeExplicitAutograd", call)
            torch.library.register_fake(f"tessera::{name}", call)
    return name, getattr(torch.ops.tessera, name).default


def _module(meaning: dict) -> fx.GraphModule:
    """The call as a module of its tensors."""
    graph, root = fx.Graph(), torch.nn.Module()
    tensors = [graph.placeholder(f"t{i}") for i in range(len(meaning["dtypes"]))]
    functions = []
    for i, function in enumerate(meaning["functions"]):
        root.add_module(f"function{i}", _callable(function))
        functions.append(graph.get_attr(f"function{i}"))
    words = {"tensor": tensors, "function": functions}
    args = tuple(_decoded(a, words) for a in meaning["arguments"])
    kwargs = {key: _decoded(a, words) for key, a in meaning["options"].items()}
    made = graph.call_function(FLEX, args, kwargs)
    graph.output(tuple(graph.call_function(operator.getitem, (made, i)) for i in meaning["results"]))
    return fx.GraphModule(root, graph)


def _callable(function: dict) -> fx.GraphModule:
    graph = fx.Graph()
    words = {"input": [graph.placeholder(f"i{i}") for i in range(function["inputs"])], "node": []}
    for node in function["nodes"]:
        op = _op(node["op"])
        args = tuple(_decoded(a, words) for a in node["arguments"])
        kwargs = {key: _decoded(a, words) for key, a in node["options"].items()}
        words["node"].append(graph.call_function(op, args, kwargs))
    graph.output(_decoded(function["result"], words))
    return fx.GraphModule(torch.nn.Module(), graph)


def _op(text: str):
    namespace, _, rest = text.partition(".")
    name, _, overload = rest.partition(".")
    found = (
        getattr(getattr(getattr(torch.ops, namespace), name, None), overload, None) if namespace in NAMESPACES else None
    )
    if found is None:
        raise fail(
            "TS0214",
            "plan.malformed",
            f"a function in FlexAttention calls `{text}`",
            expected=f"an op of {' or '.join(NAMESPACES)} that this PyTorch ({torch.__version__}) has",
        )
    return found


def _decoded(word, words: dict[str, list]):
    if isinstance(word, list):
        return [_decoded(w, words) for w in word]
    if not isinstance(word, dict):
        return word
    ((kind, what),) = word.items()
    if kind in words:
        return words[kind][what]
    if kind == "tuple":
        return tuple(_decoded(w, words) for w in what)
    if kind == "mapping":
        return {key: _decoded(w, words) for key, w in what.items()}
    if kind == "dtype" and isinstance(getattr(torch, what, None), torch.dtype):
        return getattr(torch, what)
    return {"float": float, "device": torch.device}[kind](what)


def opened(main: fx.GraphModule) -> fx.GraphModule:
    """A graph with such operators, with the calls that they stand for in their place; another graph as it is. The one that is
    given stays as it was."""
    if not any(_of(n) for n in main.graph.nodes):
        return main
    graph, root = fx.Graph(), torch.nn.Module()
    graph.output(graph.graph_copy(main.graph, {}))
    for name, child in main.named_children():
        root.add_module(name, child)
    for i, node in enumerate([n for n in graph.nodes if _of(n)]):
        made = _opened(node, root, f"flex{i}_")
        if len(made) > 1:
            for getter in list(node.users):
                getter.replace_all_uses_with(made[getter.args[1]])
                graph.erase_node(getter)
        else:
            node.replace_all_uses_with(made[0])
        graph.erase_node(node)
    return fx.GraphModule(root, graph)


def _opened(node: fx.Node, root: torch.nn.Module, prefix: str) -> list[fx.Node]:
    module = _of(node).module
    of = dict(zip([n for n in module.graph.nodes if n.op == "placeholder"], node.args[0], strict=True))
    with node.graph.inserting_before(node):
        for part in module.graph.nodes:
            if part.op == "get_attr":
                root.add_module(prefix + part.target, getattr(module, part.target))
                of[part] = node.graph.get_attr(prefix + part.target)
            elif part.op == "call_function":
                of[part] = node.graph.node_copy(part, of.__getitem__)
            elif part.op == "output":
                return [of[n] for n in part.args[0]]
    return []


def _of(node: fx.Node) -> _Call | None:
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    return _calls.get(node.target._schema.name.removeprefix("tessera::"))
