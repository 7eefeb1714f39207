"""Where the author of a module wrote what a node of its graph does."""

from __future__ import annotations

import os
import re

import torch

_frame = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_torch_folder = os.path.dirname(torch.__file__) + os.sep


def origin_of(node: torch.fx.Node) -> tuple[str, str]:
    """The module's path and `file:line`: the innermost frame that is the author's, not PyTorch's."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    path = re.sub(r"\[(?:'|\")?(\w+)(?:'|\")?\]", r".\1", path).removeprefix("L.self").removeprefix(".")
    path = path.replace("_modules.", "")
    frames = _frame.findall(node.meta.get("stack_trace") or "")
    own = [f for f in frames if not f[0].startswith(_torch_folder)] or frames
    if not own:
        return path, ""
    file, line = own[-1]
    short = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
    return path, f"{short}:{line}"
