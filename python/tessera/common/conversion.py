"""Conversions of a graph that are roundings by their own meaning, as src/graph/conversion.h has it: in whatever type the
graph is computed, they round."""

from __future__ import annotations

import torch

from tessera.common.arguments import tensor_arguments

_OPS = ("aten._to_copy.", "aten.to.")
_STORED = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def roundings(graph: dict) -> dict[str, torch.dtype]:
    """The type that each rounding node rounds to, by the node's name."""
    types = {value["name"]: getattr(torch, value["dtype"], None) for value in graph.get("values", ())}
    conversions = {}
    for node in graph["nodes"]:
        if node["op"].startswith(_OPS) and isinstance(node["arguments"].get("self"), dict):
            source, result = node["arguments"]["self"].get("value"), node["outputs"][0]
            if _is_floating(types.get(source)) and _is_floating(types.get(result)):
                conversions[node["name"]] = (source, result)
    widened = {
        read
        for node in graph["nodes"]
        for read in tensor_arguments(node)
        if _is_floating(types.get(read)) and any(_widens(types, read, result) for result in node["outputs"])
    }
    stored = _STORED.get(graph.get("precision"), torch.bfloat16)
    producers = {result: node for node in graph["nodes"] for result in node["outputs"]}
    found = {}
    for name, (source, result) in conversions.items():
        to = types[result]
        narrow = to.itemsize == 1 or (
            to.itemsize == 2
            and result in widened
            and (_lacks(stored, to) or _of_wider_inputs(producers, types, source, to))
        )
        if narrow and _lacks(types[source], to):
            found[name] = to
    return found


def _of_wider_inputs(producers: dict, types: dict, value: str, to: torch.dtype) -> bool:
    """What the module was given holds more than `to`, and so does all that was computed of it since."""
    todo, seen = [value], set()
    while todo:
        at = todo.pop()
        if at in seen or not _is_floating(types.get(at)) or not _lacks(types[at], to):
            continue
        seen.add(at)
        if at not in producers:
            return True
        todo += tensor_arguments(producers[at])
    return False


def _widens(types: dict, read: str, result: str) -> bool:
    return _is_floating(types.get(result)) and _lacks(types[result], types[read])


def _is_floating(dtype: torch.dtype | None) -> bool:
    return dtype is not None and dtype.is_floating_point


def _lacks(source: torch.dtype, to: torch.dtype) -> bool:
    """Whether `to` lacks numbers that `source` holds."""
    a, b = torch.finfo(source), torch.finfo(to)
    return b.eps > a.eps or b.smallest_normal > a.smallest_normal
