"""Programs on another device than the processor: they are drawn on the processor, and what the device does not take is left out."""

from __future__ import annotations

import torch
from comparing import runs
from program import Program


def suited(p: Program) -> Program | None:
    """`p` for the default device; None where its eager does not run there or gives two results (index_add on a GPU, say). What
    raises on the processor may end the process on a GPU (an index that is too large)."""
    device = torch.get_default_device().type
    if device == "cpu":
        return p
    p = p.copy()
    p.changes = [c for c in p.changes if not c.get("raises")]
    for c in p.changes:
        c["under"] = c.get("under", "").replace("autocast('cpu'", f"autocast('{device}'")
    return p if runs(p) else None
