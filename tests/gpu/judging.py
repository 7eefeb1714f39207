"""What GPU checks of whole modules share: a line a check, results beside the module in fp32, times beside others in turns."""

from __future__ import annotations

import copy
import functools
import gc
import statistics
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

TRIES = 3  # of a comparison of times, on a host that others use too
CALLS, TURNS = 100, 15

failed: list[str] = []


def check(name: str, function: Callable) -> None:
    begin = time.monotonic()
    try:
        text = function()
        print(f"ok    {name}{': ' + text if text else ''} ({time.monotonic() - begin:.0f} s)", flush=True)
    except Exception as e:  # noqa: BLE001 - every check is to be seen
        failed.append(name)
        print(f"FAIL  {name}: {type(e).__name__}: {e} ({time.monotonic() - begin:.0f} s)", flush=True)
        where = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(e.__traceback__)[-6:]]
        note(" > ".join(where))


def note(text: str) -> None:
    print(f"      {text}", flush=True)


def describe(fast) -> None:
    """What a composed module was settled on, and the figures that decided."""
    status, settled = fast.status(), (fast.report or {}).get("settled") or {}
    rest = f", {status['leftover_by']} for the rest" if status["runner"] == "kernels" else ""
    note(f"runs by {status['runner']}{rest}, {len(status['active'])} kernels, settings {fast._inductor}")
    for way in settled.get("ways", ()):
        name = f"{way['runner']} {'' if way['plan'] is None else way['plan']} {way['leftover']}".strip()
        if way["reason"]:
            note(f"  {name}: {way['reason']}")
        else:
            figures = f"{way['call_ms'] * 1e3:.1f} us a call, {way['back_ms'] * 1e3:.1f} us back to back"
            note(f"  {name}: {figures}, {way['peak_bytes'] / 1e6:.2f} MB, ready in {way['seconds']:.1f} s")


# --- results ---------------------------------------------------------------------------------------------------------


def off(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative root mean square."""
    return float((result.float() - reference).norm() / reference.norm())


def right(fast: Callable, module: nn.Module, draw: Callable, calls: int = 3) -> None:
    """Beside the module in fp32, with eager's own error at its precision as the measure. CUDA graphs warm in the first call and
    record in the second."""
    reference = copy.deepcopy(module).float()
    for i in range(calls):
        x = draw()
        exact = reference(x.float())
        ours, eager = off(fast(x), exact), off(module(x), exact)
        assert ours <= 1.5 * eager + 1e-3, f"call {i}: off by {ours:.2g}, eager by {eager:.2g}"


def overwrite(module: nn.Module) -> None:
    """Memory of parameters that was given up gets other content: what still reads it shows."""
    junk = [torch.full_like(p, float("nan")) for p in module.parameters() for _ in range(2)]
    torch.cuda.synchronize()
    del junk


def _in_place(m: nn.Module) -> None:
    for p in m.parameters():
        p.data.mul_(1.1)


def _loaded(m: nn.Module, assign: bool = False) -> None:
    m.load_state_dict({k: v * 0.9 for k, v in m.state_dict().items()}, assign=assign)


def _elsewhere(m: nn.Module) -> None:
    for p in m.parameters():
        p.data = p.data.clone() * 1.1


def _converted(m: nn.Module) -> None:
    dtype = next(m.parameters()).dtype
    m.to(torch.float32)
    overwrite(m)
    m.to(dtype)


def _replaced(m: nn.Module) -> None:
    for sub in m.modules():
        for key, p in list(sub._parameters.items()):
            if p is not None:
                setattr(sub, key, nn.Parameter(p.detach() * 0.9))


CHANGES = {
    "w.data.mul_": _in_place,
    "load_state_dict": _loaded,
    "load_state_dict(assign=True)": functools.partial(_loaded, assign=True),
    "p.data = p.data.clone()": _elsewhere,
    "m.to(), and back": _converted,
    "other parameters": _replaced,
}


def changes(fast: Callable, module: nn.Module, draw: Callable) -> str:
    """Right after every way to change a parameter, while the memory that was given up gets other content."""
    right(fast, module, draw)
    for name, change in CHANGES.items():
        change(module)
        try:
            for calls in (1, 3):
                overwrite(module)
                right(fast, module, draw, calls)
        except AssertionError as e:
            raise AssertionError(f"after {name}: {e}") from None
    return f"{len(CHANGES)} changes"


# --- times -----------------------------------------------------------------------------------------------------------


def medians(ways: dict[str, Callable], draw: Callable) -> dict[str, tuple[float, float]]:
    """Microseconds of a synchronized call, and of one back to back; in turns, on inputs that rotate."""
    xs = [draw() for _ in range(4)]
    calls: dict[str, list[float]] = {name: [] for name in ways}
    backs: dict[str, list[float]] = {name: [] for name in ways}
    for run in ways.values():
        for x in xs * 3:
            run(x)
    gc.collect()
    gc.disable()
    for turn in range(TURNS):
        for i in range(20):
            for name, run in ways.items():
                calls[name].append(_seconds(run, xs[i % 4 :], 1))
        for name in list(ways) if turn % 2 else reversed(list(ways)):
            _seconds(ways[name], xs, CALLS // 2)
            backs[name].append(_seconds(ways[name], xs, CALLS))
    gc.enable()
    return {name: (statistics.median(calls[name]) * 1e6, statistics.median(backs[name]) * 1e6) for name in ways}


def _seconds(run: Callable, xs: list[torch.Tensor], calls: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(calls):
        run(xs[i % len(xs)])
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls


def compared(ways: dict[str, Callable], draw: Callable, least: float) -> str:
    """The first way beside the best of the others in each measure: at `least` or more of it, by the median of a few tries."""
    ours, *others = ways
    tries = []
    for _ in range(TRIES):
        found = medians(ways, draw)
        ratios = [min(found[name][k] for name in others) / found[ours][k] for k in (0, 1)]
        tries.append(ratios)
        figures = "; ".join(f"{name} {call:.1f} / {back:.1f} us" for name, (call, back) in found.items())
        note(f"{figures}; ratio {ratios[0]:.3f} / {ratios[1]:.3f}")
    call, back = (statistics.median(t[k] for t in tries) for k in (0, 1))
    if min(call, back) < least:
        raise AssertionError(f"at {call:.3f} / {back:.3f}, promised {least:.3f}")
    return f"{call:.3f} / {back:.3f}"
