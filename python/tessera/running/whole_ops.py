"""Ops that the canonical form writes as several nodes, as one op again, for what is left to PyTorch: it has one kernel for them.

A batch norm with fixed statistics is x * scale + shift in the canonical graph, so that kernels may take it in; scale and shift
follow from four vectors in five small ops. Where no kernel takes the sum, PyTorch's batch norm makes it in one.
"""

from __future__ import annotations


def whole(graph: dict) -> tuple[dict[str, dict], set[str]]:
    """(by value name, a node that makes it in one op of what is there before the several; the names of the nodes that
    nothing but such a value may need)."""
    producer = {name: node for node in graph["nodes"] for name in node["outputs"]}
    found, absorbed = {}, set()
    for node in graph["nodes"]:
        parts: set[str] = set()
        if node["op"] == "aten.add.Tensor" and (arguments := _batch_norm(node, producer, parts)) is not None:
            found[node["outputs"][0]] = {**node, "op": "aten.batch_norm.default", "arguments": arguments}
            absorbed |= parts
    return found, absorbed


def _batch_norm(node: dict, producer: dict[str, dict], parts: set[str]) -> dict | None:
    """The arguments of aten.batch_norm where the node is the sum of x * scale and shift; else None. `parts` gets the names of
    the nodes below it.

    scale = rsqrt(var + eps) [* weight]; shift = bias - mean * scale, or -(mean * scale); both stand as columns."""

    def made(value: str | None, op: str) -> dict | None:
        """The arguments of the op that makes the value."""
        by = producer.get(value) if value else None
        if by is None or by["op"] != op:
            return None
        parts.add(by["name"])
        return by["arguments"]

    def name(argument) -> str | None:
        return argument.get("value") if isinstance(argument, dict) else None

    def column(argument) -> str | None:
        """The vector below a column."""
        view = made(name(argument), "aten.reshape.default") or made(name(argument), "aten.view.default")
        return name(view["self"]) if view else name(argument)

    product, shift = made(name(node["arguments"]["self"]), "aten.mul.Tensor"), column(node["arguments"].get("other"))
    if product is None or shift is None or node["arguments"].get("alpha", 1) != 1:
        return None
    scale = column(product.get("other"))
    weighted = made(scale, "aten.mul.Tensor")
    root = made(name(weighted["self"]) if weighted else scale, "aten.rsqrt.default")
    spread = made(name(root["self"]), "aten.add.Tensor") if root else None
    less, negated = made(shift, "aten.sub.Tensor"), made(shift, "aten.rsub.Scalar")
    moved = made(name((less["other"] if less else negated["self"]) if less or negated else None), "aten.mul.Tensor")
    if spread is None or moved is None or name(moved.get("other")) != scale:
        return None
    if not isinstance(spread.get("other"), int | float) or spread.get("alpha", 1) != 1 or name(moved["self"]) is None:
        return None
    if (less or negated).get("alpha", 1) != 1 or (less is None and negated.get("other") != 0):
        return None
    return {
        "input": product["self"],
        "weight": weighted["other"] if weighted else None,
        "bias": less["self"] if less else None,
        "running_mean": moved["self"],
        "running_var": spread["self"],
        "training": False,
        "momentum": 0.0,
        "eps": spread["other"],
        "cudnn_enabled": True,
    }
