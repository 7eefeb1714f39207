"""What changes between the call that is traced and a later one. A change is text, as all of a program:

  kind    its name in reports
  before  done to the module m before the arguments are made; undone after the call where it replaces what the module holds
  after   done to the list `args`
  under   a context for the call
  fill    what all tensors of the call are filled with

Some make eager raise (another shape, another type): then the composed module has to raise as well.
"""

from __future__ import annotations

import random

import torch
from values import KINDS

_OTHER_NUMBERS = {
    "kind": "(float if isinstance({0}, int) else int)({0})",
    "sign": "-0.0 if {0} == 0 else -{0}",
    "bool": "True",
    "nan": "nan",
    "value": "{0} + 1",
}
_LAYOUTS = {
    "transposed": "{0}.transpose(0, -1).contiguous().transpose(0, -1)",
    "stepped": "torch.stack([{0}, {0}], -1)[..., 0]",
    "expanded": "{0}[:1].expand_as({0})",
    "unaligned": "torch.cat([{0}.reshape(-1)[:1], {0}.reshape(-1)])[1:].view({0}.shape)",
}
_CONTEXTS = {
    "grad": "torch.enable_grad()",
    "inference": "torch.inference_mode()",
    "autocast": "torch.autocast('cpu', torch.bfloat16)",
    "default_dtype": "default_dtype(torch.float64)",
    "deterministic": "deterministic()",
}


class _Drawer:
    def __init__(self, r: random.Random, given: dict, state: dict):
        self.r, self.state = r, state
        self.tensors = {i: t for i, t in given.items() if isinstance(t, torch.Tensor)}
        self.numbers = [i for i, t in given.items() if isinstance(t, (int, float))]

    def of(self, letter: str) -> str | None:
        names = [n for n in self.state if n[0] == letter]
        return self.r.choice(names) if names else None

    def argument(self, least_dims: int = 0) -> int | None:
        found = [i for i, t in self.tensors.items() if t.dim() >= least_dims]
        return self.r.choice(found) if found else None

    def pair(self, names: dict) -> tuple | None:
        """Two of one shape and type."""
        pairs = [
            (a, b)
            for a, t in names.items()
            for b, u in names.items()
            if a != b and t.shape == u.shape and t.dtype == u.dtype
        ]
        return self.r.choice(pairs) if pairs else None

    # One method a kind of change; None where the program has nothing of that kind

    def values(self) -> dict:
        fill = self.r.choice(KINDS)
        return {"kind": f"values {fill}", "fill": fill}

    def alike(self) -> dict | None:
        if not (pair := self.pair(self.tensors)):
            return None
        i, j = pair
        how = self.r.choice(["args[{i}]", "args[{i}][:]", "args[{i}].detach()"])
        return {"kind": "arguments alike", "after": f"args[{j}] = {how.format(i=i)}"}

    def apart(self) -> dict | None:
        if (i := self.argument()) is None:
            return None
        return {"kind": "argument apart", "after": f"args[{i}] = args[{i}].clone()"}

    def overlap(self) -> dict | None:
        if not (pair := self.pair(self.tensors)):
            return None
        i, j = pair
        lines = [
            f"base, n = torch.cat([args[{i}].reshape(-1), args[{j}].reshape(-1)]), args[{i}].numel()",
            f"args[{i}], args[{j}] = base[:n].view(args[{i}].shape), base[1:n + 1].view(args[{j}].shape)",
        ]
        return {"kind": "arguments overlap", "after": "\n".join(lines)}

    def state_given(self) -> dict | None:
        pairs = [
            (i, n)
            for i, t in self.tensors.items()
            for n, u in self.state.items()
            if t.shape == u.shape and t.dtype == u.dtype
        ]
        if not pairs:
            return None
        i, n = self.r.choice(pairs)
        return {"kind": "state as argument", "after": f"args[{i}] = m.{n}" + self.r.choice(["", ".detach()"])}

    def layout(self) -> dict | None:
        if (i := self.argument(1)) is None:
            return None
        name = self.r.choice(list(_LAYOUTS))
        return {"kind": f"argument {name}", "after": f"args[{i}] = {_LAYOUTS[name].format(f'args[{i}]')}"}

    def type_of_argument(self) -> dict | None:
        if (i := self.argument()) is None:
            return None
        now = self.tensors[i].dtype
        new = self.r.choice([d for d in ("float32", "float64", "bfloat16", "int64") if getattr(torch, d) != now])
        if self.r.random() < 0.3:
            how = self.r.choice(
                ["nn.Parameter({0}, requires_grad=False)", "{0}.as_subclass(type('Sub', (torch.Tensor,), {{}}))"]
            )
            return {"kind": "argument class", "after": f"args[{i}] = " + how.format(f"args[{i}]")}
        return {"kind": "argument dtype", "after": f"args[{i}] = args[{i}].to(torch.{new})"}

    def shape(self) -> dict | None:
        if (i := self.argument(1)) is None:
            return None
        how = self.r.choice(["{0}[:1]", "torch.cat([{0}, {0}])", "{0}[None]", "{0}[0]", "torch.cat([{0}, {0}], -1)"])
        return {"kind": "argument shape", "after": f"args[{i}] = " + how.format(f"args[{i}]")}

    def number(self) -> dict | None:
        how = self.r.choice(list(_OTHER_NUMBERS))
        if self.numbers and self.r.random() < 0.6:
            at = f"args[{self.r.choice(self.numbers)}]"
            return {"kind": f"number {how}", "after": f"{at} = {_OTHER_NUMBERS[how].format(at)}"}
        if k := self.of("k"):
            return {"kind": f"held number {how}", "before": f"m.{k} = {_OTHER_NUMBERS[how].format(f'm.{k}')}"}
        return None

    def parameter(self) -> dict | None:
        if (p := self.of("p")) is None:
            return None
        kinds = {
            "replaced": f"m.{p} = nn.Parameter(m.{p} * 2 + 1)",
            "data": f"m.{p}.data = m.{p}.data * 0.5",
            "in place": f"m.{p}.mul_(0.5)",
            "untied": f"m.{p} = nn.Parameter(m.{p} * 1.5)",
            "layout": f"m.{p} = nn.Parameter(m.{p}.detach().transpose(0, -1).contiguous().transpose(0, -1))",
            "dtype": f"m.{p} = nn.Parameter(m.{p}.double())",
            "frozen": f"m.{p}.requires_grad_(False)",
            "zero": f"m.{p}.zero_()",
        }
        if pair := self.pair({n: t for n, t in self.state.items() if n[0] == "p"}):
            kinds["tied"] = f"m.{pair[0]} = m.{pair[1]}"
            kinds["one memory"] = f"m.{pair[0]}.data = m.{pair[1]}.data"
        name = self.r.choice(list(kinds))
        return {"kind": f"parameter {name}", "before": kinds[name]}

    def buffer(self) -> dict | None:
        if (b := self.of("b")) is None:
            return None
        kinds = {
            "replaced": f"m.{b} = m.{b}.clone()",
            "in place": f"m.{b}.copy_(m.{b}.flip(0) if m.{b}.dim() else m.{b})",
            "layout": f"m.{b} = m.{b}.transpose(0, -1).contiguous().transpose(0, -1)",
        }
        if pair := self.pair({n: t for n, t in self.state.items() if n[0] == "b"}):
            kinds["one"] = f"m.{pair[0]} = m.{pair[1]}"
            kinds["one memory"] = f"m.{pair[0]} = m.{pair[1]}[:]"
        name = self.r.choice(list(kinds))
        return {"kind": f"buffer {name}", "before": kinds[name]}

    def mode(self) -> dict:
        if self.r.random() < 0.25:
            return {"kind": "training", "before": "m.train(not m.training)"}
        name = self.r.choice(list(_CONTEXTS))
        return {"kind": f"under {name}", "under": _CONTEXTS[name]}

    def structure(self) -> dict:
        if self.r.random() < 0.5:
            return {"kind": "hook", "before": "m.register_forward_hook(lambda module, args, out: (out, 1))"}
        return {"kind": "forward replaced", "before": "m.forward = lambda *a: [a[0]]"}


_WEIGHTS = dict(
    values=5, alike=3, apart=1, overlap=2, state_given=2, layout=2, type_of_argument=1, shape=0.6, number=2, parameter=3, buffer=2,
    mode=1, structure=0.2,
)  # fmt: skip


def draw_changes(r: random.Random, given: dict, state: dict, count: int = 3) -> list[dict]:
    """`given`: what forward takes by its place, `state`: parameters and buffers by name, as live tensors."""
    drawer, made = _Drawer(r, given, state), []
    while len(made) < count:
        change = getattr(drawer, r.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0])()
        if change is not None:
            made.append(change)
    return made
