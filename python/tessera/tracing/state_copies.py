"""What `copy_` leaves in a parameter or a buffer: its source in the shape, the type, the layout and on the device of what is written to.

torch.export drops such a copy and goes on with the source itself (_remove_unnecessary_copy_op_pass), whatever its shape and type."""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch.export import exported_program

_aten = torch.ops.aten
_drops = exported_program._remove_unnecessary_copy_op_pass


@contextmanager
def kept():
    """While a program is exported and taken apart."""
    with patch.object(exported_program, "_remove_unnecessary_copy_op_pass", _pass):
        yield


def _pass(gm: torch.fx.GraphModule, signature):
    changing = [n for n in gm.graph.nodes if n.target is _aten.copy.default and _changes(n)]
    for node in changing:
        node.target = _aten.copy.out  # which it does not look for
    gm, signature = _drops(gm, signature)
    for node in changing:
        node.target = _aten.copy.default
    gm.recompile()
    return gm, signature


def _changes(copy: torch.fx.Node) -> bool:
    """Whether what is written differs from its source in more than its place. Views of it are taken by its strides."""
    made, source = copy.meta["val"], copy.args[1].meta["val"]
    return any(getattr(made, what) != getattr(source, what) for what in ("dtype", "device", "shape")) or (
        made.stride() != source.stride()
    )
