"""A composed module as a folder: the plan, its kernels, and a file that puts them behind a module again."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

from tessera.running.outputs import Outputs

_loader = '''"""Puts the optimized kernels of this folder behind a module: `load(module)`. Needs the package `tessera` and torch."""

import json
from pathlib import Path

import torch

from tessera import ComposedModule


def load(module, **options):
    """`module`: the original, with parameters of the traced shapes. Options of ComposedModule: leftover, strict."""
    here = Path(__file__).resolve().parent
    plan = json.loads((here / "plan.json").read_text())
    for step in plan["steps"]:
        if "library" in step.get("candidate", {}):
            step["candidate"]["library"] = str(here / step["candidate"]["library"])
    form = torch.load(here / "structure.pt", weights_only=False)
    options.setdefault("leftover", plan.get("leftover_runner", "eager"))
    options.setdefault("runner", plan.get("runner", "kernels"))
    return ComposedModule(module, plan, **form, **options)
'''


def export_module(traced, args: tuple, kwargs: dict, plan: dict, folder: str) -> list[str]:
    """Of a trace (tracer.Traced) and the call that was traced: writes plan.json, kernels/, structure.pt (nesting of
    arguments and results, constants) and composed.py."""
    root = Path(folder)
    (root / "kernels").mkdir(parents=True, exist_ok=True)
    plan = copy.deepcopy(plan)
    files = []
    for step in plan["steps"]:
        library = step.get("candidate", {}).get("library")
        if not library:
            continue
        name = f"kernels/{step['candidate'].get('sha') or Path(library).parent.name}{Path(library).suffix}"
        if not (root / name).exists():
            shutil.copyfile(library, root / name)
        step["candidate"]["library"] = name
        files.append(name)
    (root / "plan.json").write_text(json.dumps(plan, indent=1))
    example = pytree.tree_map_only(torch.Tensor, lambda t: torch.empty(0), (tuple(args), dict(kwargs)))
    torch.save(
        {
            "example": example,
            "outputs": Outputs(traced.results, traced.out_spec),
            "constants": traced.constants,
        },
        root / "structure.pt",
    )
    (root / "composed.py").write_text(_loader)
    return [str(root / name) for name in dict.fromkeys([*files, "plan.json", "structure.pt", "composed.py"])]
