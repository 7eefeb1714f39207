"""Reads a KernelBench task from a folder that the user gives: a file level1/14_NAME.py that states `Model`,
`get_init_inputs` and `get_inputs`. The files are not part of this repository
(https://github.com/ScalingIntelligence/KernelBench, MIT)."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn


class Missing(Exception):
    """A task's file is not there, or is another than the suite's."""


def folder(given: str | None) -> Path:
    """--kernelbench, or $KERNELBENCH: a folder with level1/, or a clone of the repository."""
    place = given or os.environ.get("KERNELBENCH", "")
    if not place:
        raise Missing("give --kernelbench DIR (or $KERNELBENCH): a folder with KernelBench's level1/, level2/, level3/")
    root = Path(place)
    return root / "KernelBench" if (root / "KernelBench").is_dir() else root


def file_of(root: Path, level: int, number: int, digest: str | None) -> Path:
    found = sorted((root / f"level{level}").glob(f"{number}_*.py"))
    if len(found) != 1:
        raise Missing(f"{len(found)} files match {root}/level{level}/{number}_*.py, one is expected")
    have = hashlib.sha256(found[0].read_bytes()).hexdigest()
    if digest is not None and not have.startswith(digest):
        raise Missing(f"{found[0]} is another file than the suite's: SHA-256 {have[:12]}, expected {digest}")
    return found[0]


def make(root: Path, level: int, number: int, digest: str | None, device: str) -> tuple[nn.Module, Callable[[], tuple]]:
    """The task's module in eval mode on a device, and what draws its inputs there. What the file creates is created on the
    device, as under torch.set_default_device."""
    path = file_of(root, level, number, digest)
    spec = importlib.util.spec_from_file_location(f"kernelbench_level{level}_{number}", path)
    task = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = task  # Dynamo looks modules up by name
    spec.loader.exec_module(task)
    with torch.device(device):
        module = task.Model(*task.get_init_inputs())

    def drawn() -> tuple:
        with torch.device(device):
            inputs = task.get_inputs()
        return tuple(x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs)

    return module.to(device).eval(), drawn
