"""The held module at other sizes: what to try, the inputs of a try, and its trace.

A size is a set of dims of the inputs that change together: the batch (dim 0), then what is likely a sequence (dim 1 of
[batch, sequence, …] and of indices), or the extents of an image. Whether the module takes it is found by running it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch.utils import _pytree as pytree

from tessera.common.errors import Error

WANTED = 2  # sizes at which the module shall be checked
_step = 8  # a changed extent stays a multiple of this where the traced one is: alignments stay as they are


@dataclass(frozen=True)
class Size:
    """`extents`: (dim, before, now) of the largest input; `where`: for each tensor leaf its new shape."""

    name: str
    extents: tuple[tuple[int, int, int], ...]
    shapes: tuple[tuple[int, ...], ...] = field(repr=False)

    @property
    def text(self) -> str:
        changes = ", ".join(f"dim {dim}: {before} → {now}" for dim, before, now in self.extents)
        return f"{self.name} ({changes})"


def _tensors(held) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves((held.args, held.kwargs)) if isinstance(t, torch.Tensor)]


def _scaled(n: int, scale: float) -> int:
    """About n * scale and not n; a multiple of 8 when n is and is large enough."""
    made = max(1, round(n * scale))
    if n % _step == 0 and n >= 2 * _step:
        made = max(_step, made // _step * _step)
    return made if made != n else n + 1


def sizes(held) -> Iterator[Size]:
    """Sizes to try, the likeliest first."""
    tensors = _tensors(held)
    main = max((t for t in tensors if t.dim()), key=lambda t: (t.is_floating_point(), t.dim(), t.numel()), default=None)
    if main is None:
        return

    def batch(scale: float) -> Size:
        now = _scaled(main.shape[0], scale)
        shapes = [(now, *t.shape[1:]) if t.dim() and t.shape[0] == main.shape[0] else tuple(t.shape) for t in tensors]
        return Size("batch", ((0, main.shape[0], now),), tuple(shapes))

    def inner(name: str, dims: tuple[int, ...], scale: float) -> Size:
        changed = {main.shape[d]: _scaled(main.shape[d], scale) for d in dims}
        shapes = [_with_extents(t, changed, main, dims) for t in tensors]
        return Size(name, tuple((d, main.shape[d], changed[main.shape[d]]) for d in dims), tuple(shapes))

    yield batch(0.5 if main.shape[0] > 1 else 2)
    if main.dim() == 3 or (main.dim() == 2 and not main.is_floating_point()):
        yield inner("sequence", (1,), 0.75)
    elif main.dim() > 3:
        yield inner("image", tuple(range(2, main.dim())), 0.75)
    yield batch(1.5 if main.shape[0] > 1 else 3)


def _with_extents(t: torch.Tensor, changed: dict[int, int], main: torch.Tensor, dims: tuple[int, ...]) -> tuple:
    """The shape with every changed extent replaced, also in masks and positions. Of tensors with the rank of the main one
    only the same dims: an equal width or batch is another thing."""
    if t.dim() == main.dim() and t.shape[0] == main.shape[0]:
        return tuple(changed.get(n, n) if d in dims else n for d, n in enumerate(t.shape))
    return tuple(changed.get(n, n) for n in t.shape)


def inputs_at(held, size: Size) -> tuple[tuple, dict]:
    """The traced call's inputs at another size: elements from the front, repeated where it grows. Masks stay causal,
    positions in order, indices in range."""
    shapes = iter(size.shapes)

    def resize(t: torch.Tensor) -> torch.Tensor:
        for dim, now in enumerate(next(shapes)):
            if now != t.shape[dim]:
                t = t.index_select(dim, torch.arange(now, device=t.device) % t.shape[dim])
        return t.contiguous()

    return pytree.tree_map_only(torch.Tensor, resize, (held.args, held.kwargs))


def resized(held, size: Size):
    """The same module held at another size, or the reason why there is none."""
    from tessera.tracing import held as holding

    args, kwargs = inputs_at(held, size)
    try:
        with held.kept():
            holding.run_module(held.module, args, kwargs, 0)
    except Exception as e:  # noqa: BLE001 - the user's code says no in its own ways
        first = next((line.strip() for line in str(e).splitlines() if line.strip()), "")
        return f"the module does not take it: {type(e).__name__}: {first}"[:400]
    try:
        made = holding.hold(held.module, args, kwargs, None, held.path, held.graph["name"])
    except Error as e:
        return f"it cannot be traced at this size: {e.diagnostic['message']}"[:400]
    return replace(made, notify=held.notify)
