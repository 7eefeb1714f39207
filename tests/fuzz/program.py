"""A program of the fuzzer: Python text in small pieces, so that it can be shrunk, stored and printed as a script.

A step is [name, template, operands]: its value is the template with the operands in its braces. An operand that is a string
names a value: `x0` is what forward takes, `p0` a parameter, `b0` a buffer, `k0` a plain number that the module holds, `v0` the
value of a step; everything else is a literal. A statement that makes an argument (`setup`) or a piece of state may name what was
made before it. `draw(shape, dtype, kind, seed)` is `values.fill`, in a later round of calls with other seeds.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import asdict, dataclass, field

import torch
from values import fill

FORMS = ("single", "tuple", "list", "dict", "nested")


@dataclass
class Program:
    setup: list[list] = field(default_factory=list)  # [name, expression]: tensors and numbers, m is the module
    given: list[str] = field(default_factory=list)  # of the setup, what forward takes, as x0, x1, ...
    state: list[list] = field(default_factory=list)  # [name, expression]; s is the module
    steps: list[list] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    form: str = "tuple"
    training: bool = False
    # What is done before the calls after the first: {"kind", "before", "after", "under", "fill"}; see changes.py.
    changes: list[dict] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Program:
        return Program(**json.loads(text))

    def copy(self) -> Program:
        return Program.from_json(self.to_json())


def written(value) -> str:
    """A literal, or what a value's name stands for inside of forward."""
    if isinstance(value, str):
        return f"s.{value}" if value[0] in "pbk" else value
    if isinstance(value, list):
        return "[" + ", ".join(written(v) for v in value) + "]"
    return repr(value)


def expression(step: list) -> str:
    return step[1].format(*[written(o) for o in step[2]])


def names_in(value) -> list[str]:
    """The values that an operand names."""
    if isinstance(value, list):
        return [n for v in value for n in names_in(v)]
    return [value] if isinstance(value, str) else []


def result_text(p: Program) -> str:
    names = [written(o) for o in p.outputs]
    if p.form == "single" and len(names) == 1:
        return names[0]
    if p.form == "dict":
        return "{" + ", ".join(f"'r{i}': {n}" for i, n in enumerate(names)) + "}"
    if p.form == "list":
        return "[" + ", ".join(names) + "]"
    if p.form == "nested" and len(names) > 1:
        return f"({names[0]}, {{'rest': [{', '.join(names[1:])}], 'n': 3}})"
    return "(" + "".join(f"{n}, " for n in names) + ")"


def forward_text(p: Program) -> str:
    given = ", ".join(["s", *(f"x{i}" for i in range(len(p.given)))])
    lines = [f"def forward({given}):"]
    lines += [f"    {step[0]} = {expression(step)}" for step in p.steps]
    return "\n".join([*lines, f"    return {result_text(p)}", ""])


def module_text(p: Program, name: str = "M") -> str:
    lines = [f"class {name}(nn.Module):", "    def __init__(s):", "        super().__init__()"]
    lines += [f"        {state_text(*row)}" for row in p.state]
    lines += ["", *("    " + line if line else "" for line in forward_text(p).splitlines()), ""]
    return "\n".join(lines)


def state_text(name: str, text: str) -> str:
    if name[0] == "b":
        return f"s.register_buffer({name!r}, {text})"
    return f"s.{name} = {text}"


def arguments_text(p: Program) -> str:
    """`def arguments(m, draw)`: what forward is called with."""
    lines = ["def arguments(m, draw):", *(f"    {name} = {text}" for name, text in p.setup)]
    return "\n".join([*lines, f"    return [{', '.join(p.given)}]", ""])


def scope(draw=fill) -> dict:
    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "inf": float("inf"),
        "nan": float("nan"),
        "draw": draw,
    }


@functools.lru_cache(maxsize=4096)
def compiled(text: str):
    return compile(text, "<program>", "exec")


def run_text(text: str, within: dict) -> dict:
    exec(compiled(text), within)
    return within


def make_module(p: Program) -> torch.nn.Module:
    """Two calls make twins: equal modules that share nothing."""
    return run_text(module_text(p), scope())["M"]().train(p.training)


def draw_double(shape, dtype, kind="normal", seed=0):
    """What `fill` draws, held in float64; float8 stays what it is, because its rounding is part of what a program means."""
    made = fill(shape, dtype, kind, seed)
    return made.double() if made.is_floating_point() and made.itemsize > 1 else made


def make_double(p: Program) -> torch.nn.Module:
    """The meaning: the same text in float64, where no conversion between floating types rounds."""
    text = re.sub(r"torch\.(float32|float16|bfloat16)\b", "torch.float64", module_text(p))
    return run_text(text, scope(draw_double))["M"]().train(p.training)
