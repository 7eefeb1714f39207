"""What `copy_` leaves in a parameter or a buffer: its source in the shape, the type and on the device of what is written to.

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
    for node in [n for n in gm.graph.nodes if n.target is _aten.copy.default]:
        target, source = node.meta["val"], node.args[1].meta["val"]
        steps = []
        if (source.dtype, source.device) != (target.dtype, target.device):
            steps.append((_aten._to_copy.default, (), {"dtype": target.dtype, "device": target.device}))
        if source.shape != target.shape:
            steps.append((_aten.expand.default, (list(target.shape),), {}))
        for op, args, kwargs in steps:
            with gm.graph.inserting_before(node):
                made = gm.graph.call_function(op, (node.args[1], *args), kwargs)
            made.meta = {**node.meta, "val": op(node.args[1].meta["val"], *args, **kwargs)}
            node.args = (node.args[0], made, *node.args[2:])
    return _drops(gm, signature)
