"""One copy of a program with its module, taken through rounds of calls; what is done before a call is undone after it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from program import Program, arguments_text, make_module, run_text, scope
from torch.utils import _pytree as pytree
from values import fill

ERRORS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    AttributeError,
    AssertionError,
    NameError,
)


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def under(change: dict | None):
    """The context in which a round's call is made."""
    text = (change or {}).get("under")
    if not text:
        return torch.no_grad()
    return eval(text, scope() | {"default_dtype": default_dtype, "deterministic": deterministic})


@dataclass
class Seen:
    """What a call left: live tensors (arguments, then state, then results) and what they held right after it."""

    live: dict[str, torch.Tensor]
    held: dict[str, torch.Tensor]
    plain: dict[str, object]  # results that are no tensors
    structure: object
    error: str = ""


class Twin:
    def __init__(self, module: torch.nn.Module, p: Program, draw=fill):
        self.module, self.p, self.draw = module, p, draw
        self._before: dict | None = None

    def prepare(self, r: int, change: dict | None = None) -> list:
        """What the call of round r gets; the change is made first."""
        change = change or {}
        kind = change.get("fill")

        def draw(shape, dtype, drawn="normal", seed=0):
            return self.draw(shape, dtype, kind or drawn, seed + 1000 * r)

        within = scope(draw) | {"m": self.module, "r": r}
        self._keep()
        with torch.no_grad():
            run_text(change.get("before", ""), within)
            within["args"] = run_text(arguments_text(self.p), within)["arguments"](self.module, draw)
            run_text(change.get("after", ""), within)
        return within["args"]

    def _keep(self) -> None:
        m = self.module
        plain = {k: v for k, v in vars(m).items() if k[0] == "k"}
        self._before = {"p": dict(m._parameters), "b": dict(m._buffers), "k": plain, "t": m.training}

    def undo(self, change: dict | None) -> None:
        """The state as it was held before a change; what a call itself put in a buffer's place stays."""
        if not (change or {}).get("before"):
            return
        m, b = self.module, self._before
        for mine, then in ((m._parameters, b["p"]), (m._buffers, b["b"])):
            mine.clear()
            mine.update(then)
        vars(m).update(b["k"])
        m.training = b["t"]
        for key in ("forward", "_forward_hooks"):
            if key == "forward":
                vars(m).pop("forward", None)
            else:
                vars(m)[key].clear()

    def observe(self, args: list, result) -> Seen:
        live = {f"x{i}": a for i, a in enumerate(args) if isinstance(a, torch.Tensor)}
        live |= {n: t for n, t in (self.module._parameters | self.module._buffers).items() if t is not None}
        leaves, structure = pytree.tree_flatten(result)
        plain = {}
        for i, leaf in enumerate(leaves):
            (live if isinstance(leaf, torch.Tensor) else plain)[f"r{i}"] = leaf
        return Seen(live, {n: t.detach().as_subclass(torch.Tensor).clone() for n, t in live.items()}, plain, structure)

    def call(self, r: int, change: dict | None = None, runner=None) -> Seen:
        """Round r by the module itself, or by `runner`."""
        args = self.prepare(r, change)
        try:
            with under(change):
                torch.manual_seed(r)
                result = (self.module if runner is None else runner)(*args)
            seen = self.observe(args, result)
        finally:
            self.undo(change)
        poison(seen)
        return seen


def poison(seen: Seen) -> None:
    """Writes into results, as a caller may: what is kept from call to call must not show it."""
    for name, t in seen.live.items():
        if name[0] == "r" and not t.requires_grad and not t.is_inference():
            with torch.no_grad(), contextlib.suppress(*ERRORS):
                t.fill_(3)


def twin(p: Program) -> Twin:
    return Twin(make_module(p), p)
