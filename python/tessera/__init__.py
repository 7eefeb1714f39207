"""tessera: a PyTorch module in, a verified, faster module out.

    fast = tessera.optimize(module, inputs)          # an nn.Module that drops in for the original
    fast = torch.compile(module, backend="tessera")  # the same, as a torch.compile backend
    gemm = tessera.kernel("kernels/gemm.py:gemm")    # a kernel of a kernel file, as a function of tensors

Names are loaded on first use, so that `import tessera` costs nothing and the tile language's stubs need no PyTorch.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_places = {
    "optimize": "tessera.api",
    "find_binary": "tessera.api",
    "ComposedModule": "tessera.running.compose",
    "Error": "tessera.common.errors",
    "status": "tessera.backend",
    "kernel": "tessera.kernel_files",
}
__all__ = ["ComposedModule", "Error", "__version__", "find_binary", "kernel", "optimize", "status"]


def __getattr__(name: str):
    place = _places.get(name)
    if place is None:
        raise AttributeError(f"module 'tessera' has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)


def __dir__():
    return sorted(__all__)
