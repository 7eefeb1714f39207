"""Graphs of Dynamo's that Inductor compiles to something else than they say (torch 2.11), so that their ops run one by one."""

from __future__ import annotations

import operator

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tessera.common.laid import loses_a_copy, loses_writes

_in_place = {getattr(operator, n) for n in dir(operator) if n[0] == "i" and {n[1:], f"{n[1:]}_"} & set(dir(operator))}


def miscompiled(gm: fx.GraphModule) -> str:
    """Why; "" where nothing is known. Inductor takes the smaller or the larger of numbers that follow the shapes, or a count, for
    whole ones, writes to some views change elements that are not theirs, some copies are none, and what is copied keeps its place in memory."""
    counts = (n.meta.get("example_value") for n in gm.graph.nodes if n.target in (torch.sym_min, torch.sym_max))
    if any(isinstance(c, torch.SymFloat) for c in counts):
        return "Inductor rounds min and max of numbers that change from call to call; its ops run one by one"
    elsewhere: set[int] = set()  # memory that gets values from behind another's beginning
    lossy: set[fx.Node] = set()  # views through which writes are lost, and views of those
    for node in gm.graph.nodes:
        if lossy.intersection(written_by(node)):
            return (
                "it writes to elements that share memory, or to some of those that it unfolds, and Inductor changes others "
                "with them; its ops run one by one"
            )
        written = [a for a in written_by(node) if _fake(a) is not None]
        if any(t.storage_offset() for a in node.all_input_nodes if a not in written and (t := _fake(a)) is not None):
            elsewhere.update(map(_storage, written))
        if (view := _fake(node)) is None:
            continue
        if _name(node) == "as_strided" and (_storage(node) in elsewhere or _places_of_a_part(node)):
            return "it looks by places at memory, and Inductor looks at others; its ops run one by one"
        below = [a for a in lossy.intersection(node.all_input_nodes) if _storage(a) == _storage(node)]
        sources = [t for a in node.all_input_nodes if (t := _fake(a)) is not None]
        if below or loses_writes(_name(node), view, sources):
            lossy.add(node)
    if loses_a_copy(map(_step, gm.graph.nodes)):
        return "it copies a part of an argument that it writes to before and behind it, and Inductor does not; its ops run one by one"
    return ""


def _places_of_a_part(node: fx.Node) -> bool:
    """Whether as_strided says where it begins, in the memory of a tensor that begins elsewhere itself."""
    says_where = len(node.args) > 3 or node.kwargs.get("storage_offset") is not None
    return says_where and any(t.storage_offset() for a in node.all_input_nodes[:1] if (t := _fake(a)) is not None)


def _step(node: fx.Node) -> tuple:
    given, changed = (
        [t for a in nodes if (t := _fake(a)) is not None] for nodes in (node.all_input_nodes, written_by(node))
    )
    return "" if node.op in ("placeholder", "get_attr") else _name(node), _fake(node), given, changed


def written_by(node: fx.Node) -> list[fx.Node]:
    """What the node writes to, where its name or its arguments say so."""
    name = _name(node)
    in_place = node.target is operator.setitem or node.target in _in_place or node.kwargs.get("inplace")
    writes = in_place or (name.endswith("_") and not name.endswith("__"))
    places = [node.kwargs.get("out"), node.args[:1] if writes else None]
    return [t for t in pytree.tree_leaves(places) if isinstance(t, fx.Node)]


def _name(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _fake(node: fx.Node) -> torch.Tensor | None:
    value = node.meta.get("example_value")
    return value if isinstance(value, torch.Tensor) and value.layout == torch.strided else None


def _storage(node: fx.Node) -> int:
    return _fake(node).untyped_storage()._cdata
