"""What a plan would compute ahead of the calls: what of it is kept, and what is read where the parameters lie."""

from __future__ import annotations

from dataclasses import dataclass

from tessera.common.arguments import tensor_arguments


@dataclass(frozen=True)
class Packing:
    """What becomes of the values that the plan would compute ahead of the calls.

    A concatenation of parameters along dim 0 is read where the parameters lie (neighbours.py). What follows from constants
    that only the trace holds is kept, for nothing can change it. Everything else is computed in the call: a parameter may
    change unseen, through `.data` or while a CUDA graph is replayed. `frozen`: the caller promises that parameters change
    by the version counter alone, and all is kept. `inline`: all is computed in the call.
    """

    constants: frozenset[str] = frozenset()  # values that only the trace holds
    frozen: bool = False
    inline: bool = False


def _concatenated(graph: dict) -> dict[str, tuple[str, ...]]:
    """Values that are contiguous parameters one after the other, with those parameters."""
    values = {v["name"]: v for v in graph["values"]}
    changed = {m["target"] for m in graph.get("mutations", ())}

    def part(name: str) -> bool:
        v = values[name]
        return (
            v["origin"] in ("parameter", "buffer") and v.get("target") not in changed and len(v["shape"]) > 0
        ) and _is_contiguous(v)

    found = {}
    for n in graph["nodes"]:
        if (
            n["op"] != "aten.cat.default"
            or n["arguments"].get("dim", 0) != 0
            or not _is_contiguous(values[n["outputs"][0]])
        ):
            continue
        parts = tuple(tensor_arguments(n))
        if len({values[name]["dtype"] for name in parts}) == 1 and all(map(part, parts)):
            found[n["outputs"][0]] = parts
    return found


def _is_contiguous(value: dict) -> bool:
    wanted, step = [], 1
    for n in reversed(value["shape"]):
        wanted.insert(0, step)
        step *= n
    return all(n == 1 or a == b for n, a, b in zip(value["shape"], value["strides"], wanted, strict=True))


def _sources(graph: dict, value: str, producer: dict[str, dict]) -> set[str]:
    """The graph's inputs that a value follows from."""
    found, pending, seen = set(), [value], set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in producer:
            pending += tensor_arguments(producer[name])
        else:
            found.add(name)
    return found


def kept_and_neighbours(plan: dict, packing: Packing) -> tuple[set[str], dict[str, tuple[str, ...]]]:
    """(values that are kept, values read where parameters lie)."""
    if packing.inline:
        return set(), {}
    graph = plan["graph"]
    ahead = {v for s in plan["steps"] if s["kind"] == "prepack" for v in s["outputs"]}
    neighbours = {v: parts for v, parts in _concatenated(graph).items() if v in ahead}
    rest = ahead - neighbours.keys()
    if not packing.frozen:
        producer = {name: node for node in graph["nodes"] for name in node["outputs"]}
        rest = {v for v in rest if _sources(graph, v, producer) <= packing.constants}
    return rest, neighbours
