"""An exported program to a graph (schema tessera.graph/1, docs/protocol.md)."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import BY_GRAPHS, Error, fail
from tessera.common.facts import facts_of
from tessera.common.module_state import owner_of
from tessera.common.transforms import as_parts
from tessera.running import surroundings
from tessera.running.keywords import ordered, signature_of
from tessera.tracing.closed import facts_of_closed
from tessera.tracing.complex_arithmetic import Real, Unsupported, is_complex
from tessera.tracing.complex_ops import Lowering, involved
from tessera.tracing.library_versions import machine
from tessera.tracing.origin import origin_of
from tessera.tracing.torch_export import Exported

_dtypes = {
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
}


@dataclass
class Traced:
    """A graph with what JSON cannot hold: the live tensors behind its inputs and the shape of its results."""

    graph: dict
    module: nn.Module
    in_spec: pytree.TreeSpec | None
    out_spec: pytree.TreeSpec
    user_inputs: list[str | None]  # value name of each flattened input; None for a number or string
    results: list[tuple[str, object]]  # ("value", index into the graph's outputs) or ("constant", object)
    constants: dict[str, torch.Tensor] = field(default_factory=dict)  # value name -> lifted constant

    def flatten(self, args: tuple, kwargs: dict | None = None) -> dict[str, torch.Tensor]:
        """The user inputs of a call by value name."""
        leaves = pytree.tree_leaves((tuple(args), ordered(signature_of(self.module), kwargs or {})))
        return {name: leaf for name, leaf in zip(self.user_inputs, leaves, strict=True) if name is not None}

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters, buffers and constants as they are now, by value name."""
        live = {
            **dict(self.module.named_parameters(remove_duplicate=False)),
            **dict(self.module.named_buffers(remove_duplicate=False)),
        }
        out = dict(self.constants)
        for value in self.graph["values"]:
            if value["origin"] in ("parameter", "buffer"):
                out[value["name"]] = live[value["target"]].detach()
            elif value["origin"] == "constant" and value["name"] not in out:  # the parts of a complex tensor
                _, owner, key = owner_of(self.module, value["target"])
                out[value["name"]] = as_parts(owner[key])
        return out

    def unflatten(self, outputs: list[torch.Tensor]):
        """What forward returns, from the graph's outputs in their order (rewrites keep the order, not the names)."""
        leaves = [outputs[what] if kind == "value" else what for kind, what in self.results]
        return pytree.tree_unflatten(leaves, self.out_spec)


# Of torch.cond and the like.
_TO_INDUCTOR = (
    'or torch.compile(module, backend="tessera"): a graph with such an op goes to Inductor, the others are optimized'
)


class Builder:
    def __init__(self, exported: Exported, module, args, kwargs, precision, name):
        self.exported, self.literals, self.calls = exported.program, exported.literals, exported.calls
        self.memory = exported.memory
        self.module, self.args, self.kwargs = module, args, kwargs
        self.precision, self.name = precision, name
        self.parameter_targets: dict[int, str] = {}
        self.values: list[dict] = []
        self.inputs: list[str] = []
        self.nodes: list[dict] = []
        self.assertions: list[dict] = []
        self.value_of: dict[torch.fx.Node, str | list[str]] = {}
        self.reals: dict[torch.fx.Node, Real] = {}  # what stands for complex nodes
        self.names = {n.name for n in self.exported.graph.nodes}
        self.closed = facts_of_closed(self.exported, self.literals)
        self.user_inputs: list[str | None] = []
        given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        given.sort(key=lambda t: t.numel() <= 1)  # numbers may lie on the host
        self.device = next(itertools.chain(given, module.parameters(), [torch.empty(0)])).device
        self.constants: dict[str, torch.Tensor] = {}

    def build(self) -> Traced:
        self._placeholders()
        for node in self.exported.graph.nodes:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                op = next(iter(node.users), node)
                raise self._unsupported(op, "it calls captured functions", _TO_INDUCTOR)
        outputs, mutations, results = self._outputs()
        graph = {
            "schema": "tessera.graph/1",
            "name": self.name,
            "device": str(self.device),
            "precision": self.precision,
            "meta": {
                "torch": torch.__version__,
                "class": type(self.module).__qualname__,
                "training": self.module.training,
                "memory": self.memory,
                "surroundings": surroundings.taken(self.device),
                **machine(self.device),
                **({"calls": self.calls} if self.calls else {}),
            },
            "inputs": self.inputs,
            "outputs": outputs,
            "mutations": mutations,
            "assertions": self.assertions,
            "values": self.values,
            "nodes": self.nodes,
        }
        spec = self.exported.call_spec
        return Traced(graph, self.module, spec.in_spec, spec.out_spec, self.user_inputs, results, self.constants)

    def _placeholders(self) -> None:
        kinds = {
            "USER_INPUT": "user_input",
            "PARAMETER": "parameter",
            "BUFFER": "buffer",
            "CONSTANT_TENSOR": "constant",
        }
        mutated = {s.target for s in self.exported.graph_signature.output_specs if s.target is not None}
        nodes = {n.name: n for n in self.exported.graph.nodes if n.op == "placeholder"}
        order = {kind: i for i, kind in enumerate(kinds.values())}
        rows = []
        for spec in self.exported.graph_signature.input_specs:
            kind = kinds.get(spec.kind.name)
            name = getattr(spec.arg, "name", None)
            node = nodes.get(name)
            is_tensor = node is not None and isinstance(node.meta.get("val"), torch.Tensor)
            if kind is None:
                raise fail("TS0202", "graph.untraceable", f"the module takes an input of kind {spec.kind.name}")
            target = spec.target or ""
            if kind == "user_input":
                position = len(self.user_inputs)
                self.user_inputs.append(name if is_tensor else None)
                if self.parameter_targets.get(position):
                    kind, target = "parameter", self.parameter_targets[position]
            if is_tensor:
                rows.append((order[kind], node, kind, target, target in mutated))
        for _, node, kind, target, changes in sorted(rows, key=lambda row: row[0]):
            content = self._content(kind, target, node.name)
            facts = facts_of(content) if content is not None and not changes else {}
            val = node.meta["val"]
            if (
                is_complex(val)
                and not changes
                and (place := self._place_of_parts(node, kind, target, content)) is not None
            ):
                kind, target, val = "constant", place, torch.view_as_real(val)
                self.reals[node] = Real(node.name, val)
            self._value(node.name, val, kind, target, facts)
            self.inputs.append(node.name)
            self.value_of[node] = node.name

    def _place_of_parts(self, node: torch.fx.Node, kind: str, target: str, content: torch.Tensor | None) -> str | None:
        """Where the complex tensor is held whose parts the graph reads; an empty name: by the trace; None: not in its parts."""
        held = None if isinstance(self.module, torch.fx.GraphModule) else owner_of(self.module, target)
        if held is not None and kind != "user_input" and not held[1][held[2]].is_conj():
            self.constants.pop(node.name, None)
            return target
        if content is None or content.is_conj():
            return None
        self.constants[node.name] = as_parts(content)
        return ""

    def _content(self, kind: str, target: str, name: str) -> torch.Tensor | None:
        if kind not in ("buffer", "constant"):
            return None
        tensor = self.exported.constants.get(target)
        if tensor is None:
            tensor = self.exported.state_dict.get(target)
        if kind == "constant" and tensor is not None:
            self.constants[name] = tensor
        return tensor

    def _value(self, name: str, val: torch.Tensor, origin: str, target: str = "", facts: dict | None = None) -> None:
        if val.dtype not in _dtypes or val.layout != torch.strided:
            raise fail(
                "TS0205",
                "graph.unsupported_dtype",
                f"`{target or name}` is a {val.layout} tensor of {val.dtype}",
                expected="strided tensors of floating, integer or boolean type",
                helps=[
                    _HELP_COMPLEX.get(origin, _HELP_COMPLEX[""]) if val.is_complex() else "convert it",
                    "or optimize the submodules that have no such tensors",
                    BY_GRAPHS,
                ],
            )
        if any(not isinstance(s, int) for s in (*val.shape, *val.stride())):
            raise fail(
                "TS0203",
                "graph.data_dependent",
                f"the shape of `{name}` depends on the values of a tensor",
                helps=["optimize the submodules whose shapes are fixed", BY_GRAPHS],
            )
        value = {
            "name": name,
            "dtype": str(val.dtype).removeprefix("torch."),
            "shape": list(val.shape),
            "strides": list(val.stride()),
            "origin": origin,
        }
        if target:
            value["target"] = target
        if val.device != self.device:
            value["device"] = str(val.device)
        if origin == "constant" and target in self.literals:
            value["literal"] = True
        if facts:
            value["facts"] = facts
        self.values.append(value)

    def _call(self, node: torch.fx.Node) -> None:
        if getattr(node.target, "__name__", "") == "getitem":
            self._getitem(node)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise self._unsupported(node, "it is no ATen op")
        if node.target._schema.name == "aten::_assert_tensor_metadata":
            return
        if node.target._schema.name == "aten::_assert_async":
            condition, message = (*node.args, "an assertion of forward does not hold")[:2]
            self.assertions.append({"value": self.value_of[condition], "message": message})
            return
        val = node.meta.get("val")
        if involved(node):
            self._lower_complex(node)
            return
        if isinstance(val, torch.Tensor):
            outputs = [node.name]
            self.value_of[node] = node.name
            self._value(node.name, val, "node", facts=self.closed.get(node))
        elif isinstance(val, (tuple, list)) and any(isinstance(v, torch.Tensor) for v in val):
            outputs = self._multiple(node, val)
        else:
            raise self._unsupported(node, "its result is no tensor")
        self._record(node, node.name, node.target, self._arguments(node), outputs)

    def _record(self, node: torch.fx.Node, name: str, target, arguments: dict, outputs: list[str]) -> None:
        record = {"name": name, "op": str(target), "arguments": arguments, "outputs": outputs}
        module, place = origin_of(node)
        if module:
            record["module"] = module
        if place:
            record["place"] = place
        self.nodes.append(record)

    def _lower_complex(self, node: torch.fx.Node) -> None:
        def of(argument: torch.fx.Node) -> Real:
            return self.reals.get(argument) or Real(self.value_of[argument], argument.meta["val"])

        def emit(target, *args, **kwargs) -> Real:
            def fake(x):
                return [fake(i) for i in x] if isinstance(x, list) else x.fake if isinstance(x, Real) else x

            val = node.meta["val"]
            mode = getattr(val[0] if isinstance(val, (list, tuple)) else val, "fake_mode", contextlib.nullcontext())
            with mode, torch.no_grad():
                val = target(*[fake(a) for a in args], **kwargs)
            name = self._fresh(f"{node.name}_{target._schema.name.partition('::')[2]}")
            self._value(name, val, "node")
            self._record(node, name, target, self._encoded(node, target, args, kwargs), [name])
            return Real(name, val)

        try:
            made = Lowering(emit, of)(node)
        except Unsupported as why:
            raise self._unsupported(node, str(why)) from why
        self.reals[node] = made
        self.value_of[node] = [m.name for m in made] if isinstance(made, list) else made.name

    def _fresh(self, name: str) -> str:
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def _multiple(self, node: torch.fx.Node, val) -> list[str]:
        """Names of several results: those of the getitem nodes that take them; empty ones stand for None."""
        taken = {user.args[1]: user.name for user in node.users if getattr(user.target, "__name__", "") == "getitem"}
        names = []
        for i, v in enumerate(val):
            name = taken.get(i)
            if name is None:
                name = self._fresh(f"{node.name}_out{i}")
            self._value(name, v if isinstance(v, torch.Tensor) else torch.empty(0), "node")
            names.append(name)
        self.value_of[node] = names
        return names

    def _getitem(self, node: torch.fx.Node) -> None:
        several, i = node.args
        self.value_of[node] = self.value_of[several][i]
        if several in self.reals:
            self.reals[node] = self.reals[several][i]

    def _arguments(self, node: torch.fx.Node) -> dict:
        return self._encoded(node, node.target, node.args, node.kwargs)

    def _encoded(self, node: torch.fx.Node, target, args, kwargs: dict) -> dict:
        out = {}
        for i, argument in enumerate(target._schema.arguments):
            if i < len(args) and not argument.kwarg_only:
                given = args[i]
            elif argument.name in kwargs:
                given = kwargs[argument.name]
            else:
                given = argument.default_value if argument.has_default_value() else None
            out[argument.name] = self._encode(node, given, str(argument.type))
        return out

    def _encode(self, node: torch.fx.Node, given, kind: str):
        if isinstance(given, torch.fx.Node):
            value = self.value_of[given]
            return [{"value": v} for v in value] if isinstance(value, list) else {"value": value}
        if isinstance(given, Real):
            return {"value": given.name}
        if isinstance(given, (list, tuple)):
            return [self._encode(node, item, kind.removeprefix("List[").removesuffix("]")) for item in given]
        if given is None or isinstance(given, (bool, str)):
            return given
        if isinstance(given, int):
            return float(given) if kind.removeprefix("Optional[").removesuffix("]") == "float" else given
        if isinstance(given, float):
            return (
                given
                if math.isfinite(given)
                else {"float": "nan" if math.isnan(given) else "inf" if given > 0 else "-inf"}
            )
        if isinstance(given, torch.dtype):
            if given not in _dtypes:
                raise fail("TS0205", "graph.unsupported_dtype", f"`{node.name}` names the type {given}")
            return {"dtype": str(given).removeprefix("torch.")}
        if isinstance(given, (torch.device, torch.layout, torch.memory_format)):
            return str(given).removeprefix("torch.")
        raise self._unsupported(node, f"an argument is a {type(given).__name__}")

    def _unsupported(self, node: torch.fx.Node, why: str, *helps: str) -> Error:
        module, place = origin_of(node)
        where = f" ({module}{', ' if module and place else ''}{place})" if module or place else ""
        return fail(
            "TS0202",
            "graph.untraceable",
            f"`{node.target}`{where} cannot be taken: {why}",
            helps=["optimize the submodules that do not use it", *helps],
        )

    def _outputs(self):
        node = next(n for n in self.exported.graph.nodes if n.op == "output")
        outputs, mutations, results = [], [], []
        for spec, given in zip(self.exported.graph_signature.output_specs, node.args[0], strict=True):
            if spec.kind.name == "USER_OUTPUT":
                if isinstance(given, torch.fx.Node) and is_complex(given.meta.get("val")):
                    self._value(given.name, given.meta["val"], "node")  # refused
                if isinstance(given, torch.fx.Node):
                    results.append(("value", len(outputs)))
                    outputs.append(self.value_of[given])
                else:
                    results.append(("constant", given))
            else:  # a buffer, parameter or input that the module changes in place
                target = spec.target
                if spec.kind.name == "USER_INPUT_MUTATION":
                    # Of a captured graph's weight its name.
                    target = self.parameter_targets.get(self.user_inputs.index(target)) or f"input:{target}"
                mutations.append({"value": self.value_of[given], "target": target})
        return outputs, mutations, results


_HELP_COMPLEX = {
    "parameter": "keep it as pairs, nn.Parameter(torch.view_as_real(w)), and take torch.view_as_complex(self.w) in forward",
    "": "take and return complex tensors as torch.view_as_real(z)",
}
