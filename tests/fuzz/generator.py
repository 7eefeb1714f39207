"""A random program. It is run while it is made, so that every step is one that eager PyTorch takes."""

from __future__ import annotations

import contextlib
import random
import re
import warnings

import op_tables as tables
import torch
from changes import draw_changes
from comparing import runs, seldom_one_graph
from op_makers import MAKERS
from program import FORMS, Program, expression, scope, state_text
from values import KINDS

_TABLES = {
    "pointwise": tables.POINTWISE,
    "binary": tables.BINARY,
    "reduction": tables.REDUCTION,
    "row": tables.ROWS,
    "conversion": tables.CONVERSIONS,
    "view": tables.VIEWS,
    "copy": tables.COPIES,
    "write": tables.WRITES,
    "gather": tables.GATHER,
}
# How often a family is drawn: a style is what a program is mostly about.
_STYLES = {
    "memory": dict(
        pointwise=3, binary=3, view=6, write=6, copy=3, state=3, row=1, maker=1, gather=1, conversion=1, reduction=1
    ),
    "values": dict(
        pointwise=6, binary=6, row=4, reduction=3, maker=3, view=2, conversion=3, write=1, copy=1, gather=1, state=0.5
    ),
    "layers": dict(maker=6, pointwise=4, binary=4, row=2, view=2, write=0.7, copy=1, reduction=0.5, state=0.5),
    # What kernels are made for, with little between it.
    "kernels": dict(
        pointwise=6,
        binary=6,
        row=5,
        maker=4,
        view=2,
        reduction=2,
        conversion=1,
        write=0.6,
        copy=0.5,
        gather=0.3,
        state=0.3,
    ),
    "data": dict(
        copy=6, gather=5, view=4, conversion=2, reduction=3, binary=3, pointwise=2, maker=2, write=1, state=0.5
    ),
}
NUMBERS = [0.5, 2, 2.0, -1.5, 0.0, -0.0, 0, 1, 1.0, 3, -1, 1e-12, 1e-3, 100.0, 0.1]
_POWERS = [0, 1, 2, 3, -1, 0.5, -2, 2.0, 1.5, -0.5]
_STAY = 0.08  # of the programs that are seldom one graph
_DRAWING = ("bernoulli", "dropout", "rand")
_WRITING = re.compile(r"^\{0\}[^()]*\.[a-z0-9_]+_\(")
_LARGEST = 700  # elements of a value


class Generator:
    def __init__(self, seed: int, style: str | None = None):
        self.r = random.Random(seed)
        self.p = Program()
        self.style = style or self.r.choice([s for s in _STYLES if s != "kernels"])
        self.b, self.t, self.c = self.r.choice([1, 2, 3]), self.r.choice([1, 2, 4, 5]), self.r.choice([4, 6, 8, 16])
        double = [] if self.style == "kernels" else ["float64"] * 2
        self.dtype = self.r.choice(["float32"] * 8 + double + ["bfloat16", "float16"])
        self.module = torch.nn.Module()
        self.env: dict = {**scope(), "s": self.module, "m": self.module}
        self.names: list[str] = []  # of tensors, in the order of making
        self.numbers: list[str] = []
        self.counts = {"p": 0, "b": 0, "k": 0}
        self.writes = 0

    # What makers and slots ask for

    def tensor(self, name: str) -> torch.Tensor:
        return getattr(self.module, name) if name[0] in "pb" else self.env[name]

    @staticmethod
    def dtype_of(t: torch.Tensor) -> str:
        return str(t.dtype).removeprefix("torch.")

    def pick(self, wanted) -> str | None:
        found = [n for n in self.names if wanted(self.tensor(n))]
        if not found:
            return None
        return self.r.choice(found[-4:] if self.r.random() < 0.6 else found)

    def _state(self, kind: str, text: str) -> str:
        name = f"{kind}{self.counts[kind]}"
        self.counts[kind] += 1
        self.p.state.append([name, text])
        exec(state_text(name, text), self.env)
        if kind != "k":
            self.names.append(name)
        return name

    def parameter(self, shape: list[int], like: torch.Tensor | None) -> str:
        dtype = self.dtype if like is None else self.dtype_of(like)
        if dtype not in ("float32", "float64", "bfloat16", "float16"):
            dtype = "float32"
        for name in self.names:
            if name[0] == "p" and list(self.tensor(name).shape) == shape and self.dtype_of(self.tensor(name)) == dtype:
                return name
        return self._state("p", f"nn.Parameter({self._draw(shape, dtype, 'normal')})")

    def buffer(self, text: str) -> str:
        return self._state("b", text)

    def _draw(self, shape: list[int], dtype: str, kind: str | None = None) -> str:
        kind = kind or self.r.choice(["normal"] * 12 + KINDS)
        return f"draw({shape}, {dtype!r}, {kind!r}, {self.r.randrange(1000)})"

    def _shape(self) -> list[int]:
        b, t, c = self.b, self.t, self.c
        return self.r.choice(
            [[b, t, c]] * 4 + [[t, c]] * 3 + [[c], [b, 1, c], [b, t, 1], [c, c], [b, c, 4, 4], [b, c, 4]]
        )

    # Arguments and state

    def _make_state(self) -> None:
        r = self.r
        for _ in range(r.randint(0, 2)):
            self.parameter(self._shape(), None)
        if self.counts["p"] and r.random() < 0.15:
            self._state("p", "s.p0")
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            self.buffer(self._draw(self._shape(), r.choice([self.dtype] * 4 + ["int64", "bool"])))
        if self.counts["b"] and r.random() < 0.3:
            self.buffer("s.b0.clone()")
        if self.counts["b"] and r.random() < 0.1:
            self.buffer(r.choice(["s.b0", "s.b0.view(-1)", "s.b0[..., 1:]", "s.b0[:1]"]))
        if self.counts["p"] and r.random() < 0.04:
            self.buffer("s.p0.detach()")
        if r.random() < 0.25:
            name = self._state("k", repr(r.choice(NUMBERS)))
            self.numbers.append(name)

    def _argument(self, i: int) -> str:
        r = self.r
        tensors = [f"a{j}" for j in range(i) if isinstance(self.env[f"a{j}"], torch.Tensor)]
        roll = r.random()
        if tensors and roll < 0.1:
            return r.choice(tensors)
        if tensors and roll < 0.2:
            how = r.choice(
                [
                    "{}.view_as({})",
                    "{}[:]",
                    "{}.view(-1)",
                    "{}[..., 1:]",
                    "{}[:1]",
                    "{}.transpose(0, -1)",
                    "{}.detach()",
                ]
            )
            return how.replace("{}", r.choice(tensors))
        if roll < 0.26 and self.counts["p"] + self.counts["b"]:
            return "m." + r.choice([n for n, _ in self.p.state if n[0] in "pb"])
        if tensors and roll < 0.5:
            like = self.env[r.choice(tensors)]
            return self._draw(list(like.shape), self.dtype_of(like))
        if i and roll < 0.58:
            return repr(r.choice(NUMBERS))
        if i and roll < 0.68:
            return self._draw(self._shape(), r.choice(["int64", "int64", "int32", "uint8", "int8", "bool"]))
        if roll < 0.74:
            shape = self._shape()
            kind = r.choice(["transposed", "stepped", "expanded", "offset"])
            if kind == "transposed":
                return (
                    self._draw(shape[::-1], self.dtype)
                    + f".permute({', '.join(map(str, range(len(shape) - 1, -1, -1)))})"
                )
            if kind == "stepped":
                return self._draw([*shape[:-1], 2 * shape[-1]], self.dtype) + "[..., ::2]"
            if kind == "expanded":
                return self._draw([1, *shape[1:]], self.dtype) + f".expand({shape})"
            return self._draw([shape[0] + 1, *shape[1:]], self.dtype) + "[1:]"
        return self._draw(self._shape(), r.choice([self.dtype] * 9 + ["float32", "bfloat16"]))

    def _overlapping(self) -> None:
        """Two arguments in one storage, that share elements or lie side by side."""
        n, by = self.t * self.c, self.r.choice([0, 1, self.c, self.t * self.c])
        self._setup("t0", self._draw([2 * n], self.dtype, "normal"))
        for offset in (0, by):
            self._give(f"t0[{offset}:{offset + n}].view({self.t}, {self.c})")

    def _setup(self, name: str, text: str) -> None:
        self.env[name] = eval(text, self.env)
        self.p.setup.append([name, text])

    def _give(self, text: str) -> None:
        i = len(self.p.given)
        self._setup(f"a{i}", text)
        self.p.given.append(f"a{i}")
        self.env[f"x{i}"] = self.env[f"a{i}"]
        (self.names if isinstance(self.env[f"a{i}"], torch.Tensor) else self.numbers).append(f"x{i}")

    # Steps

    def _slot(self, kind: str, done: list):
        first = self.tensor(done[0]) if done and isinstance(done[0], str) else None
        r = self.r
        if kind in "fnicx":
            wanted = {
                "f": lambda t: t.is_floating_point() and t.itemsize > 1,
                "n": lambda t: t.dtype != torch.bool and (not t.is_floating_point() or t.itemsize > 1),
                "i": lambda t: not t.is_floating_point() and t.dtype != torch.bool,
                "c": lambda t: t.dtype == torch.bool,
                "x": lambda t: True,
            }[kind]
            return self.pick(wanted)
        if kind in "#w" and (kind == "#" or r.random() < 0.35):
            return r.choice(self.numbers) if self.numbers and r.random() < 0.3 else r.choice(NUMBERS)
        if kind == "t":
            return r.choice(_POWERS)
        if kind == "%":
            return r.random() < 0.5
        if kind == "s":
            return self.pick(lambda t: t.shape == first.shape and t.dtype == first.dtype)
        if kind in "bwm":
            return self.pick(lambda t: (t.dtype == torch.bool) == (kind == "m") and _broadcasts(t, first))
        dims = first.dim()
        if kind == "d":
            return r.choice([-1, r.randrange(-dims, dims)]) if dims else 0
        if kind == "D":
            return r.choice([[-1], r.sample(range(dims), r.randint(1, dims))]) if dims else []
        if not dims:
            return 0
        return r.randrange(first.shape[done[-1]]) if first.shape[done[-1]] else None  # e

    def _drawn(self, family: str):
        if family == "maker":
            return self.r.choice(MAKERS)(self)
        if family == "state":
            return self._on_state()
        template, kinds = self.r.choice(_TABLES[family])
        done: list = []
        for kind in kinds:
            value = self._slot(kind, done)
            if value is None:
                return None
            done.append(value)
        return template, done

    def _on_state(self):
        """A write to a buffer, or another tensor in a buffer's place."""
        buffers = [n for n in self.names if n[0] == "b"]
        if not buffers:
            return None
        b = self.r.choice(buffers)
        t = self.tensor(b)
        other = self.pick(lambda u: u.dtype == t.dtype and _broadcasts(u, t))
        same = self.pick(lambda u: u.dtype == t.dtype and u.shape == t.shape)
        forms = [
            ("{0}.copy_({1})", [b, other]),
            ("{0}.copy_({1})", [b, same]),
            ("{0}.add_({1})", [b, 1]),
            ("{0}.mul_({1})", [b, self.r.choice(NUMBERS)]),
            ("{0}[:1].copy_({0}[-1:].clone())", [b]),
            ("{0}.zero_()", [b]),
            ("{0}.clone()", [b]),
            (f"setattr(s, {b!r}, {{0}})", [same]),
            (f"setattr(s, {b!r}, {{0}} + {{1}})", [b, other]),
        ]
        form = self.r.choice(forms)
        return None if None in form[1] else form

    def _in_any_order(self, template: str, operands: list) -> bool:
        """Whether it writes to memory that it reads by another view: what eager then gives is nobody's promise."""
        tensors = [self.tensor(o) for o in operands if isinstance(o, str) and o in self.names]
        if len(tensors) < 2 or not _WRITING.search(template):
            return False
        to = tensors[0]

        def lies(t: torch.Tensor) -> tuple:
            return t.untyped_storage()._cdata, t.storage_offset(), t.shape, t.stride()

        return any(lies(t)[0] == lies(to)[0] and lies(t) != lies(to) for t in tensors[1:])

    def _step(self) -> bool:
        weights = _STYLES[self.style]
        family = self.r.choices(list(weights), list(weights.values()))[0]
        made = self._drawn(family)
        if made is None or self._in_any_order(*made):
            return False
        step = [f"v{len(self.p.steps)}", *made]
        try:
            value = eval(expression(step), self.env)
        except (
            RuntimeError,
            TypeError,
            ValueError,
            IndexError,
            NotImplementedError,
            ZeroDivisionError,
            AssertionError,
        ):
            return False
        if isinstance(value, torch.Tensor):
            if value.numel() > _LARGEST or value.numel() == 0 or value.dim() > 5 or value.is_complex():
                return False
            if (
                value.is_floating_point()
                and value.itemsize > 1
                and value.isfinite().double().mean() < 0.5 < self.r.random()
            ):
                return False
            self.names.append(step[0])
        elif value is not None:
            return False
        self.env[step[0]] = value
        self.p.steps.append(step)
        return True

    def _outputs(self) -> None:
        r = self.r
        made = [s[0] for s in self.p.steps if s[0] in self.names]
        used = {o for s in self.p.steps for o in s[2] if isinstance(o, str)}
        loose = [n for n in made if n not in used]
        chosen = [made[-1], *r.sample(loose, min(len(loose), r.randint(0, 4)))]
        # A trace drops what nobody reads, and what is drawn after it is other numbers then.
        chosen += [s[0] for s in self.p.steps if s[0] in self.names and any(w in s[1] for w in _DRAWING)]
        chosen += r.sample(made, min(len(made), r.randint(0, 2)))
        if r.random() < 0.12:
            chosen.append(r.choice(self.names))
        self.p.outputs = list(dict.fromkeys(chosen))
        if r.random() < 0.05:
            self.p.outputs.append(made[-1])
        if len(self.p.outputs) == 1:
            self.p.form = r.choice(["single", "tuple"])
        else:
            self.p.form = r.choice(["tuple", "tuple", *FORMS[1:]])

    def make(self) -> Program | None:
        r = self.r
        with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            self.p.training = r.random() < 0.15
            self.module.train(self.p.training)
            self._make_state()
            if r.random() < 0.12:
                self._overlapping()
            for _ in range(len(self.p.given), max(len(self.p.given), r.randint(1, 4))):
                with contextlib.suppress(RuntimeError):  # a view that the layout does not allow
                    self._give(self._argument(len(self.p.given)))
            if not self.p.given or not any(self.tensor(n).is_floating_point() for n in self.names):
                return None
            wanted = r.randint(9, 24)
            for _ in range(8 * wanted):
                if len(self.p.steps) < wanted:
                    self._step()
            if not any(s[0] in self.names for s in self.p.steps):
                return None
            self._outputs()
        given = {i: self.env[name] for i, name in enumerate(self.p.given)}
        self.p.changes = draw_changes(r, given, {n: self.tensor(n) for n, _ in self.p.state if n[0] in "pb"})
        return self.p


def _broadcasts(t: torch.Tensor, to: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(t.shape, to.shape) == to.shape
    except RuntimeError:
        return False


def generate(seed: int, style: str | None = None, stay: float = _STAY) -> Program:
    """The program of a seed; one that does not run twice alike in eager is drawn again, and of those that are seldom one graph all
    but `stay`."""
    for attempt in range(100):
        generator = Generator(seed * 1009 + attempt, style)
        p = generator.make()
        if p is not None and runs(p) and (generator.r.random() < stay or not seldom_one_graph(p)):
            return p
    raise AssertionError(f"no program of seed {seed} runs in eager")
