"""Built kernels (include/tessera/kernel.h): load a shared library and launch it on tensors."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from pathlib import Path

import torch

from tessera.common.errors import fail

ABI = 1


class _Launch(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("tensor_count", ctypes.c_int32),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("int_count", ctypes.c_int32),
    ]


@functools.cache
def _share_openmp() -> None:
    """Makes kernels use torch's own OpenMP threads: a second pool beside it would fight it for the cores."""
    library = Path(torch.__file__).parent / "lib" / "libgomp.so.1"
    for candidate in [library, *sorted((Path(torch.__file__).parent.parent / "torch.libs").glob("libgomp*"))]:
        if candidate.exists():
            ctypes.CDLL(str(candidate), mode=ctypes.RTLD_GLOBAL)
            return


class Kernel:
    """One library. Loading runs its static initializers; everything native may crash, so do it in an evaluator."""

    def __init__(self, path: str | os.PathLike):
        _share_openmp()
        self.path = str(path)
        try:
            self._library = ctypes.CDLL(self.path)
            self._describe = self._library.tessera_describe
            self._workspace_size = self._library.tessera_workspace_size
            self._run = self._library.tessera_run
            self._last_error = self._library.tessera_last_error
        except (OSError, AttributeError) as error:
            raise fail(
                "TS0310",
                "kernel.not_loadable",
                f"{self.path} is not a loadable kernel: {error}",
                helps=["build it again: remove its folder from the cache"],
            ) from error
        self._describe.restype = ctypes.c_char_p
        self._last_error.restype = ctypes.c_char_p
        self._workspace_size.restype = ctypes.c_int64
        self._workspace_size.argtypes = [ctypes.POINTER(_Launch)]
        self._run.restype = ctypes.c_int
        self._run.argtypes = [ctypes.POINTER(_Launch), ctypes.c_void_p, ctypes.c_void_p]

    @functools.cached_property
    def description(self) -> dict:
        description = json.loads(self._describe().decode())
        if description.get("abi") != ABI:
            raise fail(
                "TS0311",
                "kernel.other_abi",
                f"{self.path} has ABI {description.get('abi')}, not {ABI}",
                helps=["build it again with this version of tessera"],
            )
        return description

    def last_error(self) -> str:
        return (self._last_error() or b"").decode(errors="replace")

    def prepare(self, tensors: list[torch.Tensor], ints: list[int]) -> Launch:
        """A launch on these tensors (the pattern's inputs, then its outputs), with its workspace allocated."""
        wanted = len(self.description.get("ints", []))
        if wanted != len(ints):
            raise fail(
                "TS0312",
                "kernel.wrong_ints",
                f"{self.description.get('name', self.path)} takes {wanted} "
                f"run-time integers {self.description.get('ints')}",
                found=f"{len(ints)}: {ints}",
            )
        return Launch(self, tensors, ints)


class Launch:
    """A prepared launch: calling it enqueues the kernel on the current stream (runs it, on the host)."""

    def __init__(self, kernel: Kernel, tensors: list[torch.Tensor], ints: list[int]):
        self._kernel = kernel
        self._tensors = tensors  # keeps the memory alive
        self._pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        self._ints = (ctypes.c_int64 * max(1, len(ints)))(*ints)
        self._struct = _Launch(
            ctypes.cast(self._pointers, ctypes.POINTER(ctypes.c_void_p)),
            len(tensors),
            ctypes.cast(self._ints, ctypes.POINTER(ctypes.c_int64)),
            len(ints),
        )
        self._reference = ctypes.byref(self._struct)
        size = kernel._workspace_size(self._reference)
        if size < 0:
            raise fail("TS0313", "kernel.cannot_launch", kernel.last_error() or "the kernel refuses this launch")
        self.workspace_bytes = size
        device = tensors[0].device
        self._cuda = device.type == "cuda"
        self._workspace = torch.empty(size + 256, dtype=torch.uint8, device=device) if size else None
        base = self._workspace.data_ptr() if size else 0
        self._workspace_pointer = (base + 255) // 256 * 256 or None

    def __call__(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream if self._cuda else None
        if self._kernel._run(self._reference, self._workspace_pointer, stream) != 0:
            raise fail("TS0314", "kernel.launch_failed", self._kernel.last_error() or "the launch failed")
