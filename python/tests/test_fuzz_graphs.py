"""Small random modules: the graph, and its canonical form, mean what the module means in float64, and every pattern that is
discovered means what its nodes compute.

TESSERA_FUZZ_COUNT (200) modules from TESSERA_FUZZ_SEED (0) on; a failure names its seed and prints the program. One module:
TESSERA_FUZZ_SEED=17 TESSERA_FUZZ_COUNT=1.
"""

from __future__ import annotations

import json
import os
import random

import graph_tools
import pytest
import torch
from bodies import check, tool
from torch import nn
from torch.nn import functional as F

FIRST, COUNT = int(os.environ.get("TESSERA_FUZZ_SEED", "0")), int(os.environ.get("TESSERA_FUZZ_COUNT", "200"))
BATCH = 10  # modules traced together

UNARY = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_written": lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x.pow(3)))),
    "silu_written": lambda x: x / (1 + torch.exp(-x)),
    "softplus": F.softplus,
    "abs": torch.abs,
    "neg": torch.neg,
    "square": torch.square,
    "exp": lambda x: torch.exp(x.clamp(max=2)),
    "sqrt": lambda x: torch.sqrt(x.abs() + 0.5),
    "leaky": lambda x: F.leaky_relu(x, 0.1),
    "clamp": lambda x: x.clamp(-0.7, 1.2),
    "times": lambda x: x * 0.3,
    "over": lambda x: x / 1.7,
    "minus": lambda x: 2 - x,
    "noops": lambda x: (x.to(x.dtype) * 1 + 0).detach().contiguous(),
    "dropout": lambda x: F.dropout(x, 0.4, training=False),
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "multiply": torch.multiply,
    "max": torch.maximum,
    "div": lambda a, b: a / (b.abs() + 1),
    "scaled": lambda a, b: torch.add(a, b, alpha=0.25),
    "where": lambda a, b: torch.where(a > b, a, b * 0.5),
    "fill": lambda a, b: a.masked_fill((b > 0) & (b < 1), 0.25),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
}
ROWS = {
    "softmax": lambda x, d: torch.softmax(x, d),
    "softmax_written": lambda x, d: (e := torch.exp(x - x.amax(d, keepdim=True))) / e.sum(d, keepdim=True),
    "log_softmax": lambda x, d: F.log_softmax(x, d),
    "rms": lambda x, d: x * torch.rsqrt(x.pow(2).mean(d, keepdim=True) + 1e-5),
    "layer": lambda x, d: (x - x.mean(d, keepdim=True)) / torch.sqrt(x.var(d, keepdim=True, unbiased=False) + 1e-5),
    "centered": lambda x, d: x - x.mean(d, keepdim=True),
    "share": lambda x, d: x.abs() / (x.abs().sum(d, keepdim=True) + 1),
    "highest": lambda x, d: x / (x.abs().max(d, keepdim=True).values + 1),
}


class Program(nn.Module):
    """A random straight-line program on [B, T, C] values; `steps` is its text."""

    def __init__(self, seed: int):
        super().__init__()
        r = random.Random(seed)
        torch.manual_seed(seed)
        self.b, self.t, self.c = r.choice([1, 2, 3]), r.choice([1, 4, 6]), r.choice([8, 12, 16])
        self.steps: list[tuple] = []
        self.weights = nn.ParameterList()
        self.register_buffer("mask", torch.ones(32, 32).tril())
        count = 1
        for _ in range(r.randint(3, 9)):
            make = r.choice(
                ["unary", "unary", "binary", "binary", "row", "linear", "view", "attention", "weight", "join"]
            )
            self.steps.append(getattr(self, f"_{make}")(r, count))
            count += 1
        self.results = sorted({count - 1, *r.sample(range(count), r.randint(0, min(2, count - 1)))})

    def _parameter(self, *shape) -> int:
        self.weights.append(nn.Parameter(torch.randn(*shape) * 0.4))
        return len(self.weights) - 1

    def _unary(self, r, n):
        return ("unary", r.choice(list(UNARY)), r.randrange(n))

    def _binary(self, r, n):
        return ("binary", r.choice(list(BINARY)), r.randrange(n), r.randrange(n))

    def _row(self, r, n):
        return ("row", r.choice(list(ROWS)), r.randrange(n), r.choice([-1, -1, 1, 2, 0]))

    def _linear(self, r, n):
        bias = self._parameter(self.c) if r.random() < 0.5 else None
        return (
            "linear",
            r.choice(["linear", "matmul", "einsum", "scaled"]),
            r.randrange(n),
            self._parameter(self.c, self.c),
            bias,
        )

    def _view(self, r, n):
        return (
            "view",
            r.choice(["halves", "flip_halves", "through_transpose", "regroup", "strided", "rows"]),
            r.randrange(n),
        )

    def _attention(self, r, n):
        kind = r.choice(["sdpa", "written", "where", "additive", "grouped"])
        return ("attention", kind, *(r.randrange(n) for _ in range(3)), r.random() < 0.5)

    def _weight(self, r, n):
        return ("weight", r.choice(["row", "column", "computed", "table"]), r.randrange(n), self._parameter(self.c))

    def _join(self, r, n):
        return ("join", r.choice(["cat", "stack"]), r.randrange(n), r.randrange(n))

    def forward(self, x):
        values = [x]
        for kind, *rest in self.steps:
            values.append(getattr(self, f"do_{kind}")(values, *rest))
        return tuple(values[i] for i in self.results)

    def do_unary(self, v, name, i):
        return UNARY[name](v[i])

    def do_binary(self, v, name, i, j):
        return BINARY[name](v[i], v[j])

    def do_row(self, v, name, i, dim):
        return ROWS[name](v[i], dim)

    def do_linear(self, v, name, i, w, bias):
        x, w, b = v[i], self.weights[w], None if bias is None else self.weights[bias]
        if name == "linear":
            return F.linear(x, w, b)
        if name == "scaled":
            return F.linear(x * 0.25, w * 0.5, b)
        y = x @ w if name == "matmul" else torch.einsum("btc,dc->btd", x, w)
        return y if b is None else y + b

    def do_view(self, v, name, i):
        x, half = v[i], self.c // 2
        if name == "halves":
            return torch.cat((x[..., half:], x[..., :half]), -1)
        if name == "flip_halves":
            first, second = x.chunk(2, -1)
            return x * 0.8 + torch.cat((-second, first), -1) * 0.6
        if name == "through_transpose":
            return (x.transpose(0, 1).contiguous() * 1.5).transpose(0, 1)
        if name == "regroup":
            return (x.reshape(self.b * self.t, 4, -1).transpose(0, 1) + 1).transpose(0, 1).reshape(x.shape)
        if name == "strided":
            return torch.stack((x[..., ::2], -x[..., 1::2]), -1).flatten(-2)
        return x + x[:, :1].expand(self.b, self.t, self.c)

    def do_attention(self, v, name, i, j, k, causal):
        length = self.t
        q, k, w = (
            v[n].view(self.b, length, 4, -1).transpose(1, 2)
            if v[n].is_contiguous()
            else v[n].reshape(self.b, length, 4, -1).transpose(1, 2)
            for n in (i, j, k)
        )
        if name == "sdpa":
            y = F.scaled_dot_product_attention(q, k, w, is_causal=causal)
        elif name == "grouped":
            k, w = (t[:, ::2, None].expand(self.b, 2, 2, length, self.c // 4).reshape(q.shape) for t in (k, w))
            y = F.scaled_dot_product_attention(q, k, w, is_causal=causal)
        else:
            a = q @ k.transpose(-2, -1) * 0.4
            if causal and name == "written":
                a = a.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
            if causal and name == "where":
                a = torch.where(torch.ones(length, length, dtype=torch.bool).tril(), a, float("-inf"))
            if causal and name == "additive":
                a = a + torch.full((length, length), float("-inf")).triu(1)
            y = a.softmax(-1) @ w
        return y.transpose(1, 2).reshape(self.b, length, self.c)

    def do_weight(self, v, name, i, w):
        x, w = v[i], self.weights[w]
        if name == "row":
            return x * w
        if name == "column":
            return x + w[: self.t, None] if self.t <= self.c else x
        if name == "computed":
            return x * (1 + w.square()) - torch.arange(self.c).to(x.dtype) * 0.01
        return x + torch.outer(torch.ones(self.t), w).sin()

    def do_join(self, v, name, i, j):
        half = self.c // 2
        if name == "cat":
            return torch.cat((v[i][..., :half], v[j][..., half:]), -1) * 2
        return torch.stack((v[i], v[j]), 1)[:, 1]


class Several(nn.Module):
    """Programs side by side, so that the cost of an export is shared."""

    def __init__(self, seeds):
        super().__init__()
        self.programs = nn.ModuleList(Program(seed) for seed in seeds)

    def forward(self, *inputs):
        return tuple(program(x) for program, x in zip(self.programs, inputs, strict=True))


def run(seeds) -> None:
    module = Several(seeds).eval()
    inputs = [torch.randn(p.b, p.t, p.c) for p in module.programs]
    traced, _ = graph_tools.check(module, *inputs)
    if tool() is not None:
        check(module, *inputs, traced=traced)


def explain(seed: int) -> None:
    """Fails with the program's text when it fails by itself."""
    try:
        run([seed])
    except Exception as e:
        p = Program(seed)
        text = json.dumps([p.b, p.t, p.c, p.steps, p.results])
        raise AssertionError(f"seed {seed}: {text}\n{type(e).__name__}: {e}") from e


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_random_programs(first):
    seeds = range(first, min(first + BATCH, FIRST + COUNT))
    try:
        run(seeds)
    except Exception:
        for seed in seeds:
            explain(seed)
        raise
