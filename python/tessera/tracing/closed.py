"""What a graph computes from no input at all: masks of positions, tables of numbers. Their content is known when it is traced."""

from __future__ import annotations

import torch
from torch import fx
from torch.export import ExportedProgram

from tessera.common.facts import facts_of, too_large

_undefined = ("aten::empty", "aten::new_empty")  # memory as it was found
_KEPT = 1 << 24  # elements: what is larger is computed again for the next value that needs it


def is_undefined(op: str) -> bool:
    """Of "aten.empty.memory_format"."""
    return op.replace(".", "::", 1).startswith(_undefined)


def facts_of_closed(exported: ExportedProgram, literals: dict[str, torch.Tensor]) -> dict[fx.Node, dict]:
    """Facts (facts.py) of values that follow from no input, where something reads them that does follow from one.
    `literals`: see literals.py."""
    graph, known = exported.graph, _nodes_of(exported, literals)
    closed = set(known)
    for node in graph.nodes:
        if _repeatable(node) and closed.issuperset(node.all_input_nodes):
            closed.add(node)
    computed = closed - known.keys()
    wanted = [n for n in graph.nodes if n in computed and not closed.issuperset(n.users)]
    found = {}
    try:
        with torch.no_grad():
            for node in wanted:
                found[node] = facts_of(_computed(node, known))
                for large in [n for n in computed & known.keys() if known[n].numel() > _KEPT]:
                    del known[large]
    except torch.OutOfMemoryError:  # nothing depends on facts but speed
        pass
    return {n: facts for n, facts in found.items() if facts}


def _nodes_of(exported: ExportedProgram, literals: dict[str, torch.Tensor]) -> dict[fx.Node, torch.Tensor]:
    places = {spec.arg.name: spec.target for spec in exported.graph_signature.input_specs if spec.target}
    nodes = {n: places.get(n.name, "") for n in exported.graph.nodes if n.op == "placeholder"}
    return {n: literals[at] for n, at in nodes.items() if at in literals}


def _repeatable(node: fx.Node) -> bool:
    """Whether it computes one tensor, the same in every call, that is small enough to look at."""
    target, value = node.target, node.meta.get("val")
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    if not isinstance(value, torch.Tensor) or any(not isinstance(n, int) for n in value.shape) or too_large(value):
        return False
    schema = target._schema
    return not (
        schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags or schema.name.startswith(_undefined)
    )


def _computed(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor:
    """Iterative: chains may be deeper than the stack."""
    pending = [node]
    while pending:
        at = pending[-1]
        missing = [n for n in at.all_input_nodes if n not in known]
        if missing:
            pending += missing
            continue
        pending.pop()
        if at not in known:
            args, kwargs = fx.node.map_arg((at.args, at.kwargs), known.__getitem__)
            known[at] = at.target(*args, **kwargs)
    return known[node]
