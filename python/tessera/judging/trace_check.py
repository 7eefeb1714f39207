"""Whether the traced graph gives what the module gives, and the module as Inductor compiles it.

All else is judged by what the graph means and by how far the module is off it: where the module computes something else, as nn.TransformerEncoder does in eager alone with a padding mask, anything would pass.

A result differs that is off by more than a fraction (FAR) and by several times what roundings move the graph's own by, on two sets of
inputs. What is chosen by values that are nearly equal, as experts are, roundings move too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch

from tessera.common.errors import Error, fail
from tessera.common.precision import readable
from tessera.common.randomness import draws
from tessera.common.reference import Executor
from tessera.judging import peers as peer_table
from tessera.judging.rewind import effects
from tessera.judging.rounding_noise import Noise
from tessera.tracing.closed import is_undefined
from tessera.tracing.held import Held, cuda_devices, free, inputs_of, run_module
from tessera.tracing.python_state import module_fails

FAR = {"fp32": 0.01, "tf32": 0.03, "bf16": 0.2, "fp16": 0.05, "fp8": 0.3}  # relative RMS, of fp64 too
FAR_ELEMENTS = 0.05  # of integers that differ, or of elements that are finite in one of the two alone
_RUNS, _TIMES = 4, 8.0


def refuse_other_results(held: Held) -> None:
    """Error TS0502, with `differs` among its data. Graphs that draw random numbers, or read memory that nothing was written to, are
    not looked at, nor those whose values do not fit into memory."""
    if draws(held.graph) or any(is_undefined(node["op"]) for node in held.graph["nodes"]):
        return
    reason = ""
    for seed in range(2):
        try:
            reason = _difference(held, seed)
        except torch.OutOfMemoryError:
            reason = ""
        free(held.device)
        if not reason:
            return
    raise fail(
        "TS0502",
        "verify.trace_differs",
        f"the traced graph does not give what the module gives: {reason}",
        expected="a module that computes in eager what it computes while it is traced",
        helps=["nn.TransformerEncoder with a padding mask does so with enable_nested_tensor=False"],
        data={"differs": True},
    )


def of_compiled(held: Held, run: Callable) -> str:
    """Why `run`, the module as Inductor compiled it, is not to be used: what its results are otherwise than the module's, or what it
    raises. "" where neither, or where that is not looked at (refuse_other_results). Under torch's own flags, for which it was compiled."""
    if draws(held.graph) or any(is_undefined(node["op"]) for node in held.graph["nodes"]):
        return ""
    try:
        other = _difference(held, 0, run) and _difference(held, 1, run)
    except torch.OutOfMemoryError:
        free(held.device)
        return ""
    except Exception as e:  # noqa: BLE001 - Inductor raises many kinds
        return f"{type(e).__name__}: {(str(e).strip() or 'no text').splitlines()[0]}"[:500]
    return other and f"its results are not the module's: {other}"


def _difference(held: Held, seed: int, compiled: Callable | None = None) -> str:
    args, kwargs = inputs_of(held, seed)
    named = {**held.traced.state(), **held.traced.flatten(args, kwargs)}
    graphs = _graphs(held, named, seed)
    given = held.copies(args, kwargs)
    with held.kept(), peer_table.equal_precision(held.precision) if compiled is None else contextlib.nullcontext():
        try:
            eager = [t.clone() for t in _called(held, held.module, given, seed)]
        except torch.OutOfMemoryError:
            raise
        except Exception as e:  # noqa: BLE001 - a trace knows less of shapes than the op itself
            raise Error(module_fails(e).diagnostic | {"data": {"differs": True}}) from e
    if compiled is None:
        made = next(graphs)
    else:
        with held.kept():
            made = [t.clone() for t in _called(held, compiled, held.copies(args, kwargs), seed)]
    if len(eager) != len(made):
        return f"{len(made)} results and changed tensors for {len(eager)}"
    found = [apart(e, m) for e, m in zip(eager, made, strict=True)]
    far = [(FAR[held.precision], FAR_ELEMENTS)] * len(found)
    if not any(beyond(row, limit) for row, limit in zip(found, far, strict=True)):
        return ""
    made = made if compiled is None else next(graphs)
    for noisy in graphs:
        moved = [apart(n, m) for n, m in zip(noisy, made, strict=True)]
        far = [(max(a, _TIMES * x), max(b, _TIMES * y)) for (a, b), (x, y) in zip(far, moved, strict=True)]
    for i, (row, limit) in enumerate(zip(found, far, strict=True)):
        if beyond(row, limit):
            off, elements = row
            return f"result {i} is off by {off:.2g} (relative RMS), and has {elements:.0%} of other elements"
    return ""


def _called(held: Held, module: Callable, given: tuple, seed: int) -> list[torch.Tensor]:
    return [*run_module(module, *given, seed), *effects(held, *given)]


def _graphs(held: Held, named: dict[str, torch.Tensor], seed: int) -> Iterator[list[torch.Tensor]]:
    """The graph's results in its own precision, then with roundings moved."""
    order = (*held.graph["outputs"], *(m["value"] for m in held.graph.get("mutations", ())))
    for run in range(1 + _RUNS):
        with torch.no_grad(), torch.random.fork_rng(devices=cuda_devices()), peer_table.equal_precision(held.precision):
            torch.manual_seed(seed)
            given = held.clones(named)
            if run == 0:
                values = Executor(held.graph, held.device).run_all(given)
            else:
                with Noise(held.precision, held.device, run):
                    values = Executor(held.graph, held.device).run_all(given)
        yield [values[name] for name in order]


def beyond(row: tuple[float, float], limit: tuple[float, float]) -> bool:
    return not (row[0] <= limit[0] and row[1] <= limit[1])


def apart(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """The relative RMS difference of what is finite in both, and the share of the elements that differ otherwise; of nested
    tensors, the largest of their pieces'."""
    if a.is_nested or b.is_nested:
        pieces = [t.unbind() if t.is_nested else () for t in (a, b)]
        rows = [apart(x, y) for x, y in zip(*pieces, strict=False)]
        alike = len(pieces[0]) == len(pieces[1])
        return max((r[0] for r in rows), default=0.0), max((r[1] for r in rows), default=0.0) if alike else 1.0
    if a.shape != b.shape:
        return 0.0, 1.0
    if not a.numel() or a.layout != torch.strided:
        return 0.0, 0.0
    if not a.is_floating_point():
        return 0.0, float((a != b.to(a.dtype)).double().mean())
    a, b = readable(a).double(), readable(b).double()
    both = a.isfinite() & b.isfinite()
    other = a.isfinite() != b.isfinite()
    size = a[both].square().sum()
    off = (a[both] - b[both]).square().sum()
    return float((off / size if size else off).sqrt()), float(other.double().mean())
