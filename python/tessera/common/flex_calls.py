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
import math
import operator
import threading
from dataclasses import dataclass, field

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

_FLEX = torch.ops.higher_order.flex_attention
_PREFIX = "flex_attention_"
_NAMESPACES = ("aten", "prims")  # of the ops in functions
_PLACE = ("nn_module_stack", "stack_trace")  # of a node's meta: where the author wrote it


@dataclass
class _Call:
    """One call: `module` maps its tensors to a tuple of those of its results that are used."""

    meaning: dict
    module: fx.GraphModule
    compiled: dict = field(default_factory=dict)  # by the tensors' shapes, strides and devices
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, tensors: list[torch.Tensor]):
        as_traced = _name_of(tensors[0].dtype) == self.meaning["dtypes"][0]
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


def define(meanings: dict[str, dict]) -> None:
    """Makes the operators of a graph's `meta.calls`."""
    for meaning in meanings.values():
        _defined(meaning)


def _defined(meaning: dict) -> tuple[str, object]:
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


# --- from a traced program ---------------------------------------------------------------------------------------------


class _NoWord(Exception):
    """Something in a call that a meaning cannot hold."""


def close(program: torch.export.ExportedProgram) -> dict[str, dict]:
    """Exchanges, in the program's graph, calls of FlexAttention for operators of tensors, and returns what they mean. A call whose
    functions hold tensors of their own stays."""
    meanings = {}
    for node in [n for n in program.graph.nodes if n.op == "call_function" and n.target is _FLEX]:
        try:
            name, meaning = _close(program.graph_module, node)
        except _NoWord:
            continue
        meanings[name] = meaning
    for node in [n for n in program.graph.nodes if n.op == "get_attr" and not n.users] if meanings else ():
        program.graph.erase_node(node)
    return meanings


def _close(owner: fx.GraphModule, node: fx.Node) -> tuple[str, dict]:
    getters = [u for u in node.users if u.target is operator.getitem]
    used = sorted({g.args[1] for g in getters})
    if not used or len(getters) < len(node.users):
        raise _NoWord
    functions = [n for n in node.all_input_nodes if n.op == "get_attr"]
    given = [n for n in node.all_input_nodes if n.op != "get_attr"]
    words = {n: {"tensor": i} for i, n in enumerate(given)} | {n: {"function": i} for i, n in enumerate(functions)}
    meaning = {
        "functions": [_function(getattr(owner, n.target, None)) for n in functions],
        "arguments": [_encoded(a, words) for a in node.args],
        "options": {key: _encoded(a, words) for key, a in node.kwargs.items()},
        "results": used,
        "dtypes": [_name_of(n.meta["val"].dtype) for n in given],
    }
    name, op = _defined(meaning)
    values = [node.meta["val"][i] for i in used]
    with node.graph.inserting_before(node):
        made = node.graph.call_function(op, (given,))
    made.meta |= {key: node.meta[key] for key in _PLACE if key in node.meta}
    made.meta["val"] = tuple(values) if len(used) > 1 else values[0]
    for getter in getters:
        if len(used) > 1:
            getter.args = (made, used.index(getter.args[1]))
        else:
            getter.replace_all_uses_with(made)
            node.graph.erase_node(getter)
    node.graph.erase_node(node)
    return name, meaning


def _function(module) -> dict:
    if not isinstance(module, fx.GraphModule):
        raise _NoWord
    words, inputs, nodes = {}, 0, []
    for n in module.graph.nodes:
        if n.op == "placeholder":
            words[n] = {"input": inputs}
            inputs += 1
        elif n.op == "call_function":
            if not isinstance(n.target, torch._ops.OpOverload) or n.target.namespace not in _NAMESPACES:
                raise _NoWord
            words[n] = {"node": len(nodes)}
            nodes.append(
                {
                    "op": str(n.target),
                    "arguments": [_encoded(a, words) for a in n.args],
                    "options": {key: _encoded(a, words) for key, a in n.kwargs.items()},
                }
            )
        elif n.op == "output":
            (result,) = n.args
            return {"inputs": inputs, "nodes": nodes, "result": _encoded(result, words)}
        else:  # a tensor of its own
            raise _NoWord
    raise _NoWord


def _encoded(given, words: dict[fx.Node, dict]):
    if isinstance(given, fx.Node):
        return words[given]
    if isinstance(given, tuple):
        return {"tuple": [_encoded(g, words) for g in given]}
    if isinstance(given, list):
        return [_encoded(g, words) for g in given]
    if isinstance(given, dict) and all(isinstance(key, str) for key in given):
        return {"mapping": {key: _encoded(g, words) for key, g in given.items()}}
    if given is None or type(given) in (bool, int, str):
        return given
    if isinstance(given, float):
        return given if math.isfinite(given) else {"float": str(given)}
    if isinstance(given, torch.dtype):
        return {"dtype": _name_of(given)}
    if isinstance(given, torch.device):
        return {"device": str(given)}
    raise _NoWord


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# --- to what it means --------------------------------------------------------------------------------------------------


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
    made = graph.call_function(_FLEX, args, kwargs)
    graph.output(tuple(graph.call_function(operator.getitem, (made, i)) for i in meaning["results"]))
    return fx.GraphModule(root, graph)


def _callable(function: dict) -> fx.GraphModule:
    graph = fx.Graph()
    words = {"input": [graph.placeholder(f"i{i}") for i in range(function["inputs"])], "node": []}
    for node in function["nodes"]:
        namespace, name, overload = node["op"].split(".")
        if namespace not in _NAMESPACES:
            raise ValueError(f"a function in FlexAttention calls `{node['op']}`")
        op = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        args = tuple(_decoded(a, words) for a in node["arguments"])
        kwargs = {key: _decoded(a, words) for key, a in node["options"].items()}
        words["node"].append(graph.call_function(op, args, kwargs))
    graph.output(_decoded(function["result"], words))
    return fx.GraphModule(torch.nn.Module(), graph)


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
