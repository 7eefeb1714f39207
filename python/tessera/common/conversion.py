"""Conversions of a graph that are roundings by their own meaning, as src/graph/conversion.h has it: in whatever type the
graph is computed, they round."""

from __future__ import annotations

import torch

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
    widened = {source for source, result in conversions.values() if _lacks(types[result], types[source])}
    stored = _STORED.get(graph.get("precision"), torch.bfloat16)
    found = {}
    for name, (source, result) in conversions.items():
        to = types[result]
        narrow = to.itemsize == 1 or (to.itemsize == 2 and _lacks(stored, to) and result in widened)
        if narrow and _lacks(types[source], to):
            found[name] = to
    return found


def _is_floating(dtype: torch.dtype | None) -> bool:
    return dtype is not None and dtype.is_floating_point


def _lacks(source: torch.dtype, to: torch.dtype) -> bool:
    """Whether `to` lacks numbers that `source` holds."""
    a, b = torch.finfo(source), torch.finfo(to)
    return b.eps > a.eps or b.smallest_normal > a.smallest_normal
