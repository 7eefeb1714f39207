"""Functions that clocks and comparisons are made of: which of them a file has replaced in its own process. None of them is what a
verdict rests on; who replaces one wants to be judged otherwise."""

from __future__ import annotations

import gc
import time

import torch

_WATCHED = (
    (time, ("time", "perf_counter", "perf_counter_ns", "monotonic", "time_ns", "process_time", "sleep")),
    (torch, ("allclose", "equal", "isclose", "empty", "empty_like", "no_grad")),
    (torch.testing, ("assert_close",)),
    (torch.cuda, ("Event", "synchronize", "current_stream", "Stream", "_sleep")),
    (torch.Tensor, ("copy_", "cpu", "to", "clone", "contiguous", "numpy", "equal", "allclose", "data_ptr", "__eq__")),
    (gc, ("collect", "get_objects")),
)


class Watch:
    """Made before anything is imported that is not trusted."""

    def __init__(self) -> None:
        self._before = {(place, name): getattr(place, name, None) for place, names in _WATCHED for name in names}

    def replaced(self) -> list[str]:
        """`time.perf_counter`, ..., those that are others now."""
        return [
            f"{getattr(place, '__module__', '') or ''}.{place.__name__}.{name}".lstrip(".")
            if isinstance(place, type)
            else f"{place.__name__}.{name}"
            for (place, name), was in self._before.items()
            if getattr(place, name, None) is not was
        ]
