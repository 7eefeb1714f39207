"""Views by places in memory, as as_strided takes them: refused where a graph's value begins elsewhere in its memory than the module's."""

from __future__ import annotations

import torch
from torch import fx

from tessera.common.errors import fail

BY_STRIDES = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_.default)
# Their results begin as far behind the beginning of their memory as what they were given.
_keeping = tuple(f"aten::{name}_scatter" for name in ("select", "slice", "diagonal", "as_strided"))


_copies = ("aten::copy_", "aten::copy")


def refuse_elsewhere(node: fx.Node, source: fx.Node, written: bool) -> None:
    """`node` looks at the memory of `source` by places. `written`: whether forward writes to it; what an op makes in the place of what
    it writes to begins at its own memory, row by row, but for a copy, in whose place its source may stand. Error: TS0206."""
    copied = [n.args[1].meta["val"] for n in source.graph.nodes if _name(n) in _copies and _copies_into(n, source)]
    made_of = source
    if _name(source) in _keeping:
        made_of, written = source.args[0], True
    t = made_of.meta["val"]
    elsewhere = written and not (t.is_contiguous() and t.storage_offset() == 0)
    if elsewhere or any(c.storage_offset() for c in copied):
        raise fail(
            "TS0206",
            "graph.shared_memory",
            f"forward makes or writes to `{source.name}`, and looks at its memory by places ({node.target})",
            helps=["take a view by select, narrow or unfold instead"],
        )


def _name(node: fx.Node) -> str:
    return getattr(getattr(node.target, "_schema", None), "name", "")


def _copies_into(copy: fx.Node, source: fx.Node) -> bool:
    """Whether a copy's result looks at the memory of `source`."""
    mine, other = (n.meta["val"].untyped_storage()._cdata for n in (copy, source))
    return isinstance(copy.args[1], fx.Node) and mine == other
