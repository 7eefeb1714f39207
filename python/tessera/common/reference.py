"""Executes nodes of a graph (schema tessera.graph/1) by real ATen ops.

Conversions that are roundings by their own meaning round, whatever is computed in (conversion.py).

With a compute dtype every floating tensor is held in it: inputs are converted, and dtype arguments that name a floating
type (of conversions, softmax, sums, new tensors) name the compute dtype instead. In float64 this is the meaning that
kernels are verified against; without one (None) it is what eager PyTorch computes. An op that does not know the compute dtype,
as custom ops often do not, runs in the types that the graph gives it.
"""

from __future__ import annotations

import functools

import torch

from tessera.common import flex_calls, transforms  # noqa: F401 - its operators are looked up by name
from tessera.common.arguments import tensor_arguments
from tessera.common.conversion import roundings
from tessera.common.errors import fail
from tessera.common.laid import in_layout, in_storage, storage_of
from tessera.common.wide_types import WRITTEN_OUT

_memory_formats = {
    "contiguous_format": torch.contiguous_format,
    "preserve_format": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}

_views = ("aten.view.default", "aten._unsafe_view.default")
_reshape = "aten.reshape.default"
_BITS = "aten.view.dtype"  # reads bits, which are those of the type that the graph has alone
_attention = "aten.scaled_dot_product_attention.default"
_views_of_results = (*_views, "aten.transpose.int", "aten.permute.default")


@functools.cache
def overload(op: str):
    """The OpOverload of "aten.linear.default"."""
    parts = op.split(".")
    try:
        namespace, packet = getattr(torch.ops, parts[0]), parts[1]
        return getattr(getattr(namespace, packet), parts[2])
    except (AttributeError, IndexError):
        raise fail(
            "TS0220",
            "graph.unknown_op",
            f"this PyTorch ({torch.__version__}) has no op `{op}`",
            helps=["trace the module again with this PyTorch"],
        ) from None


class Executor:
    """`share_clones`: a clone of attention's result is that result where it has the wanted layout already, as torch's own
    kernels write it; a written-out attention, in whose place it stands, has it otherwise and needs the clone."""

    def __init__(self, graph: dict, device: str | torch.device | None = None, share_clones: bool = False):
        self.graph = graph
        flex_calls.define(graph.get("meta", {}).get("calls", {}))
        self.share_clones = share_clones
        self.device = torch.device(device or graph.get("device", "cpu"))
        self.nodes = {n["name"]: n for n in graph["nodes"]}
        self._values = {v["name"]: v for v in graph.get("values", ())}
        self._in_storage = in_storage(graph)
        self._roundings = roundings(graph)
        self._position = {n["name"]: i for i, n in enumerate(graph["nodes"])}
        self.in_own_types: set[str] = set()  # ops that refused a compute dtype

    def run(
        self,
        nodes: list[str],
        inputs: dict[str, torch.Tensor],
        outputs: list[str],
        compute_dtype: torch.dtype | None = None,
    ) -> dict[str, torch.Tensor]:
        """The values `outputs` after these nodes, in the graph's order, have run on `inputs`.

        Inputs are converted where they are first read (`inputs` may be any mapping), and all values are dropped after
        their last use, so that memory stays what eager execution needs.
        """
        ordered = sorted(nodes, key=self._position.__getitem__)
        last_use = {}
        for name in ordered:
            for value in tensor_arguments(self.nodes[name]):
                last_use[value] = name
        kept = set(outputs)
        values: dict[str, torch.Tensor] = {}
        own = attention_results([self.nodes[n] for n in ordered]) if self.share_clones else {}
        with torch.no_grad():
            for name in ordered:
                node = self.nodes[name]
                for value in tensor_arguments(node):
                    self._take(value, inputs, values, compute_dtype)
                if not _shared(node, values, own):
                    self._call(node, values, compute_dtype)
                for value in {*tensor_arguments(node), *node["outputs"]}:
                    if value not in kept and last_use.get(value, name) == name:
                        values.pop(value, None)
        for value in outputs:
            self._take(value, inputs, values, compute_dtype)
        return {name: values[name] for name in outputs}

    def _take(self, name: str, inputs, values: dict[str, torch.Tensor], compute_dtype: torch.dtype | None) -> None:
        """Puts an input, or a constant that a pattern does not take as one, among the values."""
        if name in values:
            return
        found = inputs[name] if name in inputs else self._constant(name)
        if found is None:
            raise fail("TS0221", "graph.no_such_value", f"the nodes neither make nor are given `{name}`")
        held = _held(found, compute_dtype, self.device)
        if name in self._in_storage and held is not found:  # the graph reads it by its place there
            held = _held(storage_of(found), compute_dtype, self.device)
            held = held.as_strided(found.shape, found.stride(), found.storage_offset())
        values[name] = held

    def _constant(self, name: str) -> torch.Tensor | None:
        """A buffer or constant of equal elements: patterns hold its number and do not take it as an input."""
        value = self._values.get(name, {})
        facts = value.get("facts") or {}
        if "scalar" not in facts:
            return None
        dtype = getattr(torch, value["dtype"])
        number = facts["scalar"]
        number = float(number) if isinstance(number, str) else number
        filled = torch.float32 if dtype.itemsize == 1 else dtype
        return torch.full(value["shape"], number, dtype=filled, device=self.device).to(dtype)

    def run_all(
        self, inputs: dict[str, torch.Tensor], compute_dtype: torch.dtype | None = None
    ) -> dict[str, torch.Tensor]:
        """Every output and mutation of the graph from its inputs (user inputs, parameters, buffers, constants)."""
        wanted = [*self.graph["outputs"], *(m["value"] for m in self.graph.get("mutations", ()))]
        return self.run(list(self.nodes), inputs, list(dict.fromkeys(wanted)), compute_dtype)

    def _call(self, node: dict, values: dict[str, torch.Tensor], compute_dtype: torch.dtype | None) -> None:
        if compute_dtype is not None and node["op"] == _BITS:
            result = self._result_in_own_types(node, values, None)
        elif compute_dtype is None or node["op"] not in self.in_own_types:
            try:
                result = self._result(node, values, compute_dtype)
            except torch.OutOfMemoryError:
                raise
            except Exception as refused:  # ops refuse a type in many ways
                if compute_dtype is None:
                    raise
                result = self._result_in_own_types(node, values, refused)
                self.in_own_types.add(node["op"])
        else:
            result = self._result_in_own_types(node, values, None)
        results = result if isinstance(result, (tuple, list)) else [result]
        for name, tensor in zip(node["outputs"], results, strict=False):
            if tensor is not None:
                values[name] = _held(tensor, compute_dtype, self.device)
        if may_lie_otherwise(node, self._values):
            (name,) = node["outputs"]
            values[name] = in_layout(values[name], self._values[name]["shape"], self._values[name]["strides"])

    def _result_in_own_types(self, node: dict, values: dict[str, torch.Tensor], refused: Exception | None):
        """What the op gives in the types of the graph; raises `refused` where it refuses these too."""
        own = {}
        for name in tensor_arguments(node):
            declared = self._values.get(name, {}).get("dtype")
            tensor = values[name]
            own[name] = tensor.to(getattr(torch, declared)) if declared and tensor.is_floating_point() else tensor
        try:
            return self._result(node, own, None)
        except torch.OutOfMemoryError:
            raise
        except Exception as again:
            raise refused or again from None

    def _result(self, node: dict, values: dict[str, torch.Tensor], compute_dtype: torch.dtype | None):
        # A rewrite may have changed the layout below a view: reshape is view where that is possible, else a copy.
        op = overload(_reshape if node["op"] in _views else node["op"])
        types = {a.name: a for a in op._schema.arguments}
        positional, keywords = [], {}
        for name, encoded in node["arguments"].items():
            if node["op"] in _views and name == "size":
                name = "shape"
            schema = types.get(name)
            value = self._decode(encoded, schema.type if schema else None, values, compute_dtype)
            if schema is None or schema.kwarg_only:
                keywords[name] = value
            else:
                positional.append(value)
        if compute_dtype is not None and op in WRITTEN_OUT:
            op = WRITTEN_OUT[op]
        result = op(*positional, **keywords)
        if compute_dtype is not None and (narrow := self._roundings.get(node["name"])) is not None:
            return result.to(narrow).to(compute_dtype)
        return result

    def _decode(self, encoded, kind, values, compute_dtype):
        if isinstance(encoded, list):
            return [self._decode(item, None, values, compute_dtype) for item in encoded]
        if isinstance(encoded, dict):
            if "value" in encoded:
                return values[encoded["value"]]
            if "dtype" in encoded:
                dtype = getattr(torch, encoded["dtype"])
                return compute_dtype if compute_dtype is not None and dtype.is_floating_point else dtype
            return float(encoded["float"])
        if isinstance(encoded, str) and kind is not None:
            text = str(kind)
            if "Device" in text:
                return self.device
            if encoded in _memory_formats:
                return _memory_formats[encoded]
            if encoded == "strided":
                return torch.strided
        return encoded


def may_lie_otherwise(node: dict, values: dict[str, dict]) -> bool:
    """Whether PyTorch's op may lay the result of a rewrite out in another way than the ops that it stands for, as `values` has it.
    What reads attention takes any layout."""
    if not node.get("rewritten_from") or node["op"] == _attention or len(node["outputs"]) != 1:
        return False
    names = [*node["outputs"], *tensor_arguments(node)]
    return not all(_is_row_major(values[name]) for name in names if name in values)


def _is_row_major(value: dict) -> bool:
    return torch.empty_strided(value["shape"], value["strides"], device="meta").is_contiguous()


def attention_results(nodes: list[dict]) -> dict[str, str]:
    """Results of attention and views of them, with the result that they look at: in their memory lies nothing of what the
    nodes were given. `nodes` in order of execution."""
    own: dict[str, str] = {}
    for node in nodes:
        if node["op"] == _attention:
            own.update({name: name for name in node["outputs"]})
        elif node["op"] in _views_of_results and (source := node["arguments"]["self"].get("value")) in own:
            own.update(dict.fromkeys(node["outputs"], own[source]))
    return own


def cloned_result(node: dict, own: dict[str, str]) -> str | None:
    """The value of `own` that this node clones, where the clone needs no copy if that value `has_layout`."""
    if node["op"] != "aten.clone.default" or _layout(node) not in ("preserve_format", "contiguous_format"):
        return None
    source = node["arguments"]["self"]["value"]
    return source if source in own else None


def keeps_layout(node: dict) -> bool:
    """Whether the clone has its source's layout, whatever that is."""
    return _layout(node) == "preserve_format"


def _layout(node: dict) -> str:
    return node["arguments"].get("memory_format", "preserve_format")


def _shared(node: dict, values: dict[str, torch.Tensor], own: dict[str, str]) -> bool:
    """Whether the node is a clone of a value in `own` and needs no copy; its output is that value then."""
    source = cloned_result(node, own)
    if source is None or not (keeps_layout(node) or values[source].is_contiguous()):
        return False
    values[node["outputs"][0]] = values[source]
    return True


def _held(tensor: torch.Tensor, dtype: torch.dtype | None, device: torch.device) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        return torch.as_tensor(tensor, device=device)
    if dtype is not None and tensor.is_floating_point() and tensor.dtype != dtype:
        return tensor.to(device=device, dtype=dtype)
    return tensor if tensor.device == device else tensor.to(device)
