"""State of what changes by being used and holds no values by name: generators of random numbers, arrays, iterators, context
variables."""

from __future__ import annotations

import array
import ast
import contextvars
import itertools
import random
import sys

import torch

_large = 1 << 20  # bytes of an array: of what has more, the size alone is looked at


def state_of(value):
    """Compared by its repr. None for anything else."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, torch.Generator):
        return value.get_state().tolist()
    if numpy and isinstance(value, numpy.ndarray):
        return value.tobytes() if value.nbytes <= _large else value.shape
    if numpy and isinstance(value, numpy.random.Generator):
        return value.bit_generator.state
    if numpy and isinstance(value, numpy.random.RandomState):
        return value.get_state(legacy=False)
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, (bytearray, array.array)):
        return bytes(value) if memoryview(value).nbytes <= _large else len(value)
    if isinstance(value, contextvars.ContextVar):
        try:
            return ("value", value.get())
        except LookupError:
            return None
    if isinstance(value, itertools.count):
        return repr(value)
    if _is_iterator(value):
        place = value.__reduce__()[2:] if hasattr(value, "__setstate__") else ()
        return (value.__length_hint__(), *place)
    return None


def _is_iterator(value) -> bool:
    return type(value).__module__ == "builtins" and hasattr(type(value), "__length_hint__")


def numbers_in(count: str) -> tuple:
    """Of what `itertools.count` says of itself."""
    found = ast.literal_eval(count.removeprefix("count"))
    return found if isinstance(found, tuple) else (found,)


def set_state(value, state) -> None:
    """Iterators that cannot be set stay where they are."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, torch.Generator):
        value.set_state(torch.tensor(state, dtype=torch.uint8))
    elif numpy and isinstance(value, numpy.ndarray) and isinstance(state, bytes) and value.flags.writeable:
        value[...] = numpy.frombuffer(state, value.dtype).reshape(value.shape)
    elif numpy and isinstance(value, numpy.random.Generator):
        value.bit_generator.state = state
    elif numpy and isinstance(value, numpy.random.RandomState):
        value.set_state(state)
    elif isinstance(value, random.Random):
        value.setstate(state)
    elif isinstance(value, (bytearray, array.array)) and isinstance(state, bytes):
        value[:] = state if isinstance(value, bytearray) else array.array(value.typecode, state)
    elif isinstance(value, contextvars.ContextVar):
        if value.get() is not state[1]:
            value.set(state[1])
    elif _is_iterator(value) and len(state) == 2:
        value.__setstate__(state[1])
