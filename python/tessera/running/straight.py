"""A composed module's graph as straight-line Python, for what is left to PyTorch op by op.

The graph's shapes, layouts and aliases are fixed by the module's guards, so the first call is interpreted, and what it shows
is written down as a function: a view is one call wherever it is read, or none; ops are called by torch's own functions and
not through torch.ops; a value is dropped after its last use; an elementwise op writes over an operand that dies with it, as
Inductor does, so that a call needs no more memory than Inductor's.

Where torch's flags may choose how a result lies (attention, convolutions), its strides are looked at, and the graph is run op
by op when they are others than in the first call.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import fx

_functions = torch._C._VariableFunctions
_nn = torch._C._nn
# Functions of torch that take an op's arguments as its schema has them.
_products = ("mm", "addmm", "bmm", "baddbmm", "matmul", "convolution")
_pointwise = (
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "pow",
    "exp",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "tanh",
    "relu",
    "where",
    "clone",
)
_of_rows = ("softmax", "layer_norm", "native_layer_norm", "rms_norm", "group_norm", "batch_norm", "mean", "sum", "amax")
_moves = ("cat", "embedding")
_direct = {
    **{
        name: getattr(_functions, name)
        for name in (*_products, *_pointwise, *_of_rows, *_moves)
        if hasattr(_functions, name)
    },
    **{name: getattr(_nn, name) for name in ("linear", "gelu", "silu", "scaled_dot_product_attention")},
}
# Elementwise ops that may write over an operand, by the same function with `out`, or by one of its own.
_binary = {f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div")}
_unary = {f"aten.{name}.default" for name in ("gelu", "silu", "sigmoid", "tanh", "neg", "exp", "rsqrt", "relu")}
_elementwise = _binary | _unary
_over_itself = {"aten.relu.default": _functions.relu_}
_laid_by_flags = ("attention", "attend", "conv")
_view = torch._C._dynamo.guards._reinterpret_tensor  # (tensor, shape, strides, elements further than it begins)


@dataclass
class _Seen:
    """A tensor as the first call saw it. `group`: of those that share memory; `root`: the one whose view it is, directly or
    through others (what comes in is no view, though it share memory: it may lie apart in the next call); `whole`: it is all of its memory."""

    group: int
    root: fx.Node
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    offset: int
    whole: bool

    def like(self, other: _Seen) -> bool:
        return (self.shape, self.strides, self.dtype) == (other.shape, other.strides, other.dtype)


class Straight:
    """`main` as a function of its feeds."""

    def __init__(self, main: fx.GraphModule):
        self._main = main
        self._lock = threading.Lock()
        self._run: Callable | None = None
        self.code = ""

    def __call__(self, *feeds):
        run = self._run
        return run(*feeds) if run is not None else self._first(feeds)

    def _first(self, feeds: tuple):
        with self._lock:
            if self._run is not None:
                return self._run(*feeds)
            first = _First(self._main.graph)
            result = first.run(feeds)
            writer = _Writer(self._main.graph, first, self._main.forward)
            self.code = writer.code()
            namespace = dict(writer.names)
            exec(compile(self.code, "<composed>", "exec"), namespace)
            self._run = namespace["run"]
            return result


# --- the first call ----------------------------------------------------------------------------------------------------


def _last_uses(graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
    """By node, the nodes that are read by it for the last time."""
    last: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        last[node] = node
        for read in node.all_input_nodes:
            last[read] = node
    ends: dict[fx.Node, list[fx.Node]] = {}
    for node, at in last.items():
        ends.setdefault(at, []).append(node)
    return ends


def _tensors(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if isinstance(value, (list, tuple)) else []


class _First:
    """Runs the graph node by node and notes what its tensors are. Values are dropped as they will be later."""

    def __init__(self, graph: fx.Graph):
        self.graph = graph
        self.seen: dict[fx.Node, _Seen] = {}
        self.groups: dict[fx.Node, set[int]] = {}  # of the tensors in a node's value
        self.roots: dict[int, fx.Node] = {}
        self.fed: set[int] = set()  # groups that came in
        self.call: dict[fx.Node, Callable] = {}  # what stands for a node's target
        self._values: dict[fx.Node, object] = {}
        self._living: dict[int, list[int]] = {}  # by storage: its group, and how many values hold it
        self._numbers = itertools.count()

    def run(self, feeds: tuple):
        feeds, ends = iter(feeds), _last_uses(self.graph)
        for node in self.graph.nodes:
            if node.op == "placeholder":
                value = next(feeds)
            elif node.op == "output":
                return fx.node.map_arg(node.args[0], self._values.__getitem__)
            else:
                args = fx.node.map_arg(node.args, self._values.__getitem__)
                kwargs = fx.node.map_arg(node.kwargs, self._values.__getitem__)
                value = self._call(node, args, kwargs)
                del args, kwargs
            self._enter(node, value)
            for gone in ends.get(node, ()):
                self._leave(gone)
            del value
        raise AssertionError("the graph has no output")

    def _call(self, node: fx.Node, args: tuple, kwargs: dict):
        target = node.target
        concrete = getattr(target, "concrete", None)
        if concrete is not None:
            value, self.call[node] = concrete(*args, **kwargs)
            self.call[node] = self.call[node] or target
            return value
        if isinstance(target, torch._ops.OpOverload):
            direct = _direct.get(target._schema.name.removeprefix("aten::"))
            if direct is not None and target.namespace == "aten" and not target._schema.is_mutable:
                try:
                    value = direct(*args, **kwargs)
                except TypeError:  # this overload is spelled otherwise there
                    pass
                else:
                    self.call[node] = direct
                    return value
            self.call[node] = target._op
            return target(*args, **kwargs)
        self.call[node] = target
        return target(*args, **kwargs)

    def _enter(self, node: fx.Node, value) -> None:
        self._values[node], groups = value, self.groups.setdefault(node, set())
        for t in _tensors(value):
            entry = self._living.setdefault(t.untyped_storage()._cdata, [next(self._numbers), 0])
            entry[1] += 1
            groups.add(entry[0])
        if node.op == "placeholder":
            self.fed |= groups
        if isinstance(value, torch.Tensor):
            (group,) = groups
            storage = value.untyped_storage()
            whole = value.numel() * value.itemsize == storage.nbytes()
            root = node if node.op == "placeholder" else self._root(node, group)
            laid = tuple(value.shape), tuple(value.stride()), value.dtype, value.storage_offset()
            self.seen[node] = _Seen(group, root, *laid, whole)

    def _root(self, node: fx.Node, group: int) -> fx.Node:
        """The node itself where it is not known of which argument it is a view, or of none."""
        found = self._roots_read(node, group)
        if not found and group not in self.fed:  # of several results of one op
            return self.roots.setdefault(group, node)
        return found.pop() if len(found) == 1 else node

    def _roots_read(self, node: fx.Node, group: int) -> set[fx.Node]:
        read = [a for a in node.all_input_nodes if group in self.groups[a]]
        return {r for a in read for r in ({self.seen[a].root} if a in self.seen else self._roots_read(a, group))}

    def _leave(self, node: fx.Node) -> None:
        for t in _tensors(self._values.pop(node, None)):
            key = t.untyped_storage()._cdata
            self._living[key][1] -= 1
            if not self._living[key][1]:
                del self._living[key]


# --- what is written down ------------------------------------------------------------------------------------------------


class _Writer:
    """The function's text, and the names that it uses."""

    def __init__(self, graph: fx.Graph, first: _First, slow: Callable):
        self.graph, self.first = graph, first
        self.names: dict[str, object] = {"view": _view, "slow": slow}
        self.variables: dict[fx.Node, str] = {}
        self.lines: list[tuple[str, list[str]]] = []  # a statement, and the variables that it reads
        self.made: set[str] = set()  # variables that hold what the graph makes
        self.kept: dict[fx.Node, str] = {}  # views that have variables of their own
        self.reads: list[str] = []
        nodes = list(graph.nodes)
        self.place = {node: i for i, node in enumerate(nodes)}
        self.last_read: dict[int, int] = {}
        for node in nodes:
            for read in node.all_input_nodes:
                for group in first.groups[read]:
                    self.last_read[group] = self.place[node]

    def code(self) -> str:
        feeds = [n for n in self.graph.nodes if n.op == "placeholder"]
        for i, node in enumerate(feeds):
            self.variables[node] = f"v{i}"
        given = ", ".join(self.variables[n] for n in feeds)
        for node in self.graph.nodes:
            if node.op == "call_function" and not self._is_view(node):
                self._statement(node, given)
            elif node.op == "output":
                self._line(f"return ({''.join(f'{t}, ' for t in self._results(node.args[0]))})")
        return "\n    ".join([f"def run({given}):", *self._with_drops()]) + "\n"

    def _with_drops(self) -> list[str]:
        last = {name: i for i, (_, reads) in enumerate(self.lines) for name in reads if name in self.made}
        for i, (text, _) in enumerate(self.lines):  # what nobody reads
            name = text.split(" = ")[0]
            if name in self.made:
                last.setdefault(name, i)
        out = []
        for i, (text, _) in enumerate(self.lines):
            out.append(text)
            gone = [name for name, at in last.items() if at == i]
            if gone and not text.startswith("return"):
                out.append(f"del {', '.join(gone)}")
        return out

    def _line(self, text: str, made: str = "") -> None:
        self.lines.append((text, self.reads))
        self.reads = []
        if made:
            self.made.add(made)

    # Views

    def _is_view(self, node: fx.Node) -> bool:
        """Whether nothing is called for it: it is made of its root where it is read. Lists of views likewise."""
        if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
            return False
        seen = self.first.seen.get(node)
        if seen is not None:
            return seen.root is not node and seen.dtype == self.first.seen[seen.root].dtype
        before = {group for read in node.all_input_nodes for group in self.first.groups[read]}
        if not self.first.groups[node] or not self.first.groups[node] <= before:
            return False
        return all(user.target is operator.getitem and self._is_view(user) for user in node.users)

    def _tensor(self, node: fx.Node) -> str:
        """What stands for a tensor's node where it is read."""
        if node in self.variables:
            self.reads.append(self.variables[node])
            return self.variables[node]
        seen = self.first.seen[node]
        of, name = self.first.seen[seen.root], self.variables[seen.root]
        if seen.like(of) and seen.offset == of.offset:
            self.reads.append(name)
            return name
        if node in self.kept:
            self.reads.append(self.kept[node])
            return self.kept[node]
        text = self._view(node)
        readers = [u for u in node.users if u.op == "output" or not self._is_view(u)]
        if len(readers) < 2:
            self.reads.append(name)
            return text
        return self._keep(node)

    def _view(self, node: fx.Node) -> str:
        seen = self.first.seen[node]
        of = self.first.seen[seen.root]
        return f"view({self.variables[seen.root]}, {seen.shape}, {seen.strides}, {seen.offset - of.offset})"

    def _keep(self, node: fx.Node) -> str:
        """Gives a view a variable of its own."""
        self.kept[node] = f"w{len(self.kept)}"
        reads, self.reads = self.reads, [self.variables[self.first.seen[node].root]]
        self._line(f"{self.kept[node]} = {self._view(node)}", self.kept[node])
        self.reads = [*reads, self.kept[node]]
        return self.kept[node]

    def _results(self, nodes: tuple[fx.Node, ...]) -> list[str]:
        """One object for each node, as the graph's ops give them: a view of all is another one than what it looks at."""
        texts: dict[fx.Node, str] = {}
        for node in nodes:
            text = texts[node] if node in texts else self._tensor(node)
            of_another = text in (t for n, t in texts.items() if n is not node)
            if of_another or (text.startswith("view(") and nodes.count(node) > 1):
                text = self._keep(node)
            texts[node] = text
        return [texts[node] for node in nodes]

    # Calls

    def _statement(self, node: fx.Node, given: str) -> None:
        self.variables[node] = name = f"t{self.place[node]}"
        if node.target is operator.getitem:
            text = f"{self._text(node.args[0])}[{node.args[1]}]"
        else:
            parts = [self._text(a) for a in node.args]
            parts += [f"{key}={self._text(a)}" for key, a in node.kwargs.items()]
            function = self.first.call[node]
            if (over := self._dying_operand(node)) is not None:
                function = _over_itself.get(str(node.target), function)
                if function is self.first.call[node]:
                    parts.append(f"out={self._text(over)}")
            text = f"{self._named(node.name, function)}({', '.join(parts)})"
        self._line(f"{name} = {text}", name)
        seen = self.first.seen.get(node)
        source = node.args[0] if node.target is operator.getitem else node
        if seen is not None and any(word in _name_of(source.target) for word in _laid_by_flags):
            self.reads = [name]
            self._line(f"if {name}.stride() != {seen.strides}: return slow({given})")

    def _dying_operand(self, node: fx.Node) -> fx.Node | None:
        """An operand that an elementwise op may write its result over: nothing reads its memory any more, and it has the
        result's form."""
        made = self.first.seen.get(node)
        if made is None or str(node.target) not in _elementwise or self.first.call[node] not in _direct.values():
            return None
        operands = [n for n in node.all_input_nodes if n in self.first.seen]
        for x in operands:
            seen = self.first.seen[x]
            if seen.group in self.first.fed or self.last_read[seen.group] != self.place[node]:
                continue
            others = [self.first.seen[o] for o in operands if self.first.seen[o].group == seen.group]
            if seen.whole and made.whole and all(o.like(made) and o.offset == seen.offset for o in others):
                return x
        return None

    # Arguments

    def _text(self, value) -> str:
        if isinstance(value, fx.Node):
            return self._tensor(value)
        if isinstance(value, tuple):
            return "(" + "".join(f"{self._text(v)}, " for v in value) + ")"
        if isinstance(value, list):
            return "[" + ", ".join(map(self._text, value)) + "]"
        if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
            return repr(value)
        return self._named("constant", value)

    def _named(self, name: str, thing) -> str:
        for known, other in self.names.items():
            if other is thing:
                return known
        fresh = f"{name}_{len(self.names)}"
        self.names[fresh] = thing
        return fresh


def _name_of(target) -> str:
    return str(getattr(target, "__name__", target))
