"""How far a module's results move when its roundings do.

A mixture of experts sends a token to another expert where two scores are nearly equal, and an argmax falls the other way: one
rounding, and a result is another. What eager is off against fp64 does not show it, since eager may have met no such tie. So
the graph is run with every rounded result moved by up to a unit in the last place, at random (stochastic arithmetic, as in
J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993).
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_map

# Of a unit in the last place, where the precision class rounds more than the type does.
_class_eps = {"tf32": 2.0**-10}
# Ops that move or choose elements: what they give is not rounded.
_exact = {
    *("_to_copy", "clone", "copy", "contiguous", "detach", "lift_fresh_copy"),
    *("cat", "stack", "repeat", "roll", "flip", "constant_pad_nd", "tril", "triu"),
    *("index", "index_select", "gather", "embedding", "where", "masked_fill", "masked_select"),
    *("index_put", "index_copy", "scatter", "slice_scatter", "select_scatter"),
    *("sort", "topk", "max", "min", "amax", "amin", "maximum", "minimum", "clamp", "relu", "abs", "neg"),
}


def unit(dtype: torch.dtype, precision: str) -> float:
    """Of the last place, relative to a number between 1 and 2."""
    own = torch.finfo(dtype).eps
    return _class_eps.get(precision, own) if dtype == torch.float32 else own


class Noise(TorchDispatchMode):
    """In here every floating result is x (1 + e u) with u of -1/2 or 1/2, rounded: it moves by one unit or stays."""

    def __init__(self, precision: str, device: torch.device, seed: int):
        super().__init__()
        self.precision = precision
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        name = function._schema.name.removeprefix("aten::").rstrip("_")
        if function.is_view or function._schema.is_mutable or name in _exact or not tree_any(_floating, args):
            return results
        return tree_map(lambda x: self._moved(x) if _floating(x) else x, results)

    def _moved(self, x: torch.Tensor) -> torch.Tensor:
        eps = unit(x.dtype, self.precision)
        up = torch.rand(x.shape, generator=self.generator, device=self.generator.device).to(x.device) < 0.5
        return (x.double() * torch.where(up, 1 + eps / 2, 1 - eps / 2)).to(x.dtype)


def _floating(x) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()
