"""tessera.optimize: a live module in, a composed module out. This process is the tracer; the engine is a child process."""

from __future__ import annotations

import re
import time
import warnings

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tessera.common.errors import Error, fail
from tessera.common.precision import cast
from tessera.engine import Progress, check_options, find_binary, listener, optimize_held
from tessera.parts import as_it_is, optimize_in_parts
from tessera.running import autocast, modes
from tessera.running.compose import ComposedModule
from tessera.tracing.asked import refuse_unseen
from tessera.tracing.bounded import Total
from tessera.tracing.held import Held, hold
from tessera.tracing.training_mode import of_training

__all__ = ["find_binary", "optimize"]


def optimize(
    module: nn.Module,
    inputs,
    *,
    precision: str | None = None,
    effort: str = "default",
    mode: str | None = None,
    leftover: str = "auto",
    strict: bool = False,
    frozen: bool = False,
    arch: str | None = None,
    progress: Progress = True,
    seconds: float = 0.0,
    total_seconds: float = 0.0,
    measure: bool | list[str] = False,
    **options,
) -> ComposedModule:
    """Optimizes `module(*inputs)` for these shapes on the device that they are on.

    inputs     a tensor, a tuple of positional or a dict of keyword arguments, or (tuple, dict)
    precision  None keeps the module's dtypes and torch's flags; bf16, fp16 convert the module in place, as module.to
               does; fp32, tf32 set torch's own flags
    effort     quick, default or max
    mode       default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs, as of torch.compile: who has to be beaten,
               and how Inductor compiles what no kernel covers
    leftover   who runs what no kernel covers: eager, inductor, or auto for whichever makes the whole faster
    strict     raise instead of running the original when a guard misses, or of capturing the module in parts
    frozen     keep what is computed from parameters alone from call to call. Writes through `.data`, and writes while a
               captured CUDA graph is replayed, are then not seen; load_state_dict and in-place operations are
    measure    also measure end to end beside eager (True) or these peers; the figures are in `.report`
    seconds    stop tuning after so long, best kept (0: by effort), as Ctrl-C does
    total_seconds  be done after so long, from this call on: tracing (at most half of it), PyTorch's own ways, search, decisions and
               checks (0: no limit). Where that is not enough, the module runs as it is, and `status()` says so
    options    of the command `tessera optimize` (jobs, retune, only, registry, cache, use_registry, dump);
               `checkpoints=[15, 30]` keeps the plans at these seconds of the search too, in `.report["checkpoints"]`

    A module that cannot be one graph is captured in parts, as torch.compile does, and each part is searched (60 s for all, unless
    `seconds` says more); `strict=True` refuses it with the reason. Tracing is given up after 60 s, and PyTorch runs the module.

    Parameters that a kernel reads as one are moved into one allocation (their data_ptr() changes, nothing else does). Where
    PyTorch's own plan is as fast, the result runs that; `.report["settled"]` has the figures. The result has `.status()` and
    `.report` (schema tessera.report/1). Expected failures raise tessera.Error, whose `.diagnostic` says what to do.

    In the modes reduce-overhead and max-autotune Inductor's CUDA graphs hold kernels and the rest together, on CUDA; the rules
    are torch.compile's. The next call writes over a call's results: clone what is to stay, or call
    torch.compiler.cudagraph_mark_step_begin() where a step begins and several calls are one step. Inputs are copied into the
    graph's memory. Parameters and buffers are read where they lie; where one lies elsewhere, as after m.to() or
    load_state_dict(assign=True), the next call records the graph anew. All calls come from one thread, none in a capture.
    """
    begun = time.monotonic()
    inductor = modes.settings_of(mode)
    asked = dict(effort=effort, leftover=leftover, arch=arch, seconds=seconds, measure=measure, **options)
    check_options(total_seconds=total_seconds, **asked)
    args, kwargs = _call_of(inputs)
    module = _module_of(module)
    if precision is not None:
        args, kwargs = cast(module, args, kwargs, precision)
    own = {"strict": strict, "frozen": frozen, "progress": progress, "inductor": inductor}
    return _whole_or_in_parts(module, args, kwargs, precision, own, asked, Total(begun, total_seconds))


def _whole_or_in_parts(
    module: nn.Module, args: tuple, kwargs: dict, precision: str | None, own: dict, asked: dict, total: Total
) -> ComposedModule:
    progress, settings = own["progress"], own["inductor"]
    try:
        return _as_one_graph(module, args, kwargs, precision, own, asked, total)
    except Error as e:
        if own["strict"] or not (_by_parts(e) or total.is_up(e)):
            raise
        asked["settings"] = settings
        if total.is_up(e):
            return as_it_is(module, e, asked, progress)
        return optimize_in_parts(module, args, kwargs, e, asked, progress, total)


def _as_one_graph(
    module: nn.Module, args: tuple, kwargs: dict, precision: str | None, own: dict, asked: dict, total: Total
) -> ComposedModule:
    """`own`: options that are not the engine's; `asked`: those that are. Autocast around the call becomes a part of the graph."""
    wanted, inductor = autocast.states(), own.pop("inductor")
    with autocast.entered(()):
        held = _hold(autocast.under(module, wanted), args, kwargs, precision, own["progress"], total.for_tracing())
        held.options["ran"] = refuse_unseen(held.module, held.args, held.kwargs)
        if text := of_training(held.module, held.graph):
            warnings.warn(f"tessera: {text}", stacklevel=3)
        held.options["inductor"] = inductor
        return autocast.UnderAutocast.of(optimize_held(held, **own, **asked, **total.left_as_option()), module, wanted)


def _by_parts(e: Error) -> bool:
    """Whether torch.compile may take a module that is refused as a whole: what cannot be one graph, or what its graph does not give, or
    what a fault of ours ends."""
    return re.fullmatch("TS02..|TS001[45]|TS050[12]|TS0901", e.diagnostic["code"]) is not None


def _call_of(inputs) -> tuple[tuple, dict]:
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, dict):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        if len(inputs) == 2 and isinstance(inputs[0], tuple | list) and isinstance(inputs[1], dict):
            return tuple(inputs[0]), dict(inputs[1])
        return tuple(inputs), {}
    raise fail(
        "TS0008",
        "input.bad_inputs",
        f"`inputs` is a {type(inputs).__name__}",
        expected="a tensor, a tuple of arguments, a dict of keyword arguments, or (tuple, dict)",
    )


def _module_of(module) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise fail(
            "TS0009",
            "input.no_module",
            f"a {type(module).__name__} is no torch.nn.Module",
            helps=["wrap a function in a module whose forward calls it"],
        )
    return module.original if isinstance(module, ComposedModule) else module


def _hold(
    module: nn.Module, args: tuple, kwargs: dict, precision: str | None, progress: Progress, seconds: float
) -> Held:
    tensors = [
        *module.parameters(),
        *module.buffers(),
        *(a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)),
    ]
    # PyTorch's ops take scalars from anywhere; lazy parameters have no shape yet.
    devices = {str(t.device) for t in tensors if is_lazy(t) or t.dim()}
    if len(devices) > 1:
        raise fail(
            "TS0014",
            "input.several_devices",
            "the module and its inputs lie on several devices",
            expected="one device; only tensors without dimensions may lie elsewhere",
            found=", ".join(sorted(devices)),
            helps=["move them with .to(device)"],
        )
    say = listener(progress)

    def tell(text: str) -> None:
        say("progress", {"stage": "trace", "message": text})

    return hold(module, args, kwargs, precision, say=tell, seconds=seconds)
