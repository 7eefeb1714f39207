"""A live module with the call that it was traced with, and its inputs drawn anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.arguments import tensor_arguments
from tessera.common.errors import BY_GRAPHS, fail
from tessera.common.laid import cloned, in_storage, memory_below, overlaps_itself
from tessera.common.module_state import owner_of
from tessera.common.precision import cast, readable
from tessera.running import leftover
from tessera.running.compose import ComposedModule, composed_of
from tessera.running.hooks import hooked
from tessera.running.keywords import ordered, signature_of
from tessera.running.result_objects import tensors_of
from tessera.tracing.argument_copies import copies
from tessera.tracing.bounded import TRACE_SECONDS, OutOfTime, within
from tessera.tracing.laid_results import as_laid
from tessera.tracing.python_state import changes_of_calls, listed
from tessera.tracing.torch_export import places_of_user
from tessera.tracing.tracer import Traced, trace_module

T = TypeVar("T")

_kept_distinct = 16  # a tensor with at most so many values is a mask, a flag or a table of positions
_fully_shuffled = 1 << 22  # elements
_whole = ("int64", "int32", "int16", "int8", "uint8", "bool")


@dataclass
class Held:
    """A live module with the call that it was traced with."""

    module: nn.Module
    args: tuple
    kwargs: dict
    traced: Traced
    path: str = ""
    notify: Callable[[str], None] = lambda text: None
    resizable: bool = True  # whether other inputs of the same module make sense: not for a captured graph
    options: dict = field(default_factory=dict)  # of every composed module: frozen, inductor, captured

    @property
    def graph(self) -> dict:
        return self.traced.graph

    @property
    def precision(self) -> str:
        return self.graph["precision"]

    @property
    def device(self) -> torch.device:
        return torch.device(self.graph["device"])

    @property
    def settings(self) -> dict:
        """Inductor's."""
        return self.options.get("inductor") or {}

    def own_tensors(self) -> list[torch.Tensor]:
        return [*self.module.parameters(), *self.module.buffers()]

    def copies(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Arguments that a call may write to. One tensor given twice is one copy; the module's own are themselves."""
        given = self.traced.flatten(args, kwargs)
        whole = {id(given[name]) for name in in_storage(self.graph) if name in given}
        return copies(args, kwargs, {id(t): t for t in self.own_tensors()}, whole)

    def clones(self, named: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Copies of inputs by name, for the graph: they lie in their storages where it reads them by that."""
        return {
            name: cloned(t, storage=True) if name in in_storage(self.graph) else t.clone() for name, t in named.items()
        }

    def written(self) -> list[str]:
        """The parameters and buffers that forward writes to, by the module's names, in the graph's order."""
        return [m["target"] for m in self.graph.get("mutations", ()) if not m["target"].startswith("input:")]

    def written_inputs(self) -> list[str]:
        """The inputs that it writes to, by the names of their values."""
        targets = (m["target"] for m in self.graph.get("mutations", ()))
        return [t.removeprefix("input:") for t in targets if t.startswith("input:")]

    def snapshot(self) -> dict[str, torch.Tensor]:
        """Copies of the buffers, and of the parameters that forward writes to."""
        return {name: t.detach().clone() for name, t in self._changing().items()}

    def restore(self, before: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, t in self._changing().items():
                if name in before and not same(t, before[name]):
                    t.copy_(before[name])

    @contextmanager
    def kept(self) -> Iterator[dict[str, torch.Tensor]]:
        """What calls inside write to the module's own tensors is put back, also where one raises. Gives the copies."""
        before = self.snapshot()
        try:
            yield before
        finally:
            self.restore(before)

    def _changing(self) -> dict[str, torch.Tensor]:
        places = {name: owner_of(self.module, name) for name in self.written()}
        written = {name: place[1][place[2]] for name, place in places.items() if place}
        return {**dict(self.module.named_buffers()), **written}

    def compose(self, plan: dict, leftover: str, **options) -> ComposedModule:
        options = {**self.options, **options}
        runner = options.pop("runner", plan.get("runner", "kernels"))
        return composed_of(self.traced, self.args, self.kwargs, plan, leftover=leftover, runner=runner, **options)

    def torch_runner(self, name: str) -> Callable:
        """The whole module by PyTorch: `eager`, or `inductor` as torch.compile makes it in the mode asked for."""
        return leftover.whole(name, self.module, self.settings)


def hold(
    module: nn.Module,
    args: tuple,
    kwargs: dict,
    precision: str | None = None,
    path: str = "",
    name: str | None = None,
    say: Callable[[str], None] = lambda text: None,
    seconds: float = TRACE_SECONDS,
) -> Held:
    """Traces a module and keeps what evaluation needs. `precision` converts the module in place (tracer.trace_module). What a first
    call makes in Python is made first, and stays. `say` is told how it goes. Tracing is given up after `seconds`."""
    kwargs = ordered(signature_of(module), dict(kwargs))
    if precision is not None:
        args, kwargs = cast(module, tuple(args), kwargs, precision)
    changes = changes_of_calls(module, args, kwargs, lambda: redrawn(args, kwargs))
    if changes.reasons:
        raise fail(
            "TS0202",
            "graph.untraceable",
            f"a call does more than compute tensors, and no graph holds that: {'; '.join(changes.reasons)}",
            helps=["without it the module can be traced", BY_GRAPHS],
            data={"changes": changes.reasons},
        )
    if changes.made:
        say(f"the first call makes {listed(changes.made)}: made now, and kept")
    if where := hooked(module):
        raise fail(
            "TS0015",
            "input.hooks",
            f"{where} has forward hooks, which kernels that take its place would skip",
            expected="a module without forward hooks",
            helps=[
                "remove them (handle.remove()) and optimize again",
                "hooks that are registered afterwards are honoured: the original runs while there are any",
                BY_GRAPHS,
            ],
        )
    traced = in_time(lambda: trace_module(module, args, kwargs, precision, name), say, seconds)
    describe_device(traced.graph)
    as_laid(traced.graph, changes.results)
    return Held(module, tuple(args), dict(kwargs), traced, path)


def redrawn(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Other elements in another order: a mean is another one, too."""

    def other(t: torch.Tensor) -> torch.Tensor:
        return redraw(t, 1) * 0.75 if t.is_floating_point() or t.is_complex() else redraw(t, 1)

    return pytree.tree_map_only(torch.Tensor, other, (tuple(args), dict(kwargs)))


def in_time(trace: Callable[[], T], say: Callable[[str], None], limit: float = TRACE_SECONDS) -> T:
    """Error: TS0202, with `out_of_time` among its data, where it takes longer than `limit` seconds."""
    try:
        return within(limit, trace, lambda seconds: say(f"tracing for {seconds:.0f} s; Ctrl-C gives up"))
    except OutOfTime as e:
        raise fail(
            "TS0202",
            "graph.untraceable",
            f"tracing was given up after {limit:.0f} s",
            notes=[f"it was at {place}" for place in places_of_user(e)[-1:]],
            helps=[
                "a loop that runs some thousand ops is one graph of as many: optimize the module that one step calls"
            ],
            data={"out_of_time": True},
        ) from None


def describe_device(graph: dict) -> None:
    """Adds to a graph's meta what the engine chooses an architecture by."""
    device = torch.device(graph["device"])
    if device.type == "cuda":
        graph["meta"]["capability"] = list(torch.cuda.get_device_capability(device))
        graph["meta"]["device_name"] = torch.cuda.get_device_name(device)


# --- inputs --------------------------------------------------------------------------------------------------------


def redraw(tensor: torch.Tensor, seed: int, *, storage: bool = False) -> torch.Tensor:
    """The same elements in another order: any distribution and any range of indices is kept. Tensors with an order of
    their own are left as they are: masks, positions, tables of few values."""
    made = cloned(tensor, storage=storage)
    if seed == 0 or tensor.numel() < 2 or tensor.dtype == torch.bool:
        return made
    flat = readable(tensor.detach()).flatten()
    if not bool(flat.isfinite().all()) or len(flat[: 1 << 16].unique()) <= _kept_distinct:
        return made
    if not tensor.is_floating_point() and bool((flat[1:] >= flat[:-1]).all()):
        return made
    if overlaps_itself(tensor.shape, tensor.stride()):
        memory = memory_below(made)
        memory.copy_(_shuffled(readable(memory), seed))
        return made
    return made.copy_(_shuffled(flat, seed).view(tensor.shape))


def _shuffled(flat: torch.Tensor, seed: int) -> torch.Tensor:
    """A random order; of many elements one that costs two copies: rows and columns of a square of them are permuted. A random
    permutation of 2^31 elements takes a GPU minutes, and eight bytes an element."""
    generator = torch.Generator(flat.device).manual_seed(seed)

    def order(n: int) -> torch.Tensor:
        return torch.randperm(n, generator=generator, device=flat.device)

    if flat.numel() <= _fully_shuffled:
        return flat[order(flat.numel())]
    side = math.isqrt(flat.numel()) | 1  # odd, so that rows of the square are seldom the tensor's own
    rows = flat.numel() // side
    made = flat.roll(1 + seed)
    square = made[: rows * side].view(rows, side)
    square.copy_(square[order(rows)][:, order(side)])
    return made


def of_masks(graph: dict) -> set[str]:
    """Values of the graph that calls' integers and flags follow from: a mask of blocks and the function that it was made of. Other
    content of one alone would let a call compute what no caller means."""
    calls = {f"tessera.{name}.default" for name in graph.get("meta", {}).get("calls", {})}
    dtypes = {v["name"]: v["dtype"] for v in graph["values"]}
    found: set[str] = set()
    for node in reversed(graph["nodes"]) if calls else ():
        read = tensor_arguments(node)
        if node["op"] in calls:
            found |= {name for name in read if dtypes[name] in _whole}
        elif found & set(node["outputs"]):
            found |= set(read)
    return found


def inputs_of(held: Held, seed: int) -> tuple[tuple, dict]:
    """Other values of the same kinds. What is one tensor in the held call is one tensor, and what is the module's own is that."""
    leaves, form = pytree.tree_flatten((held.args, held.kwargs))
    kept = of_masks(held.graph)
    made = {id(t): t for t in held.own_tensors()}
    for i, (leaf, name) in enumerate(zip(leaves, held.traced.user_inputs, strict=True)):
        if isinstance(leaf, torch.Tensor):
            if id(leaf) not in made:
                made[id(leaf)] = redraw(leaf, 0 if name in kept else seed, storage=name in in_storage(held.graph))
            leaves[i] = made[id(leaf)]
    return pytree.tree_unflatten(leaves, form)


# --- running it without leaving a trace -------------------------------------------------------------------------------


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = readable(a), readable(b)
    return bool(((a == b) | ((a != a) & (b != b))).all())


def run_module(module, args: tuple, kwargs: dict, seed: int) -> list[torch.Tensor]:
    with torch.no_grad(), torch.random.fork_rng(devices=cuda_devices()):
        torch.manual_seed(seed)
        result = module(*args, **kwargs)
    return tensors_of(result)


def free(device: torch.device) -> None:
    """Gives back what torch's allocator keeps: to other processes, or for a larger block."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def cuda_devices() -> list[int]:
    return [torch.cuda.current_device()] if torch.cuda.is_available() else []
