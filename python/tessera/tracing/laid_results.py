"""How the results of a call lie in memory, which a trace can only guess: PyTorch's fake tensors lay some ops out otherwise."""

from __future__ import annotations

from typing import NamedTuple

import torch

from tessera.common.errors import fail
from tessera.common.laid import is_strided, overlaps_itself


class Laid(NamedTuple):
    """How a call's result lies: `storage` tells memories apart, in which it begins behind `offset` elements."""

    shape: torch.Size
    strides: tuple[int, ...]
    storage: int
    offset: int


def laid(t: torch.Tensor) -> Laid | None:
    if not is_strided(t):
        return None
    return Laid(t.shape, t.stride(), t.untyped_storage()._cdata, t.storage_offset())


def as_laid(graph: dict, results: list[Laid | None]) -> None:
    """Takes the strides of the results, and where they begin in those before them, from a call of the module: those of the trace are
    PyTorch's guess. Error: TS0202, where the trace's results have other shapes, or share memory with other results."""
    memory, values = graph["meta"].get("memory"), {v["name"]: v for v in graph["values"]}
    if memory is None or len(results) != len(memory["strides"]) or len(results) != len(graph["outputs"]):
        return
    for i, (now, row) in enumerate(zip(results, memory["outputs"], strict=True)):
        if now is None or not memory["strides"][i]:
            continue
        if list(now.shape) != (traced := values[graph["outputs"][i]]["shape"]):
            raise fail(
                "TS0202",
                "graph.untraceable",
                f"torch.export gives result {i} the shape {traced}, and the module gives it {list(now.shape)}",
            )
        if row is None or isinstance(row["of"], int):
            before = next((r for r in results[:i] if r is not None and r.storage == now.storage), None)
            first = results[row["of"]] if row else None
            if (first and first.storage) != (before and before.storage):
                raise fail(
                    "TS0202",
                    "graph.untraceable",
                    f"torch.export lays results out otherwise than the module, so that result {i} shares memory with "
                    f"{'an earlier one' if row else 'none'} in one of them alone",
                )
            if first and "shape" in row and "dtype" not in row:
                row.update(strides=list(now.strides), offset=now.offset - first.offset)
        if (
            row is None
            and list(now.strides) != values[graph["outputs"][i]]["strides"]
            and overlaps_itself(now.shape, now.strides)
        ):
            raise fail(
                "TS0202",
                "graph.untraceable",
                f"torch.export lays result {i}, elements of which share memory, out otherwise than the module",
            )
        memory["strides"][i] = list(now.strides)
