"""What the guards of a composed module expect, laid out for the extension (guards.cpp), which compares it in one call.

Where the extension cannot be had, or not yet, Python's guards are asked in every call, some ten microseconds or more; status() says
so.
"""

from __future__ import annotations

import functools
import gc
import importlib.machinery
import importlib.util
import os
import sysconfig
import threading
import types
from collections.abc import Callable
from pathlib import Path

from tessera.common.errors import Error
from tessera.running.extension import compiled, input_alignment
from tessera.running.input_guard import InputGuard
from tessera.running.memory_guard import MemoryGuard
from tessera.running.plain_tensors import plain_keys
from tessera.running.state_guard import StateGuard

_source = Path(__file__).with_name("guards.cpp")
_headers = [_source.with_name(name) for name in ("guards_places.h", "guards_tensors.h")]
_finding = threading.Lock()
_SOON = "the extension is being compiled; calls take it as soon as it is there"


def extension() -> tuple[types.ModuleType | None, str]:
    """The extension, or why there is none; found once. `TESSERA_EXTENSION=python` asks for none. Waits for its compiler."""
    with _finding:
        return _extension()


def at_hand() -> tuple[types.ModuleType | None, str]:
    """As `extension`, without waiting: where it has to be compiled, which takes half a minute, a thread does so."""
    if not _extension.cache_info().currsize:
        first = not _compiling.cache_info().currsize
        if wait(0.2 if first else 0.0):  # loads what the cache has
            return None, _SOON
    return extension()


def wait(seconds: float) -> bool:
    """Whether it is still being compiled, after so many seconds at most."""
    _compiling().join(seconds)
    return _compiling().is_alive()


@functools.cache
def _compiling() -> threading.Thread:
    thread = threading.Thread(target=extension, name="tessera guards", daemon=True)
    thread.start()
    return thread


@functools.cache
def _extension() -> tuple[types.ModuleType | None, str]:
    if os.environ.get("TESSERA_EXTENSION") == "python":
        return None, "asked for by TESSERA_EXTENSION=python"
    headers = Path(sysconfig.get_path("include"))
    try:
        path = compiled(
            _source,
            [headers],
            ["torch_python", "torch_cpu", "c10"],
            sysconfig.get_config_var("SOABI").encode() + b"".join(h.read_bytes() for h in _headers),
            "guards are asked",
        )
        loader = importlib.machinery.ExtensionFileLoader("tessera_guards", str(path))
        spec = importlib.util.spec_from_file_location("tessera_guards", path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except Error as e:
        return None, str(e)
    except (ImportError, OSError) as e:
        return None, f"the extension of the guards does not load: {e}"
    return module, ""


def status() -> dict:
    """Who compares what the guards expect in every call, and why not the extension."""
    module, reason = at_hand()
    return {"kind": "python" if module is None else "extension", "reason": reason}


def prepared(inputs: InputGuard, memory: MemoryGuard, state: StateGuard) -> Callable | None:
    """(args, kwargs) -> the call's tensors, or None where anything is another than at the last look; None where there is no
    extension. All guards have just been asked."""
    module, _ = at_hand()
    if module is None:
        return None
    places, names = state.places(), state.names
    in_dicts = set(map(id, names.dictionaries))
    for slot in state.held:
        if id(slot.owner) not in in_dicts:  # a tensor among the attributes
            places.item(slot.owner, slot.key, slot.source)
    for own in state.dictionaries():
        places.members(own)
    for own in names.childless:
        places.size(own)
    for columns in (places.items, places.wholes):
        columns[0][:] = map(_behind, columns[0])
    expected = (
        _inputs(inputs, memory, names.by_name()),
        [(len(inputs.checks), (), list(range(inputs.count)), [])] * inputs.simple
        + [(key[0], key[1:], *form) for key, form in inputs.forms.items()],
        _held(memory, state),
        places.items,
        places.fields,
        places.sizes,
        places.wholes,
        places.calls,
        memory.known,
        memory.writes,
        input_alignment,
        state.surroundings.natives,
        True,
    )
    return module.Guard(expected).check


def unmoved(held: list, fields: list, sizes: list, wholes: list) -> Callable[[], bool] | None:
    """() -> whether tensors lie as they do now and the same stands at the given places; None where there is no extension.
    `held`: (tensor, its lie as by `lies_of`); `fields`: (object, name, value); `sizes`: (container, its size); `wholes`: (dictionary,
    its keys and values in turn)."""
    module, _ = at_hand()
    if module is None:
        return None

    def columns(rows: list, count: int) -> tuple:
        return tuple(map(list, zip(*rows, strict=True))) or ([],) * count

    no_call = [(0, (), [], [])]
    check = module.Guard(
        (
            *([], no_call, [(t, lie, -1, False) for t, lie in held], ([],) * 3),
            *(columns(fields, 3), columns(sizes, 2), columns(wholes, 2), ([],) * 3),
            *(False, False, input_alignment, (), False),
        )
    ).check
    return lambda: check((), None) is not None


def _behind(container):
    """The dictionary of a class, which shows itself through a proxy."""
    found = gc.get_referents(container) if isinstance(container, types.MappingProxyType) else ()
    return found[0] if len(found) == 1 and type(found[0]) is dict else container


def _inputs(inputs: InputGuard, memory: MemoryGuard, state: dict) -> list[tuple]:
    return [
        (
            *(shape, strides, dtype, device, plain_keys(device)),
            *(first, state.get(memory.of_state.get(i)), written, -1 if offset is None else offset, kind),
        )
        for i, ((kind, shape, strides, dtype, device, offset), first, written) in enumerate(
            zip(inputs.checks, memory.first, memory.written, strict=True)
        )
    ]


def _held(memory: MemoryGuard, state: StateGuard) -> list[tuple]:
    tensors, lies, versions = state.stamp
    version = dict(zip(map(id, state.watched), versions, strict=True))
    return [
        (t, lie, version.get(id(slot), -1), slot.value in memory.written_state)
        for slot, t, lie in zip(state.held, tensors, zip(*lies), strict=True)
    ]
