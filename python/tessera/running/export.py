"""A composed module as a folder: the plan, its kernels, and a file that puts them behind a module again."""

from __future__ import annotations

import copy
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import Error, fail
from tessera.running.compose import ComposedModule
from tessera.running.outputs import Outputs

_loader = '''"""Puts the optimized kernels of this folder behind a module: `load(module)`. Needs the package `tessera` and torch."""

from pathlib import Path

from tessera.running.export import load_folder


def load(module, **options):
    """`module`: the original, with parameters of the traced shapes. Options of ComposedModule: leftover, strict."""
    return load_folder(Path(__file__).resolve().parent, module, **options)
'''


def load_folder(folder: Path, module: nn.Module, **options) -> ComposedModule:
    """The composed module of a folder that `export_module` wrote. Errors: TS0214 and TS0310, where a file is missing or not what was
    written: a library that was cut would end the process when it is loaded."""
    plan = _read(folder / "plan.json", lambda file: json.loads(file.read_text()))
    form = _read(folder / "structure.pt", lambda file: torch.load(file, weights_only=False))
    for candidate in (step.get("candidate", {}) for step in plan.get("steps", ())):
        if "library" in candidate:
            library = folder / candidate["library"]
            wanted = candidate.get("library_sha256")
            if not library.is_file() or (wanted and _hash_of(library) != wanted):
                raise _damaged("TS0310", "kernel.not_loadable", library)
            candidate["library"] = str(library)
    options.setdefault("leftover", plan.get("leftover_runner", "eager"))
    options.setdefault("runner", plan.get("runner", "kernels"))
    return ComposedModule(module, plan, **form, **options)


def _read(file: Path, read: Callable):
    try:
        return read(file)
    except Exception as e:  # noqa: BLE001 - torch.load raises many kinds
        raise _damaged("TS0214", "plan.malformed", file) from e


def _damaged(code: str, name: str, file: Path) -> Error:
    return fail(
        code,
        name,
        f"{file} is {'not what was written' if file.exists() else 'missing'}",
        expected="the folder as tessera wrote it, with all of its files",
        helps=["copy it again, or optimize the module again"],
    )


def _hash_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


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
            _write(root / name, Path(library).read_bytes())
        step["candidate"] |= {"library": name, "library_sha256": _hash_of(root / name)}
        files.append(name)
    _write(root / "plan.json", json.dumps(plan, indent=1).encode())
    example = pytree.tree_map_only(torch.Tensor, _of_its_class, (tuple(args), dict(kwargs)))
    structure = io.BytesIO()
    form = {"example": example, "outputs": Outputs(traced.results, traced.out_spec), "constants": traced.constants}
    torch.save(form, structure)
    _write(root / "structure.pt", structure.getbuffer())
    _write(root / "composed.py", _loader.encode())
    return [str(root / name) for name in dict.fromkeys([*files, "plan.json", "structure.pt", "composed.py"])]


def _of_its_class(t: torch.Tensor) -> torch.Tensor:
    """What a guard knows an argument by besides the graph's types."""
    return nn.Parameter(torch.empty(0), requires_grad=False) if type(t) is nn.Parameter else torch.empty(0)


def _write(file: Path, content: bytes | memoryview) -> None:
    """Whole or not at all. Error: TS0033."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise fail(
            "TS0033",
            "input.output_not_writable",
            f"{file} cannot be written: {e.strerror or e}",
            expected="a folder with room for the plan and its kernels",
            helps=["give another one with -o DIR"],
        ) from e
