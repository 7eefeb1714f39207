"""From the flat results of a graph to what the original's forward returns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch.utils import _pytree as pytree

from tessera.running import result_objects  # noqa: F401 - pytree is to know its nodes


@dataclass(frozen=True)
class Outputs:
    """What forward returns: the graph's outputs and constants in flattened order, and their nesting."""

    results: list[tuple[str, object]]  # ("value", index into the graph's outputs) or ("constant", object)
    spec: pytree.TreeSpec

    def __call__(self, flat):
        return pytree.tree_unflatten(
            [flat[what] if kind == "value" else what for kind, what in self.results], self.spec
        )

    def maker(self) -> Callable:
        """The same as functions of one nesting each, without a walk over the spec in every call."""
        return _maker(self.spec, iter(self.results))

    def __reduce__(self):
        return (_restore_outputs, (self.results, pytree.treespec_dumps(self.spec)))


def _restore_outputs(results, spec: str) -> Outputs:
    return Outputs(results, pytree.treespec_loads(spec))


def _maker(spec: pytree.TreeSpec, results: Iterator[tuple[str, object]]) -> Callable:
    if spec.is_leaf():
        kind, what = next(results)
        return operator.itemgetter(what) if kind == "value" else lambda flat: what
    unflatten, context = pytree.SUPPORTED_NODES[spec.type].unflatten_fn, spec.context
    children = [_maker(child, results) for child in spec.children()]
    return lambda flat: unflatten([child(flat) for child in children], context)


def wrapper(outputs: Outputs | None, count: int) -> Callable:
    """From the flat tuple of the graph's outputs to the original's result; the common forms without a pytree."""
    if outputs is None:
        return _first if count == 1 else tuple
    plain = list(outputs.results) == [("value", i) for i in range(count)]
    if plain and outputs.spec.is_leaf():
        return _first
    if plain and outputs.spec == pytree.tree_structure((0,) * count):
        return tuple
    return outputs.maker()


def _first(flat):
    return flat[0]
