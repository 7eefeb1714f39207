"""From the flat results of a graph to what the original's forward returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Outputs:
    """What forward returns: the graph's outputs and constants in flattened order, and their nesting."""

    results: list[tuple[str, object]]  # ("value", index into the graph's outputs) or ("constant", object)
    spec: pytree.TreeSpec

    def __call__(self, flat):
        return pytree.tree_unflatten(
            [flat[what] if kind == "value" else what for kind, what in self.results], self.spec
        )

    def __reduce__(self):
        return (_restore_outputs, (self.results, pytree.treespec_dumps(self.spec)))


def _restore_outputs(results, spec: str) -> Outputs:
    return Outputs(results, pytree.treespec_loads(spec))


def wrapper(outputs: Outputs | None, count: int) -> Callable:
    """From the flat tuple of the graph's outputs to the original's result; the common forms without a pytree."""
    if outputs is None:
        return _first if count == 1 else tuple
    plain = list(outputs.results) == [("value", i) for i in range(count)]
    if plain and outputs.spec.is_leaf():
        return _first
    if plain and outputs.spec == pytree.tree_structure((0,) * count):
        return tuple
    return outputs


def _first(flat):
    return flat[0]
