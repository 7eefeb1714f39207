"""Emptying a GPU's L2 cache before a timed call (docs/measuring.md)."""

from __future__ import annotations

import torch

LEAST_BYTES = 256 << 20  # also of a device that does not say how large its L2 is


class ColdCache:
    """Drives everything out of the L2 by reading twice its size. Lines that were only read go for nothing; a written buffer
    would leave lines that memory has yet to get, and the timed call would wait for them (`tests/gpu/cold_cache.py`)."""

    def __init__(self, device: torch.device):
        l2 = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)
        self._lines = torch.zeros(max(2 * l2, LEAST_BYTES) // 8, dtype=torch.int64, device=device)
        self._sum = torch.empty((), dtype=torch.int64, device=device)

    def empty(self) -> None:
        """Enqueues the reads on the current stream."""
        torch.sum(self._lines, dim=0, out=self._sum)
