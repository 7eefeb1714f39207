"""Calls of a module on inputs that come in files, with results that go to files: the judged module's, in its confined process,
and its peers', by the same loop.

What is done here may be tampered with where the module is not trusted. So nothing is decided here: results are compared, and
times are taken, by other processes (docs/judge.md). What is used is taken before the file is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch.utils import _pytree as pytree

from tessera.judging import exchange

_clock = time.perf_counter
_copy = torch.ops.aten.copy_.default
_no_grad, _leaves, _tensor_types = torch.no_grad, pytree.tree_leaves, (torch.Tensor, torch.nn.Parameter)
_NAN_BYTES = 0xFF


class Refused(Exception):
    """What came back is no result; the argument is {"kind", "reason"}."""


def decoded(form, tensors: dict[str, torch.Tensor]):
    """An argument from its form: {"tensor": name}, {"list": [...]}, {"tuple": [...]}, {"dict": {...}}, {"plain": value}."""
    ((kind, value),) = form.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {k: decoded(v, tensors) for k, v in value.items()}
    if kind in ("list", "tuple"):
        made = [decoded(v, tensors) for v in value]
        return made if kind == "list" else tuple(made)
    return value


class Rounds:
    """`shelf`: the file that results go to. `outputs`: the {"shape", "dtype"} that results must have."""

    def __init__(self, module: Callable, device: torch.device, form: dict, outputs: list[dict], shelf: str):
        self.module, self.device, self.form, self.shelf = module, device, form, shelf
        self.kinds = [(list(o["shape"]), getattr(torch, o["dtype"])) for o in outputs]
        self._sets: list[dict[str, torch.Tensor]] = []
        self._slots: list[list[torch.Tensor]] = []
        self._last: list[torch.Tensor] = []
        self._before: list[torch.Tensor] = []
        self._cuda = device.type == "cuda"
        self._synchronize = torch.cuda.synchronize
        self._event = torch.cuda.Event

    def load(self, path: str, sets: list[dict[str, dict]]) -> None:
        """Takes inputs: of each set a place by name. What has the shape of a former input lies where that one lay."""
        for i, places in enumerate(sets):
            found = exchange.read(path, list(places.values()))
            if found is None:
                raise OSError(f"{path} does not hold the inputs")
            made = {n: exchange.laid_out(t, p, self.device) for (n, p), t in zip(places.items(), found, strict=True)}
            if i == len(self._sets):
                self._sets.append(made)
                continue
            for name, t in made.items():
                old = self._sets[i].get(name)
                if old is not None and (old.shape, old.dtype, old.stride()) == (t.shape, t.dtype, t.stride()):
                    _copy(old, t)
                else:
                    self._sets[i][name] = t
        del self._sets[len(sets) :]
        self._room(len(sets))

    def call(self, which: int) -> list[dict]:
        """One call, its results on the shelf; memory that the allocator hands out next holds NaN."""
        self._before, self._last = self._last, []
        self._poison()
        self._last = self._results(self._arguments(which))
        self.wait()
        return self._put(self._last)

    def again(self) -> list[dict]:
        """The results of the call before the last one, as they are now."""
        return self._put(self._before)

    def inputs(self, which: int, path: str) -> list[dict]:
        """The inputs of a set as they are now, in a file."""
        return exchange.write(path, list(self._sets[which].values()))

    def run(self, which: list[int]) -> dict:
        """Calls on the first sets in turn, each result in its slot; by this process's own clock: seconds of all, and on CUDA the time of
        each by events. The time ends when all results lie on the shelf: on CUDA in the device's memory, else in the file."""
        calls = [self._arguments(i) for i in which]
        slots = self._slots
        events = [(self._event(enable_timing=True), self._event(enable_timing=True)) for _ in which if self._cuda]
        self.wait()
        begin = _clock()
        for i, (call, slot) in enumerate(zip(calls, slots, strict=False)):
            if self._cuda:
                events[i][0].record()
            results = self._results(call)
            if self._cuda:
                events[i][1].record()
            for target, made in zip(slot, results, strict=True):
                _copy(target, made)
        self.wait()
        seconds = _clock() - begin
        return {"seconds": seconds, "device_ms": [a.elapsed_time(b) for a, b in events]}

    def deliver(self, slot: int) -> list[dict]:
        """Puts the results of a call of the last `run` from the device's memory into the file."""
        places, size = exchange.places_of(self.kinds)
        for target, made in zip(exchange.mapped(self.shelf, places, size), self._slots[slot], strict=True):
            _copy(target, made)
        return places

    def wait(self) -> None:
        if self._cuda:
            self._synchronize()

    def _arguments(self, which: int) -> tuple[list, dict]:
        given = self._sets[which]
        args = [decoded(a, given) for a in self.form["args"]]
        return args, {k: decoded(v, given) for k, v in self.form["kwargs"].items()}

    def _results(self, call: tuple[list, dict]) -> list[torch.Tensor]:
        with _no_grad():
            made = self.module(*call[0], **call[1])
        out = []
        for leaf in _leaves(made):
            if type(leaf) in _tensor_types:
                out.append(leaf)
            elif isinstance(leaf, torch.Tensor):
                kind = f"{type(leaf).__module__}.{type(leaf).__qualname__}"
                raise Refused(
                    {"kind": "not_a_tensor", "reason": f"a result is a {kind}, which may compute when it is read"}
                )
        if len(out) != len(self.kinds):
            reason = f"forward returns {len(out)} tensors, the reference {len(self.kinds)}"
            raise Refused({"kind": "wrong_result", "reason": reason})
        for i, (t, (shape, dtype)) in enumerate(zip(out, self.kinds, strict=True)):
            if list(t.shape) != shape or t.dtype != dtype or t.device.type != self.device.type:
                reason = f"result {i} is {t.dtype} {list(t.shape)} on {t.device}, the reference's {dtype} {shape}"
                raise Refused({"kind": "wrong_result", "reason": reason})
        return out

    def _put(self, results: list[torch.Tensor]) -> list[dict]:
        places, size = exchange.places_of(self.kinds)
        for target, made in zip(exchange.mapped(self.shelf, places, size), results, strict=True):
            _copy(target, made)
        return places

    def _room(self, count: int) -> None:
        """Slots for the results of so many calls, whose memory is there before the time begins."""
        if self._cuda:
            while len(self._slots) < count:
                self._slots.append([torch.empty(s, dtype=d, device=self.device) for s, d in self.kinds])
            return
        places, size = [], 0
        for _ in range(count):
            more, size = exchange.places_of(self.kinds, size)
            places += more
        flat = exchange.mapped(self.shelf, places, size)
        for t in flat:
            t.zero_()
        n = len(self.kinds)
        self._slots = [flat[i * n : (i + 1) * n] for i in range(count)]

    def _poison(self) -> None:
        held = []
        for _ in range(2):
            for shape, dtype in self.kinds:
                t = torch.empty(shape, dtype=dtype, device=self.device)
                t.view(-1).view(torch.uint8).fill_(_NAN_BYTES)
                held.append(t)
        held.clear()
