"""Calls of FlexAttention in an exported program, exchanged for operators of tensors (`common/flex_calls.py` says what those mean)."""

from __future__ import annotations

import math
import operator

import torch
from torch import fx

from tessera.common.flex_calls import FLEX, NAMESPACES, defined, name_of
from tessera.tracing.composites import PLACE


class _NoWord(Exception):
    """Something in a call that a meaning cannot hold."""


def close_flex_attention(program: torch.export.ExportedProgram) -> dict[str, dict]:
    """Exchanges, in the program's graph, calls of FlexAttention for operators of tensors, and returns what they mean. A call whose
    functions hold tensors of their own stays."""
    meanings = {}
    for node in [n for n in program.graph.nodes if n.op == "call_function" and n.target is FLEX]:
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
        "dtypes": [name_of(n.meta["val"].dtype) for n in given],
    }
    name, op = defined(meaning)
    values = [node.meta["val"][i] for i in used]
    with node.graph.inserting_before(node):
        made = node.graph.call_function(op, (given,))
    made.meta |= {key: node.meta[key] for key in PLACE if key in node.meta}
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
            if not isinstance(n.target, torch._ops.OpOverload) or n.target.namespace not in NAMESPACES:
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
        return {"dtype": name_of(given)}
    if isinstance(given, torch.device):
        return {"device": str(given)}
    raise _NoWord
