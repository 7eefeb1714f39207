"""Tensors with guard bands: a write outside of them shows, and so does an element that was never written."""

from __future__ import annotations

import torch

GUARD_BYTES = 4096
_GUARD = 0xFF  # all ones is NaN in every floating type: a stray read poisons what it feeds
# Beside outputs: a stray write of what a stray read gave, all ones, has to change something.
_BESIDE_OUTPUTS = 0x5A
_EXACT_COPY_BYTES = 64 << 20


class Guarded:
    """A strided tensor inside a larger buffer of 0xFF bytes; poisoned, as outputs are, of 0x5A bytes. `flat` is its storage
    from first to last element."""

    def __init__(self, shape, strides, dtype: torch.dtype, device):
        shape, strides = [int(s) for s in shape], [int(s) for s in strides]
        empty = any(s == 0 for s in shape)
        extent = 0 if empty else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        size = torch.empty((), dtype=dtype).element_size()
        self._bytes = extent * size
        padded = (self._bytes + 255) // 256 * 256
        self._buffer = torch.full((padded + 2 * GUARD_BYTES + 256,), _GUARD, dtype=torch.uint8, device=device)
        self._beside = _GUARD
        shift = -self._buffer.data_ptr() % 256
        self._begin = GUARD_BYTES + shift
        self.flat = self._buffer[self._begin : self._begin + self._bytes].view(dtype)
        self.tensor = (
            self.flat.as_strided(shape, strides, self.flat.storage_offset())
            if extent
            else torch.empty(shape, dtype=dtype, device=device)
        )
        self._kept: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        return self._bytes

    def poison(self) -> None:
        self._beside = _BESIDE_OUTPUTS
        self._buffer.fill_(self._beside)
        self._buffer[self._begin : self._begin + self._bytes].fill_(_GUARD)

    def unwritten(self) -> torch.Tensor:
        """Which elements still hold the poison, in logical shape."""
        kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        bits = self.tensor.view(kinds[self.tensor.element_size()])
        return bits == (255 if bits.dtype == torch.uint8 else -1)

    def stray_writes(self) -> int:
        """Bytes outside of the tensor that were changed."""
        head = self._buffer[: self._begin]
        tail = self._buffer[self._begin + self._bytes :]
        return int((head != self._beside).sum() + (tail != self._beside).sum())

    def remember(self) -> None:
        """Notes the content, for `changed`: an exact copy, or a checksum where a copy would be dear."""
        self._kept = self._digest()

    def changed(self) -> bool:
        assert self._kept is not None
        return not torch.equal(self._digest(), self._kept)

    def _digest(self) -> torch.Tensor:
        raw = self._buffer[self._begin : self._begin + self._bytes]
        if self._bytes <= _EXACT_COPY_BYTES:
            return raw.clone()
        whole = raw[: self._bytes // 8 * 8].view(torch.int64)
        # Row sums and column sums: a moved element changes one of them. Integer overflow wraps and stays exact.
        rows = whole[: whole.numel() // 4096 * 4096].view(-1, 4096)
        return torch.cat([rows.sum(0), rows.sum(1), whole[rows.numel() :]])
