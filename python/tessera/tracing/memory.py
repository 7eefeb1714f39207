"""Which tensors of a call are one object, whose memory forward writes to, and which memory its results look at.

All of it is read off the program that torch.export captured, before its writes become results: ops that write and ops that
give views still stand in it, and values that share memory share a storage. The record stands in the graph's meta as
`memory` (docs/protocol.md); guards, plans and verification read it there.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from tessera.common.errors import fail
from tessera.common.laid import loses_a_copy, loses_writes
from tessera.common.module_state import owner_of
from tessera.tracing.by_places import BY_STRIDES, refuse_elsewhere

_state = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer"}


def memory_of(captured: ExportedProgram, module: nn.Module, args: tuple, kwargs: dict, literals: set[str]) -> dict:
    """`captured`: not yet decomposed. `literals`: targets of constants that forward makes anew in each call.

    The record: `same`, groups of user inputs, and of parameters or buffers with them, that are one object; `written`, inputs that
    forward writes to; `outputs`, one row a tensor that forward returns: None where nothing shares its memory, else `of` (the name
    of an input, or the index of an earlier result), `same` where it is that very object, and where it lies in it: `shape`,
    `strides` and `offset`, in elements from where the other one begins (`detached` where no gradient goes that way);
    `strides`, of each of these results; `offsets`, by name of an input whose memory the graph addresses from its storage's
    beginning (as_strided with an offset, view_as_complex, which takes even places alone): where the input begins, in elements.
    Error TS0206: forward writes to memory that several inputs share, which no graph of values holds."""
    inputs = _Inputs(captured, module, args, kwargs)
    written = _written(captured.graph)
    if loses_a_copy(map(_step, captured.graph.nodes)):
        raise fail(
            "TS0206",
            "graph.shared_memory",
            "forward copies a part of an argument that it writes to before and behind it, and torch.export loses the copy",
            helps=["copy by `.clone()`"],
        )
    _refuse_other_forms(captured.graph)
    changed = [n for n in inputs.nodes if _storage(n) in written]
    for node in changed:
        if other := inputs.overlapping(node):
            raise fail(
                "TS0206",
                "graph.shared_memory",
                f"forward writes to {inputs.label(node)}, whose memory {inputs.label(other)} shares",
                expected="what is written to shares no memory with another argument, parameter or buffer",
                helps=["give it memory of its own: `.clone()`"],
            )
    return {
        "same": inputs.same(),
        "written": [n.name for n in changed],
        "outputs": _outputs(captured, inputs.lasting(literals)),
        "offsets": _offsets(captured.graph, written),
        "strides": _strides(captured),
    }


def hidden_views(captured: ExportedProgram) -> set[torch._ops.OpOverload]:
    """Ops of the program that gave an argument, or a view of one, and whose schemas say nothing of it, as of type_as and
    broadcast_tensors: writes to either would be lost for the other if they were not taken apart."""
    found = set()
    for node in captured.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None or any(r.alias_info is not None for r in schema.returns):
            continue
        results = [t for t in pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]
        given = {_storage(a) for a in node.all_input_nodes if _is_strided(a)}
        if any(_has_memory(t) and t.untyped_storage()._cdata in given for t in results):
            found.add(node.target)
    return found


def hidden_writes(captured: ExportedProgram) -> set[torch._ops.OpOverload]:
    """Ops of the program that write to running statistics, which their schemas do not say."""
    norm = torch.ops.aten.instance_norm.default
    for node in captured.graph.find_nodes(op="call_function", target=norm):
        _, _, _, mean, _, takes_statistics, *_ = node.args
        if takes_statistics and mean is not None:
            return {norm}
    return set()


class _Inputs:
    """The program's inputs with the tensors that they stand for."""

    def __init__(self, captured: ExportedProgram, module: nn.Module, args: tuple, kwargs: dict):
        by_name = {n.name: n for n in captured.graph.nodes if n.op == "placeholder"}
        leaves = iter(pytree.tree_leaves((args, kwargs)))
        self.nodes: list[fx.Node] = []
        self._real: dict[fx.Node, torch.Tensor | None] = {}
        self._labels: dict[fx.Node, str] = {}
        self._targets: dict[fx.Node, str] = {}
        for spec in captured.graph_signature.input_specs:
            node = by_name.get(getattr(spec.arg, "name", None))
            given = next(leaves) if spec.kind == InputKind.USER_INPUT else _held(module, spec.target)
            if node is None or not isinstance(node.meta.get("val"), torch.Tensor):
                continue
            self.nodes.append(node)
            self._real[node] = given
            self._targets[node] = spec.target or ""
            self._labels[node] = f"{_state[spec.kind]}:{spec.target}" if spec.kind in _state else node.name

    def label(self, node: fx.Node) -> str:
        kind, _, name = self._labels[node].rpartition(":")
        return f"the {kind or 'argument'} `{name}`"

    def lasting(self, literals: set[str]) -> set[fx.Node]:
        return {n for n in self.nodes if self._targets[n] not in literals}

    def same(self) -> list[list[str]]:
        groups: dict[int, list[fx.Node]] = {}
        for node, tensor in self._real.items():
            if tensor is not None:
                groups.setdefault(id(tensor), []).append(node)
        of_users = [g for g in groups.values() if len(g) > 1 and any(":" not in self._labels[n] for n in g)]
        return [[self._labels[n] for n in group] for group in of_users]

    def overlapping(self, node: fx.Node) -> fx.Node | None:
        """The same tensor under another name, or one that the program reads or returns and that lies where this one does."""
        first, last = _extent(node)
        for other in self.nodes:
            if other is node or _storage(other) != _storage(node):
                continue
            begin, end = _extent(other)
            one = self._real[node] is not None and self._real[node] is self._real[other]
            if one or (other.users and begin < last and first < end):
                return other
        return None


def _held(module: nn.Module, target: str | None) -> torch.Tensor | None:
    place = owner_of(module, target) if target else None
    return place[1][place[2]] if place else None


def _storage(node: fx.Node) -> int:
    """An identity of the memory behind a value: programs hold all their values, so none is given twice."""
    return node.meta["val"].untyped_storage()._cdata


def _extent(node: fx.Node) -> tuple[int, int]:
    """The bytes of the storage from the first element's to behind the last one's."""
    t = node.meta["val"]
    if t.numel() == 0:
        return 0, 0
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1
    return t.storage_offset() * t.itemsize, (t.storage_offset() + reach) * t.itemsize


def _is_strided(node) -> bool:
    """Whether it is a tensor with memory of its own kind: not sparse, and not one of a transform that batches others."""
    val = node.meta.get("val") if isinstance(node, fx.Node) else None
    return isinstance(val, torch.Tensor) and _has_memory(val)


def _has_memory(t: torch.Tensor) -> bool:
    return t.layout == torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(t)


def _written(graph: fx.Graph) -> set[int]:
    """The storages that an op of the graph writes to. Error TS0206 where elements of what is written to share memory, or of what it
    is a view of: a graph of values says nothing of the order in which they are written, or of which reads see a write."""
    found = set()
    for node in graph.nodes:
        for n in (targets := _targets(node)):
            if lossy := next((m for m in _path(n) if _is_strided(m) and _loses_writes(m)), None):
                raise fail(
                    "TS0206",
                    "graph.shared_memory",
                    f"forward writes to a tensor whose elements share memory, or are some of those that are unfolded "
                    f"({node.target} on `{n.name}`, a view by {lossy.target})",
                    helps=["write to a copy of it: `.contiguous()`"],
                )
        found |= set(map(_storage, targets))
    return found


def _targets(node: fx.Node) -> list[fx.Node]:
    """What it writes to."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return []
    given = dict(zip((a.name for a in schema.arguments), node.args, strict=False)) | node.kwargs
    places = [given.get(a.name) for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    return [n for n in pytree.tree_leaves(places) if _is_strided(n)]


def _step(node: fx.Node) -> tuple:
    """As laid.loses_a_copy takes it."""
    given, changed = (
        [n.meta["val"] for n in nodes if _is_strided(n)] for nodes in (node.all_input_nodes, _targets(node))
    )
    name = "" if node.op == "placeholder" else _packet(node)
    return name, node.meta["val"] if _is_strided(node) else None, given, changed


def _packet(node: fx.Node) -> str:
    """`add` of aten.add.Tensor."""
    return str(getattr(node.target, "overloadpacket", "")).removeprefix("aten.")


def _loses_writes(node: fx.Node) -> bool:
    return loses_writes(
        _packet(node), node.meta["val"], [a.meta["val"] for a in node.all_input_nodes if _is_strided(a)]
    )


def with_mutations(memory: dict, exported: ExportedProgram) -> dict:
    """The record with the inputs that ops write to without a word of it in their schemas, as batch norm to its statistics."""
    signature = exported.graph_signature
    targets = {s.target for s in signature.output_specs if s.target is not None}
    names = [s.arg.name for s in signature.input_specs if {s.target, getattr(s.arg, "name", None)} & targets]
    return {**memory, "written": list(dict.fromkeys([*memory["written"], *names]))}


def _refuse_other_forms(graph: fx.Graph) -> None:
    """Error TS0206 where an input gets another shape or other strides in place, as by unsqueeze_: a copy cannot bring that about."""
    for node in graph.nodes:
        given = _object(node)
        if given is not node and given.op == "placeholder" and _is_strided(node) and _form(node) != _form(given):
            raise fail(
                "TS0206",
                "graph.shared_memory",
                f"forward changes the shape or the strides of `{given.name}` in place ({node.target})",
                helps=["take a view of it instead"],
            )


def _at_the_end(graph: fx.Graph) -> dict[fx.Node, fx.Node]:
    """By node that made a tensor: the last that returns the same object, whose shape and strides an op such as unsqueeze_ changed."""
    return {_object(node): node for node in graph.nodes if _is_strided(node)}


def _outputs(captured: ExportedProgram, inputs: set[fx.Node]) -> list[dict | None]:
    returned = next(n for n in captured.graph.nodes if n.op == "output").args[0]
    now = _at_the_end(captured.graph)
    specs = captured.graph_signature.output_specs
    rows: list[dict | None] = []
    objects: dict[fx.Node, int] = {}  # the results so far
    memories: dict[int, fx.Node] = {}  # by storage: the first result that looks at it
    for spec, node in zip(specs, returned, strict=True):
        if spec.kind != OutputKind.USER_OUTPUT or not isinstance(node, fx.Node):
            continue
        row = None
        if _is_strided(node):
            node = _object(node)
            if (source := _source(node)) in inputs:
                same = node in objects or node is source
                row = (
                    {"of": objects.get(node, source.name), "same": True}
                    if same
                    else _place(now[node], source, source.name)
                )
            elif node in objects:
                row = {"of": objects[node], "same": True}
            elif (first := memories.setdefault(_storage(node), node)) is not node:
                row = _place(now[node], now[first], objects[first])
            objects.setdefault(node, len(rows))
        rows.append(row)
    return rows


# Ops that return the tensor that they are given where there is nothing to do; views return another one.
_itself = {
    *("to", "contiguous", "type_as", "flatten", "positive", "real", "conj", "resolve_conj", "resolve_neg"),
    *("atleast_1d", "atleast_2d", "atleast_3d"),
}


def _offsets(graph: fx.Graph, written: set[int]) -> dict[str, int]:
    found = {}
    for node in graph.nodes:
        by_strides = node.target in BY_STRIDES
        if not by_strides and node.target is not torch.ops.aten.view_as_complex.default:
            continue
        *_, source = (n for n in _path(node) if _is_strided(n))
        if by_strides:
            refuse_elsewhere(node, source, source.op == "placeholder" and _storage(source) in written)
        if source.op != "placeholder":
            continue
        t = source.meta["val"]
        if not by_strides or node.args[3:] or node.kwargs.get("storage_offset") is not None:
            found[source.name] = t.storage_offset()
    return found


_detaching = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)


def _strides(captured: ExportedProgram) -> list[list[int]]:
    returned = next(n for n in captured.graph.nodes if n.op == "output").args[0]
    specs = captured.graph_signature.output_specs
    now = _at_the_end(captured.graph)
    nodes = [
        n for s, n in zip(specs, returned, strict=True) if isinstance(n, fx.Node) and s.kind == OutputKind.USER_OUTPUT
    ]
    return [list(now[_object(n)].meta["val"].stride()) if _is_strided(n) else [] for n in nodes]


def _object(node: fx.Node) -> fx.Node:
    """The node that made the tensor: an op that writes in place returns the object that it was given."""
    while (given := _given_back(node)) is not None:
        node = given
    return node


def _given_back(node: fx.Node) -> fx.Node | None:
    """The argument that an op returns as its result, or as one of them."""
    op = node.args[0] if node.target is operator.getitem else node
    schema = getattr(op.target, "_schema", None)
    if schema is None:
        return None
    infos = [r.alias_info for r in schema.returns]
    if len(infos) == 1 and infos[0] is not None and infos[0].is_write:
        given = dict(zip((a.name for a in schema.arguments), op.args, strict=False)) | op.kwargs
        written = (a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write)
        return next(given[name] for name in written if name in given)
    # A schema that says nothing of a view hides the argument itself.
    if schema.name.removeprefix("aten::") in _itself or not any(infos):
        return next((a for a in _givers(node, op) if _is_alike(node, a)), None)
    return None


def _givers(node: fx.Node, op: fx.Node) -> list[fx.Node]:
    """Its arguments; of a result of several, those of its place in a list of as many, as broadcast_tensors takes, come first."""
    first = op.args[0] if op.args else None
    at = node.args[1] if node is not op else None
    mine = [first[at]] if at is not None and isinstance(first, (list, tuple)) and at < len(first) else []
    return [*mine, *op.all_input_nodes]


def _is_alike(node: fx.Node, other: fx.Node) -> bool:
    return (
        _is_strided(node) and _is_strided(other) and _form(node) == _form(other) and _storage(node) == _storage(other)
    )


def _form(node: fx.Node) -> tuple:
    t = node.meta["val"]
    return t.dtype, t.shape, t.stride(), t.storage_offset()


def _source(node: fx.Node) -> fx.Node | None:
    """The input that a value looks at, directly or through other views and writes."""
    *_, last = _path(node)
    return last if last.op == "placeholder" else None


def _path(node: fx.Node) -> Iterator[fx.Node]:
    """The value, and those that it looks at one through another."""
    storage = _storage(node)
    while node is not None:
        yield node
        next_one = (a for a in node.all_input_nodes if _is_strided(a) and _storage(a) == storage)
        node = next(next_one, None) or _through(node)


def _through(node: fx.Node) -> fx.Node | None:
    """The op whose several results a value is taken from."""
    several = [a for a in node.all_input_nodes if isinstance(a.meta.get("val"), (tuple, list))]
    return several[0] if several else None


def _place(node: fx.Node, other: fx.Node, of: str | int) -> dict:
    t, base = node.meta["val"], other.meta["val"]
    offset = t.storage_offset() * t.itemsize - base.storage_offset() * base.itemsize
    row = {"of": of, "shape": list(t.shape), "strides": list(t.stride()), "offset": offset // t.itemsize}
    if any(n.target in _detaching for n in _path(node)):
        row["detached"] = True
    return row if t.dtype == base.dtype else {**row, "dtype": str(t.dtype).removeprefix("torch.")}


# --- of live tensors ---------------------------------------------------------------------------------------------------


def relations(results: list[torch.Tensor], state: list[torch.Tensor]) -> list[tuple | None]:
    """By result: None where no memory is shared, else the place in `state`, or behind its end among the results, of the first
    tensor that shares it, how many bytes further it begins, and whether it is that very object."""
    first: dict[int, tuple[int, torch.Tensor]] = {}
    objects = {id(t): i for i, t in reversed(list(enumerate([*state, *results])))}
    rows: list[tuple | None] = []
    for i, t in enumerate([*state, *results]):
        at, other = first.setdefault(t.untyped_storage()._cdata, (i, t))
        offset = t.storage_offset() * t.itemsize - other.storage_offset() * other.itemsize
        rows.append(None if at == i else (at, offset, objects[id(t)] if objects[id(t)] != i else None))
    return rows[len(state) :]
