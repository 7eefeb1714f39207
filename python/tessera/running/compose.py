"""The composed module: a plan's kernels and the original's remaining ATen calls behind the original's interface.

It shares the original's parameters, buffers and submodules (the very dictionaries), so state_dict, load_state_dict,
optimizers and .to() act on both at once. Guards run on every call (call_guard.py); where one misses, the original runs, the
event is counted in status() and warned once, and `strict=True` raises instead. Parameters that a kernel reads as one are moved
into one allocation (neighbours.py); nothing else that follows from parameters is kept from call to call, but under
`frozen=True`. An input whose address kernels cannot read is copied (counted as `alignment`), unless an output may share
its memory; then the original runs.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable

import torch
from torch import nn

from tessera.common.errors import fail
from tessera.common.laid import in_storage
from tessera.common.randomness import draws
from tessera.common.transforms import as_parts
from tessera.running import hooks, leftover, special_methods
from tessera.running.call_guard import CallGuard
from tessera.running.code_reads import Ran
from tessera.running.composed_status import status_of
from tessera.running.feeds import Counts, Feeds
from tessera.running.guards import Events, Miss
from tessera.running.hooks import for_every_module, hooked
from tessera.running.input_guard import InputGuard
from tessera.running.keywords import signature_of
from tessera.running.leftover import RUNNERS
from tessera.running.memory_guard import MemoryGuard
from tessera.running.outputs import Outputs, wrapper
from tessera.running.packing import Packing
from tessera.running.places_of_state import aliased, private_constants, slots_of
from tessera.running.plan_graph import Built, build, device_of, type_of
from tessera.running.special_methods import SpecialMethods
from tessera.running.state_guard import StateGuard

_shared = (
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class ComposedModule(SpecialMethods, nn.Module):
    """`plan`: schema tessera.plan/1. `example`: the traced call's (args, kwargs), for non-tensor arguments and nesting.
    `outputs`: how the original's result is made of the graph's outputs; else it is a tensor, or a tuple. `constants`: tensors of
    the graph's constants by value name. `disabled`: ids of patterns that run as ATen. `runner`: `kernels` for the plan's;
    `eager` or `inductor` where the whole module is PyTorch's, as torch would run it. `frozen`: values made from parameters are
    kept, and made again when a version counter says so. `inductor`: its settings (modes.settings_of). `captured`: where
    torch.compile calls it as a captured graph, the inputs that keep their addresses. `compiled`: the original by `runner`, where
    it was compiled already. `training`, `changed`: of a copy, the modes of the modules as they were traced, and what of the original
    is otherwise than it was then, by which it runs the original for good. Errors: TS02xx for a malformed plan."""

    def __init__(
        self,
        original: nn.Module,
        plan: dict,
        *,
        leftover: str = "eager",
        strict: bool = False,
        example: tuple | None = None,
        outputs: Outputs | None = None,
        constants: dict[str, torch.Tensor] | None = None,
        disabled: frozenset[str] | set[str] = frozenset(),
        report: dict | None = None,
        runner: str = "kernels",
        frozen: bool = False,
        inductor: dict | None = None,
        captured: tuple[int, ...] | None = None,
        training: list[bool] | None = None,
        changed: str = "",
        ran: Ran = None,
        compiled: Callable | None = None,
    ):
        super().__init__()
        if leftover not in RUNNERS:
            raise fail("TS0013", "input.bad_option", f"leftover=`{leftover}`", expected="`eager` or `inductor`")
        if runner not in ("kernels", *RUNNERS):
            raise fail("TS0013", "input.bad_option", f"runner=`{runner}`", expected="`kernels`, `eager` or `inductor`")
        if isinstance(original, ComposedModule):
            original = original.original
        self.__dict__["original"] = original  # not a submodule: state_dict names stay
        for name in _shared:
            self.__dict__[name] = original.__dict__[name]
        self.plan, self._leftover, self._strict, self.report = plan, leftover, strict, report
        self.runner, self._frozen, self._inductor = runner, frozen, dict(inductor or {})
        self._example, self._constants, self._disabled = example, dict(constants or {}), frozenset(disabled)
        self._outputs, self._captured, self._training, self._changed = outputs, captured, training, changed
        self._ran = ran
        torch_way = self._torch_runner() if compiled is None else compiled
        self.__dict__["_torch"] = _direct(torch_way) if runner == "inductor" else torch_way
        self._prepare()
        self.__dict__["_own"] = frozenset(self.__dict__)

    # Construction

    def _prepare(self) -> None:
        graph = self.plan["graph"]
        self._device = torch.device(graph.get("device", "cpu"))
        if self._device.type == "cuda" and self._device.index is None:
            self._device = torch.device("cuda", torch.cuda.current_device())
        self._values = {v["name"]: v for v in graph["values"]}
        self._counts = Counts()
        self._private = private_constants(self.original, self._constants)
        self._built: Built = build(self.plan, disabled=self._disabled, packing=Packing(self._private, self._frozen))
        self._lost = [p for p in self._built.patterns if not p.active and p.id not in self._disabled]
        if self._lost and self.runner == "kernels":
            self._say_lost()
        users = [n for n in graph["inputs"] if self._values[n]["origin"] == "user_input"]
        signature, meta = signature_of(self.original), graph.get("meta") or {}
        self._inputs = InputGuard(
            users,
            [type_of(self._values[n]) for n in users],
            [device_of(self._values[n], self._device) for n in users],
            [in_storage(graph).get(n) for n in users],
            frozenset(aliased(graph, users)),
            signature,
            self._example,
        )
        tf32 = self.plan["graph"].get("precision") == "tf32" if self._has_fp32() else None
        memory = MemoryGuard(users, self._inputs.types, meta.get("memory"))
        self._state = StateGuard(
            self.original,
            [] if self._changed else slots_of(self.original, graph, self._built, self._constants, self._device),
            self._device,
            tf32,
            [] if self._changed else memory.tied,
            meta.get("surroundings"),
            self._training,
            self._ran,
        )
        self._events = Events(self._refuse if self._strict else None)
        # Not submodules: those are the original's own.
        runner = leftover.make(self._leftover, self._built.main, self._inductor, self._captured)
        self.__dict__["_runner"] = self._built.completed(runner)
        self._feeds = Feeds(self._built, self._state, self._events, self._counts, len(users), runner)
        self._guard = CallGuard(self._inputs, memory, self._state, self._feeds, self._events)
        # What a call does beside computing, it does once.
        self._once = bool(graph.get("mutations")) or bool(draws(graph))
        plain = self._built.packed or self._built.neighbours
        self._inline = build(self.plan, disabled=self._disabled, packing=Packing(inline=True)) if plain else self._built
        self._inline_feeds = [(n, users.index(n)) if n in users else (n, None) for n in self._inline.feeds]
        self._homes = {s.value: s.home for s in self._state.slots}
        self._wrap = wrapper(self._outputs, len(graph["outputs"]))
        special_methods.give(self, self.original)
        if self.runner == "kernels" and not self._changed:
            self._feeds.look()  # moves and packs now, never while a CUDA graph is captured; what misses is said by the call

    def _torch_runner(self) -> Callable | None:
        """The whole module by PyTorch, where that is the best plan."""
        return None if self.runner == "kernels" else leftover.whole(self.runner, self.original, self._inductor)

    def _has_fp32(self) -> bool:
        kernels = [s for s in self.plan["steps"] if s["kind"] in ("kernel", "call")]
        return any(self._values[v]["dtype"] == "float32" for s in kernels for v in s["inputs"] if v in self._values)

    def _say_lost(self) -> None:
        first = self._lost[0]
        if self._strict:
            raise fail(
                "TS0521", "compose.inactive", f"pattern {first.id} ({first.rule}) cannot be active: {first.reason}"
            )
        warnings.warn(
            f"tessera: {len(self._lost)} of {len(self._built.patterns)} kernels cannot be loaded and run as ATen ops, which is "
            f"slower: pattern {first.id} ({first.rule}): {first.reason.splitlines()[0]} (status() says which; optimize again)",
            stacklevel=4,
        )

    def _refuse(self, miss: Miss) -> None:
        raise fail(
            "TS0522",
            "compose.guard",
            f"the composed module does not apply: {miss.text}",
            notes=[f"guard: {miss.kind}"],
            helps=["with strict=False the original module runs instead"],
        )

    # The call

    def _call_impl(self, *args, **kwargs):
        if for_every_module() and not (self._forward_hooks or self._forward_pre_hooks):
            # Torch's hooks for every module are run around the original, and would be again around this one.
            self._counts.calls += 1
            return self._fall_back(Miss("hooks", hooked(self.original)), args, kwargs)
        return super()._call_impl(*args, **kwargs)

    def _slow_forward(self, *args, **kwargs):
        """In the place of `forward` while torch.jit traces: what is saved is to be loaded where no kernel of ours is registered."""
        return self.original(*args, **kwargs)

    def forward(self, *args, **kwargs):
        if self._torch is not None:
            if _exporting():
                return self.original(*args, **kwargs)
            self._counts.calls += 1
            return self._torch(*args, **kwargs)
        if torch.compiler.is_compiling():
            return self._forward_compiled(args, kwargs)
        self._counts.calls += 1
        if self._changed:
            return self._fall_back(Miss("copied", f"it was copied after a change: {self._changed}"), args, kwargs)
        tensors = self._guard(args, kwargs)
        if type(tensors) is Miss:
            return self._fall_back(tensors, args, kwargs)
        rest, apart = self._feeds.now
        return self._wrap(self._runner(*tensors, *(self._feeds.joined() if apart else rest)))

    def _fall_back(self, miss: Miss, args, kwargs):
        self._events.add(miss, "the original module runs")
        return self.original(*args, **kwargs)

    @torch.compiler.assume_constant_result
    def _is_another(self) -> bool:
        """Than was traced: asked when torch.compile traces, and guarded by what it reads of the original."""
        return bool(self._changed or self._state.changed() or self._state.misfit())

    def _forward_compiled(self, args, kwargs):
        """While torch.compile traces. Its own guards replace ours from there on: it traces the original for those, whose results
        nothing reads. Packed values are computed inside, because nothing outside would notice a changed parameter. torch.export
        saves what it traces, and where that is loaded no kernel of ours is registered: it takes the original."""
        tensors = list(args)
        if (
            kwargs
            or _exporting()
            or self._once
            or self._is_another()
            or len(args) != self._inputs.count
            or not self._inputs.simple
            or torch.is_grad_enabled()
            or self._state.compiled_miss()
            or (not self._inputs.check_symbolic(tensors))
        ):
            return self.original(*args, **kwargs)
        self.original(*args)
        feeds = []
        for name, i in self._inline_feeds:
            if i is not None:
                feeds.append(tensors[i])
            else:
                module, key = self._homes[name]
                feeds.append(as_parts(getattr(module, key)) if module is not None else self._constants[key])
        return self._wrap(self._inline.completed(self._inline.main)(*feeds))

    # The rest of nn.Module

    @property
    def training(self) -> bool:
        return self.original.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "original" in self.__dict__:  # nn.Module sets it before
            self.original.training = mode

    def train(self, mode: bool = True):
        self.original.train(mode)
        return self

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "original" not in self.__dict__:
                raise
            return getattr(self.__dict__["original"], name)

    def _is_own(self, name: str) -> bool:
        own = self.__dict__.get("_own")  # None: still being made
        return own is None or name in own or hasattr(type(self), name)

    def __setattr__(self, name: str, value):
        """The original's, whose attributes are read here too: its forward and the guards are to see them. Its own go past
        nn.Module, whose parameters, buffers and modules are the original's: one of them may have the same name."""
        if self._is_own(name):
            object.__setattr__(self, name, value)
        else:
            setattr(self.original, name, value)

    def __delattr__(self, name: str):
        if self._is_own(name):
            object.__delattr__(self, name)
        else:
            delattr(self.original, name)

    def __deepcopy__(self, memo):
        return hooks.copied(self, self._again(copy.deepcopy(self.original, memo)), memo)

    def __reduce__(self):
        return (
            _restore,
            (
                self.original,
                self.plan,
                self._options(),
            ),
            hooks.own(self),
        )

    def _options(self) -> dict:
        given = list(inspect.signature(ComposedModule.__init__).parameters)[3:]  # after self, original, plan
        public = ("report", "runner")
        own = {n: getattr(self, n if n in public else f"_{n}") for n in given if n != "compiled"}
        # Kernels stand for the module as it was traced, which is not to be seen in a copy.
        return own | {"training": self._state.flags, "changed": self._changed or self._state.changed()}

    def _again(self, original: nn.Module, **changes) -> ComposedModule:
        return ComposedModule(original, self.plan, **{**self._options(), **changes})

    def with_patterns(self, *, only: set[str] | None = None, without: set[str] = frozenset()) -> ComposedModule:
        """The same module with some patterns run as ATen; shares parameters."""
        every = {p.id for p in self._built.patterns}
        off = (every - only if only is not None else set()) | set(without)
        return self._again(self.original, disabled=frozenset(off))

    def handed_over(self, plan: dict, report: dict | None) -> ComposedModule:
        """Itself, as the result of a search: what happened in the course of it does not count."""
        self.plan, self.report = plan, report
        self._counts.clear()
        self._events.clear()
        return self

    def extra_repr(self) -> str:
        if self.runner != "kernels":
            return f"run by PyTorch ({self.runner}), which is faster as a whole"
        active = [p for p in self._built.patterns if p.active]
        return f"{len(active)} of {len(self._built.patterns)} patterns active, leftover={self._leftover!r}"

    # What happened

    def status(self) -> dict:
        """What is active and what was met. `calls`: of this module; `served`: those in which every kernel of the plan ran (or
        PyTorch, where `runner` is PyTorch's); a pattern's `calls`: those that its kernel served; `fallbacks`: events by kind
        with the latest reason (`alignment`, `repack` and `apart` did not run the original)."""
        return status_of(self)


def _restore(original, plan, options) -> ComposedModule:
    return ComposedModule(original, plan, **options)


def _exporting() -> bool:
    """`torch.compiler.is_exporting()`, which Dynamo takes for true in every trace."""
    return torch.compiler._is_exporting_flag


def _direct(compiled: Callable) -> Callable:
    """torch.compile's callable without the nn.Module around it, which would cost every call some microseconds more."""
    return compiled.forward if isinstance(compiled, torch._dynamo.OptimizedModule) else compiled


def composed_of(traced, args: tuple, kwargs: dict, plan: dict, **options) -> ComposedModule:
    """The composed module of a trace (tracer.Traced) and the call that was traced."""
    return ComposedModule(
        traced.module,
        plan,
        example=(tuple(args), dict(kwargs)),
        outputs=Outputs(traced.results, traced.out_spec),
        constants=traced.constants,
        **options,
    )
