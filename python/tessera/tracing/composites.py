"""Composite ops on complex tensors, taken apart into the ops that they are made of.

torch.export keeps an op such as `aten.fft_rfft2` or `aten.einsum` whole, though PyTorch itself runs it as others. Whole it
has no form on real and imaginary parts; its parts have (`complex_ops.py`).
"""

from __future__ import annotations

import torch
from torch._C import DispatchKey
from torch.fx.experimental.proxy_tensor import make_fx

from tessera.tracing.complex_ops import Lowering, involved

aten = torch.ops.aten

_of_form = {
    aten.transpose_.default: aten.transpose.int,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.unsqueeze_.default: aten.unsqueeze.default,
}
PLACE = ("nn_module_stack", "stack_trace")  # of a node's meta: where the author wrote it


def take_complex_apart(program: torch.export.ExportedProgram) -> None:
    """Exchanges, in the program's graph, such ops for their parts. What cannot be traced stays as it is."""
    changed = False
    for node in list(program.graph.nodes):
        if node.op == "call_function" and _is_composite(node.target) and involved(node) and not Lowering.has(node):
            changed |= _exchange(program.graph, node)
    if changed:
        program.graph.lint()


def _is_composite(target) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target.has_kernel_for_dispatch_key(
        DispatchKey.CompositeImplicitAutograd
    )


def _exchange(graph: torch.fx.Graph, node: torch.fx.Node) -> bool:
    given = node.all_input_nodes
    parts = _traced(node, given)
    if parts is None or any(n.op == "get_attr" for n in parts.nodes) or not _changes_nothing(parts):
        return False
    (result,) = next(n for n in parts.nodes if n.op == "output").args
    if not isinstance(result, torch.fx.Node):  # several results
        return False
    places = [n for n in parts.nodes if n.op == "placeholder"]
    with graph.inserting_before(node):
        made = dict(zip(places, given, strict=True))
        for part in parts.nodes:
            if part.op == "call_function":
                made[part] = graph.node_copy(part, lambda n: made[n])
                made[part].meta |= {key: node.meta[key] for key in PLACE if key in node.meta}
    node.replace_all_uses_with(made[result])
    graph.erase_node(node)
    return True


def _changes_nothing(parts: torch.fx.Graph) -> bool:
    """Whether no op writes to its operand. One that changes its operand's form alone becomes the one that does not, since
    what comes later reads its result."""
    place = {node: i for i, node in enumerate(parts.nodes)}
    for node in parts.nodes:
        if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
            continue
        later = [user for user in node.args[0].users if place[user] > place[node]]
        if node.target not in _of_form or later:
            return False
        node.target = _of_form[node.target]
    return True


def _traced(node: torch.fx.Node, given: list[torch.fx.Node]) -> torch.fx.Graph | None:
    """The op on fake tensors, as a graph whose placeholders are `given`. None of them is lazily conjugated: what stands for
    a conjugate has its parts in memory."""
    values = [n.meta.get("val") for n in given]
    if not all(isinstance(v, torch.Tensor) and hasattr(v, "fake_mode") for v in values):
        return None

    def run(*tensors):
        of = dict(zip(given, tensors, strict=True))
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: of[n])
        return node.target(*args, **kwargs)

    with values[0].fake_mode, torch.no_grad():
        plain = [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in values]
        try:
            return make_fx(torch.func.functionalize(run))(*plain).graph
        except Exception:  # noqa: BLE001 - of many kinds; the op stays whole, and is refused by its place
            return None
