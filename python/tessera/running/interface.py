"""What a kernel of a kernel file takes (schema ``tessera.interface/1``, of ``tessera build --json``), and a call's integers,
solved from the shapes and strides of its tensors.

Extents and strides are index terms (docs/terms.md) over the launch's integers. A term that is one name alone gives that
integer its value; every other term is computed and compared.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType

import torch

from tessera.common.errors import Error, fail

_FUNCTIONS = {"min": min, "max": max, "select": lambda condition, a, b: a if condition else b}


@dataclass(frozen=True)
class Term:
    """A number, or a text over integers by name."""

    text: str
    names: tuple[str, ...]
    code: CodeType

    @staticmethod
    def of(written: int | str) -> Term:
        text = str(written)
        tree = ast.parse(text, mode="eval")
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - _FUNCTIONS.keys()
        return Term(text, tuple(sorted(names)), compile(tree, "<term>", "eval"))

    @property
    def name(self) -> str | None:
        """The integer that it is, where it is one alone."""
        return self.text if self.text.isidentifier() else None

    def value(self, ints: dict[str, int]) -> int:
        return eval(self.code, {"__builtins__": {}, **_FUNCTIONS}, dict(ints))  # the engine has written it


@dataclass(frozen=True)
class Integer:
    """lower <= value < below, and value = residue modulo multiple. A bound that is None is not known."""

    name: str
    lower: Term | None
    below: Term | None
    multiple: int
    residue: int

    @staticmethod
    def of(data: dict) -> Integer:
        bounds = (None if data[k] is None else Term.of(data[k]) for k in ("lower", "below"))
        return Integer(data["name"], *bounds, data["multiple"], data["residue"])

    def up_to(self, value: int) -> int:
        """The least value from `value` on that has the residue."""
        return value + (self.residue - value) % self.multiple

    def fault(self, ints: dict[str, int]) -> str:
        """What is expected, where the value is no such; else ""."""
        value = ints[self.name]
        lower = None if self.lower is None else self.lower.value(ints)
        below = None if self.below is None else self.below.value(ints)
        inside = (lower is None or value >= lower) and (below is None or value < below)
        if inside and value % self.multiple == self.residue:
            return ""
        said = []
        if self.multiple > 1:
            said.append(
                f"a multiple of {self.multiple}" if self.residue == 0 else f"{self.residue} mod {self.multiple}"
            )
        said += [] if lower is None else [f"at least {lower}"]
        said += [] if below is None else [f"below {below}"]
        return ", ".join(said)


@dataclass(frozen=True)
class Parameter:
    """A tensor of the launch; extents and strides in elements."""

    name: str
    dtype: torch.dtype
    output: bool
    extents: tuple[Term, ...]
    strides: tuple[Term, ...]

    @staticmethod
    def of(data: dict) -> Parameter:
        extents, strides = (tuple(Term.of(t) for t in data[k]) for k in ("extents", "strides"))
        return Parameter(data["name"], getattr(torch, data["dtype"]), data["access"] == "output", extents, strides)

    def text(self) -> str:
        return f"{self.name}[{', '.join(t.text for t in self.extents)}]"


Shape = tuple[tuple[int, ...], tuple[int, ...]]  # extents, strides


class Interface:
    """Integers and tensors of a kernel in the order of its launch."""

    def __init__(self, kernel: str, data: dict):
        self.kernel = kernel
        self.ints = [Integer.of(i) for i in data["ints"]]
        self.tensors = [Parameter.of(t) for t in data["tensors"]]
        self.inputs = [t for t in self.tensors if not t.output]
        self.outputs = [t for t in self.tensors if t.output]

    def free(self, given: list[Parameter]) -> list[str]:
        """Names of the integers that do not follow from these tensors: a caller gives them. Strides of a tensor that is not
        given are chosen with it."""
        absent = [p for p in self.tensors if p not in given]
        known = {t.name for p in absent for t in p.strides} - {t.name for p in absent for t in p.extents}
        known |= {t.name for p in given for t in (*p.extents, *p.strides)}
        return [i.name for i in self.ints if i.name not in known]

    def solve(self, shapes: dict[str, Shape], given: dict[str, int]) -> dict[str, int]:
        """All integers of a launch on tensors of these shapes, of which outputs may be missing. Where a tensor has one element
        along a dimension its stride there is any. Error TS0896: one follows from nothing."""
        ints = dict(given)
        present = [p for p in self.tensors if p.name in shapes]
        for p in present:
            _take(ints, p.extents, shapes[p.name][0])
        for p in present:
            extents, strides = shapes[p.name]
            several = [d for d, n in enumerate(extents) if n != 1]
            _take(ints, [p.strides[d] for d in several], [strides[d] for d in several])
        bounds = {i.name: i for i in self.ints}
        for p in self.tensors:
            self._choose_strides(ints, bounds, p)
        for i in self.ints:
            if i.name not in ints:
                raise self._unsolved(i.name)
        return ints

    def _choose_strides(self, ints: dict[str, int], bounds: dict[str, Integer], p: Parameter) -> None:
        """Those of a tensor that is still to be made, and of dimensions of one element: row-major, as dense as the bounds
        allow."""
        if all(t.name is None or t.name in ints for t in p.strides):
            return
        extents = [self._value(t, ints) for t in p.extents]
        known = [t.value(ints) if all(n in ints for n in t.names) else None for t in p.strides]
        for d in reversed(range(len(extents))):
            name = p.strides[d].name
            if name is None or name in ints:
                continue
            # The named stride of a column-major matrix spans the rows, which stand before it.
            least = max([1, *(s * n for s, n in zip(known, extents, strict=True) if s is not None)])
            bound = bounds[name]
            if bound.lower is not None:
                least = max(least, self._value(bound.lower, ints))
            ints[name] = known[d] = bound.up_to(least)

    def _value(self, t: Term, ints: dict[str, int]) -> int:
        for name in t.names:
            if name not in ints:
                raise self._unsolved(name)
        return t.value(ints)

    def _unsolved(self, name: str) -> Error:
        return fail(
            "TS0896",
            "call.unsolved",
            f"`{name}` of `{self.kernel}` does not follow from the tensors of the call",
            expected=f"`{name}=` beside the tensors",
            found="neither a tensor nor a number that gives it",
            helps=[f"give `{name}=`, or the output by `out=`"],
        )

    def check(self, shapes: dict[str, Shape], ints: dict[str, int]) -> None:
        """Errors: TS0893 for tensors that are not as the integers say, TS0894 for integers out of bounds."""
        for p in self.tensors:
            if p.name in shapes:
                self._check_tensor(p, shapes[p.name], ints)
        for i in self.ints:
            if expected := i.fault(ints):
                raise fail(
                    "TS0894",
                    "call.out_of_range",
                    f"`{i.name}` of `{self.kernel}` cannot be {ints[i.name]}",
                    expected=expected,
                    found=f"{i.name} = {ints[i.name]}" + self._where(i.name, shapes),
                    helps=["pad the tensor, copy it with .contiguous() where a stride is meant, or build the kernel with "
                           "constants that allow this"],
                )  # fmt: skip

    def _check_tensor(self, p: Parameter, shape: Shape, ints: dict[str, int]) -> None:
        for terms, found, what in ((p.extents, shape[0], "extent"), (p.strides, shape[1], "stride")):
            for d, (term, value) in enumerate(zip(terms, found, strict=True)):
                if what == "stride" and shape[0][d] == 1:
                    continue
                wanted = term.value(ints)
                if wanted == value:
                    continue
                told = f"{term.text} = {wanted}" if term.names else f"{wanted}"
                raise fail(
                    "TS0893",
                    "call.contradiction",
                    f"{what} {d} of `{p.name}` does not fit the call of `{self.kernel}`",
                    expected=told + (self._where(term.text, {}, but=p.name) if term.name else ""),
                    found=f"{value}: {p.name} has the shape {list(shape[0])} and the strides {list(shape[1])}",
                    helps=[
                        "copy it with .contiguous(), or build the kernel with constants that take such strides"
                        if what == "stride"
                        else f"`{self.kernel}` takes {', '.join(t.text() for t in self.tensors)}"
                    ],
                )

    def _where(self, name: str, shapes: dict[str, Shape], but: str = "") -> str:
        """Which tensor an integer is of."""
        for p in self.tensors:
            if p.name == but or (shapes and p.name not in shapes):
                continue
            for what, terms in (("extent", p.extents), ("stride", p.strides)):
                for d, t in enumerate(terms):
                    if t.name == name:
                        return f", {what} {d} of {p.name}"
        return ""

    def made(self, p: Parameter, ints: dict[str, int]) -> Shape:
        """Extents and strides of an output that is to be made."""
        return tuple(self._value(t, ints) for t in p.extents), tuple(self._value(t, ints) for t in p.strides)


def _take(ints: dict[str, int], terms, values) -> None:
    for term, value in zip(terms, values, strict=True):
        if term.name is not None and term.name not in ints:
            ints[term.name] = value
