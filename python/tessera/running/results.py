"""Results and writes of a plan's graph in the memory that the module gives them.

The graph is one of values: it says what results and changed tensors hold. Which memory they lie in is a fact of the trace
(tracing/memory.py). A result that looks at an input, parameter or buffer is taken from that tensor after the call. Another one
gets memory of its own: where a rewrite dropped the copy that the module makes, it is made here. Writes come last, all from
values as they were before the first of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import fx

from tessera.common.errors import Error, fail
from tessera.common.laid import overlaps_itself, reach
from tessera.common.reference import overload

_copy = torch.ops.aten.copy_.default
_clone = torch.ops.aten.clone.default
# Ops without an annotation whose results may be views all the same.
_may_view = ("reshape", "contiguous", "to", "flatten", "dropout", "matrix_H", "type_as")


def may_alias(op: str) -> bool:
    """Whether a result of the op may share memory with an argument."""
    return _may_alias(overload(op)._schema)


def _may_alias(schema: torch._C.FunctionSchema) -> bool:
    annotated = any(r.alias_info is not None for r in schema.returns)
    return annotated or schema.name.removeprefix("aten::") in _may_view


@dataclass(frozen=True)
class Lent:
    """A result that looks at the memory of a feed: that very tensor, or a view that begins `offset` elements behind it. `result`:
    the earlier result that it is, instead."""

    feed: str = ""
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] = ()
    offset: int = 0
    result: int | None = None
    detached: bool = False  # views of a parameter require gradients otherwise, also where none are recorded

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.shape is None:
            return tensor
        if self.detached:
            tensor = tensor.detach()
        return tensor.as_strided(self.shape, self.strides, tensor.storage_offset() + self.offset)


class Completed:
    """`run`, with the results that it does not make, and all of them laid out as the module's are. The first call shows which
    are laid out otherwise, as a rewrite may leave them: those are copied, with all that shares their memory. `lent`: by result,
    or None for the next that is made. `strides`: the module's own, where they are known; `shared`: shared_results()."""

    def __init__(
        self,
        run: Callable,
        lent: list[Lent | None],
        feeds: list[str],
        strides: list[list[int]] | None,
        shared: list[dict[int, int]],
    ):
        self.run, self.lent, self.strides, self.shared = run, lent, strides, shared
        self._feeds = [feeds.index(r.feed) if r and r.result is None else 0 for r in lent]
        self._others: list[dict[int, int]] | None = None if strides else []  # of `shared`: those laid out otherwise
        self._twins: list[int] = []  # results that are to be objects of their own
        self._plain = not any(lent) and not strides

    def __call__(self, *feeds):
        made = self.run(*feeds)
        return made if self._plain else self._all(iter(made), feeds)

    def _all(self, made: Iterator[torch.Tensor], feeds: tuple) -> tuple:
        results: list[torch.Tensor] = []
        for i, r in enumerate(self.lent):
            if r is None:
                results.append(next(made))
            else:
                results.append(results[r.result] if r.result is not None else r.of(feeds[self._feeds[i]]))
        if self._others is None:
            self._others = [places for places in self.shared if self._is_laid_otherwise(results, places)]
            self._twins = [i for i, t in enumerate(results) if self._is_twin(results, i, t)]
            self._plain = not any(self.lent) and not self._others and not self._twins
        for places in self._others:
            self._lay_out(results, places)
        for i, r in enumerate(self.lent if self._others else ()):
            if r is not None and r.result is not None:
                results[i] = results[r.result]
        for i in self._twins:
            t = results[i]
            results[i] = t.as_strided(t.shape, t.stride(), t.storage_offset())
        return tuple(results)

    def _is_twin(self, results: list[torch.Tensor], i: int, t: torch.Tensor) -> bool:
        """Whether it is the object of an earlier result, where the module returns two."""
        lent = self.lent[i]
        return (lent is None or lent.shape is not None) and any(t is r for r in results[:i])

    def _is_laid_otherwise(self, results: list[torch.Tensor], places: dict[int, int]) -> bool:
        """Whether results that lie in one memory have other strides or other distances, and can be copied into another one: what
        shares elements with itself cannot be written to, so it has to lie within one that does not."""
        kept = {i: places[i] for i in places if results[i].numel() > 0}
        ends = {i: (at, at + reach(results[i].shape, self.strides[i])) for i, at in kept.items()}
        plain = [ends[i] for i in kept if not overlaps_itself(results[i].shape, self.strides[i])]
        if not all(any(low <= a and b <= high for low, high in plain) for a, b in ends.values()):
            return False
        if not all(_has_strides(results[i], self.strides[i]) for i in kept):
            return True
        if len(kept) < 2 or torch.compiler.is_compiling():  # Dynamo cannot trace where a view begins
            return False
        return len({results[i].storage_offset() - at for i, at in kept.items()}) > 1

    def _lay_out(self, results: list[torch.Tensor], places: dict[int, int]) -> None:
        if len(places) == 1:
            (i,) = places
            t = results[i]
            results[i] = torch.empty_strided(t.shape, self.strides[i], dtype=t.dtype, device=t.device).copy_(t)
            return
        low = min(places.values())
        size = max(at + reach(results[i].shape, self.strides[i]) for i, at in places.items()) - low
        memory = next(results[i] for i in places).new_empty(size)
        for i, at in places.items():
            t = results[i]
            results[i] = memory.as_strided(t.shape, self.strides[i], at - low)
            if not overlaps_itself(t.shape, self.strides[i]):
                results[i].copy_(t)


def _has_strides(t: torch.Tensor, strides: list[int]) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(t.shape, t.stride(), strides, strict=True))


def shared_results(graph: dict) -> list[dict[int, int]]:
    """Of the results that no feed lends, those that lie in one memory in the module: by result, where it begins behind the first,
    in elements. Not those with views in another type among them."""
    groups: dict[int, dict[int, int]] = {}
    views: set[int] = set()
    for i, (row, lent) in enumerate(zip(_rows(graph), lent_results(graph), strict=True)):
        first = row["of"] if row and isinstance(row["of"], int) else i
        if row and "dtype" in row:
            views.add(first)
        elif lent is None:
            groups.setdefault(first, {})[i] = row["offset"] if row else 0
    return [places for first, places in groups.items() if first not in views]


def lent_results(graph: dict) -> list[Lent | None]:
    """By result: what is taken from a feed instead of being computed."""
    return [_lent(row) for row in _rows(graph)]


def strides_of_results(graph: dict) -> list[list[int]] | None:
    """The module's own, where the trace has noted them."""
    return graph.get("meta", {}).get("memory", {}).get("strides")


def _rows(graph: dict) -> list[dict | None]:
    memory, results = graph.get("meta", {}).get("memory"), graph["outputs"]
    rows = memory["outputs"] if memory else [None] * len(results)
    if len(rows) != len(results):
        raise fail("TS0214", "plan.malformed", f"{len(results)} results, and the memory of {len(rows)}")
    return rows


def _lent(row: dict | None) -> Lent | None:
    if row is not None and row.get("same") and isinstance(row["of"], int):
        return Lent(result=row["of"])
    if row is None or isinstance(row["of"], int) or "dtype" in row:
        return None
    if row.get("same"):
        return Lent(row["of"])
    where = (tuple(row["shape"]), tuple(row["strides"]), row["offset"])
    return Lent(row["of"], *where, detached=row.get("detached", False))


class Ending:
    """What stands behind a graph's calls: copies of results that must have memory of their own, assertions, then writes."""

    def __init__(self, ops: fx.Graph, graph: dict):
        self.fx, self.graph = ops, graph
        self._owner: dict[fx.Node, int] = {}  # by what made the memory: the first result that lies in it

    def results(self, get: Callable[[str], fx.Node]) -> list[fx.Node]:
        """Of the results that no feed lends, in their order, the nodes that are returned."""
        made: dict[int, fx.Node] = {}
        rows = _rows(self.graph)
        known = "memory" in self.graph.get("meta", {})
        for first, members in self._together(rows).items():
            nodes = [get(self.graph["outputs"][i]) for i in members]
            made |= zip(members, self._apart(nodes, first) if known else nodes, strict=True)
            self._share(made, members, rows)
        return [made[i] for i in sorted(made)]

    def _together(self, rows: list[dict | None]) -> dict[int, list[int]]:
        """Results that share memory among themselves, by the first of them, without those that a feed lends. A view of an input
        in another type is left as the graph makes it."""
        groups: dict[int, list[int]] = {}
        for i, (row, lent) in enumerate(zip(rows, lent_results(self.graph), strict=True)):
            if lent is not None:
                continue
            first = row["of"] if row and isinstance(row["of"], int) else i
            groups.setdefault(next((f for f, members in groups.items() if first in members), i), []).append(i)
        return groups

    def _apart(self, nodes: list[fx.Node], first: int) -> list[fx.Node]:
        """The same values in memory that neither the caller nor another result sees."""
        seen = {m for n in nodes for m in memory_of(n) if m.op == "placeholder" or m in self._owner}
        row = _rows(self.graph)[first]
        if seen and row is None:
            again: dict[fx.Node, fx.Node] = {m: self.fx.call_function(_clone, (m,)) for m in seen}
            nodes = [self._replayed(n, again) for n in nodes]
        for n in nodes:
            for m in memory_of(n):
                self._owner.setdefault(m, first)
        return nodes

    def _replayed(self, node: fx.Node, again: dict[fx.Node, fx.Node]) -> fx.Node:
        """The views between the memory and a result, over other memory."""
        if node not in again and node.op == "call_function" and _passes_memory(node):
            args = fx.map_arg(node.args, lambda a: self._replayed(a, again))
            kwargs = fx.map_arg(node.kwargs, lambda a: self._replayed(a, again))
            changed = args != node.args or kwargs != node.kwargs
            again[node] = self.fx.call_function(node.target, args, kwargs) if changed else node
        return again.get(node, node)

    def _share(self, made: dict[int, fx.Node], members: list[int], rows: list[dict | None]) -> None:
        """The members as views of the one that holds them all, where the plan makes them apart and the module does not."""
        first = members[0]
        places = {first: (0, *self._laid(first))}
        places |= {i: (r["offset"], r["shape"], r["strides"]) for i in members[1:] if "shape" in (r := rows[i])}
        ends = {i: (at, at + reach(shape, strides)) for i, (at, shape, strides) in places.items()}
        together = frozenset.intersection(*(memory_of(made[i]) for i in members))
        whole = next((w for w in ends if all(ends[w][0] <= a and b <= ends[w][1] for a, b in ends.values())), None)
        taken: set[fx.Node] = set()
        for i in members:
            if made[i] in taken or (not together and i != whole):
                if whole is None or "dtype" in (rows[i] or ()):
                    raise _apart_in_the_plan()
                at, shape, strides = places[i]
                at -= places[whole][0]
                made[i] = self.fx.call_function(_view_of, (made[whole], list(shape), list(strides), at))
            taken.add(made[i])

    def _laid(self, i: int) -> tuple[list[int], list[int]]:
        value = next(v for v in self.graph["values"] if v["name"] == self.graph["outputs"][i])
        strides = strides_of_results(self.graph)
        return value["shape"], strides[i] if strides else value["strides"]

    def _assertions(self, get: Callable[[str], fx.Node]) -> None:
        for row in self.graph.get("assertions", ()):
            self.fx.call_function(torch.ops.aten._assert_async.msg, (get(row["value"]), row["message"]))

    def writes(self, get: Callable[[str], fx.Node]) -> None:
        """What forward asserts has to hold; then mutated buffers and inputs (`input:<value>`) get their new contents."""
        self._assertions(get)
        mutations = self.graph.get("mutations", ())
        inputs = set(self.graph["inputs"])
        names = {v["target"]: v["name"] for v in self.graph["values"] if v.get("target") and v["name"] in inputs}
        targets = [(t := m["target"].removeprefix("input:")) and get(names.get(t, t)) for m in mutations]
        values = [get(m["value"]) for m in mutations]
        for i, value in enumerate(values):
            if value is not targets[i] and _holds_content_of(value) & set(targets):
                values[i] = self.fx.call_function(_content, (_uncloned(value),))
        for target, value in zip(targets, values, strict=True):
            if value is not target:
                self.fx.call_function(_copy, (target, value))


# A copy that no compiler takes for nothing. Inductor drops a clone whose source is overwritten later in the same graph, and then
# reads what was written.
_library = torch.library.Library("tessera", "FRAGMENT")
_library.define("content(Tensor tensor) -> Tensor", tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
_library.impl("content", lambda tensor: tensor.clone(), "CompositeExplicitAutograd")
torch.library.register_fake("tessera::content", torch.empty_like, lib=_library)
_content = torch.ops.tessera.content.default
# Ops that may give the very elements of their argument, and that Inductor drops where they do.
_elements_of = (
    *("clone", "copy", "lift_fresh_copy", "slice_scatter", "repeat", "constant_pad_nd", "cat"),
    *("ceil", "floor", "round", "trunc", "pow"),
)


def _holds_content_of(node: fx.Node) -> set[fx.Node]:
    """The placeholders whose elements a value may be, in their memory or copied."""
    found, pending = set(), [node]
    while pending:
        for n in memory_of(pending.pop()):
            name = getattr(getattr(n.target, "_schema", None), "name", "").removeprefix("aten::")
            if name in _elements_of:
                pending += n.all_input_nodes
            elif n.op == "placeholder":
                found.add(n)
    return found


def _uncloned(node: fx.Node) -> fx.Node:
    while node.target is _clone and node.kwargs.get("memory_format") in (None, torch.preserve_format):
        node = node.args[0]
    return node


def _apart_in_the_plan() -> Error:
    return fail(
        "TS0214",
        "plan.malformed",
        "results look at one memory in the module, and none of them holds it all in the plan, which makes them apart",
    )


def _view_of(tensor: torch.Tensor, shape: list[int], strides: list[int], offset: int) -> torch.Tensor:
    return tensor.as_strided(shape, strides, tensor.storage_offset() + offset)


_view_of.passes_memory = True


def _passes_memory(node: fx.Node) -> bool:
    """Whether the node's value may lie in memory of its arguments. A Python function says so by the attribute of this name."""
    if node.target is operator.getitem:
        return _passes_memory(node.args[0])
    schema = getattr(node.target, "_schema", None)
    return _may_alias(schema) if schema is not None else getattr(node.target, "passes_memory", False)


def memory_of(node: fx.Node) -> frozenset[fx.Node]:
    """The nodes that made the memory that a node's value may lie in."""
    found, pending, seen = set(), [node], set()
    while pending:
        n = pending.pop()
        if n in seen:
            continue
        seen.add(n)
        if n.op == "call_function" and _passes_memory(n) and n.all_input_nodes:
            pending += n.all_input_nodes
        else:
            found.add(n)
    return frozenset(found)
