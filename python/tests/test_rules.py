"""What a pattern's body says is what its nodes compute, for every form that rules take."""

from __future__ import annotations

import pytest
import torch
from bodies import ROOT, check, meaning_of, tool
from torch import nn
from torch.nn import functional as F

pytestmark = pytest.mark.skipif(tool() is None, reason="rules_tool is not built")

RULES = sorted(p.stem for p in (ROOT / "src" / "rules").glob("*.cpp") if not p.stem.endswith("_test"))


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_says_what_its_body_means(rule):
    assert callable(meaning_of(rule))


# --- modules --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, c=32, heads=4):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


def test_block():
    rules = check(Block(), torch.randn(2, 6, 32))
    assert len(rules["attention"]) == 1
    assert any(len(p["outputs"]) == 2 for p in rules["row_norm"])
    assert not rules["_"]["uncovered"]


class Masked(nn.Module):
    def __init__(self, forward, window):
        super().__init__()
        self.call = forward
        self.register_buffer("window", window)

    def forward(self, q, k, v):
        return self.call(self, q, k, v)


def sdpa(mask):
    return lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask(s))


INSIDE = torch.ones(10, 10, dtype=torch.bool).tril().triu(-3)
BANDS = {
    "attended": (sdpa(lambda s: torch.ones(10, 10, dtype=torch.bool).tril().triu(-3)), INSIDE),
    "held": (sdpa(lambda s: s.window), INSIDE),
    "expanded": (sdpa(lambda s: s.window[None, None].expand(2, 1, 10, 10)), INSIDE),
    "positions": (sdpa(lambda s: ((d := torch.arange(10)[:, None] - torch.arange(10)) >= 0) & (d < 4)), INSIDE),
    "added": (sdpa(lambda s: s.window), torch.zeros(10, 10).masked_fill(~INSIDE, float("-inf"))),
    "filled": (lambda s, q, k, v: (q @ k.mT * 0.25).masked_fill(s.window, float("-inf")).softmax(-1) @ v, ~INSIDE),
}


@pytest.mark.parametrize("name", BANDS)
def test_masks_that_are_bands(name):
    forward, window = BANDS[name]
    q, k, v = (torch.randn(2, 4, 10, 8) for _ in range(3))
    (pattern,) = check(Masked(forward, window), q, k, v)["attention"]
    assert pattern["body"]["band"] == {"lower": -3, "upper": 0}


class Capped(nn.Module):
    """As Gemma 2: repeated heads, capped scores, a mask that is added, a softmax in fp32."""

    def __init__(self, window=4):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(32, 32), nn.Linear(32, 16), nn.Linear(32, 16)
        self.window = window

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, -1, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        k, v = (a[:, :, None].expand(b, 2, 2, t, 8).reshape(b, 4, t, 8) for a in (k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) * 0.3
        scores = torch.tanh(scores / 5.0) * 5.0
        i = torch.arange(t)
        seen = (i[None] <= i[:, None]) & (i[None] > i[:, None] - self.window)
        scores = scores + torch.zeros(1, 1, t, t).masked_fill(~seen, torch.finfo(x.dtype).min)
        weights = scores.softmax(-1, dtype=torch.float32).to(x.dtype)
        return torch.matmul(weights, v).transpose(1, 2).reshape(b, t, 32)


@pytest.mark.parametrize(("window", "band"), [(4, {"lower": -3, "upper": 0}), (100, None)])
def test_capped_scores(window, band):
    (pattern,) = check(Capped(window), torch.randn(2, 10, 32))["attention"]
    body = pattern["body"]
    assert body["softcap"] == pytest.approx(5) and body["scale"] == pytest.approx(0.3)
    assert (body["heads"], body["kv_heads"], body["band"], body["causal"]) == (4, 2, band, band is None)


def test_what_is_outside_a_band_is_none():
    q, k, v = (torch.randn(2, 4, 10, 8) for _ in range(3))
    (pattern,) = check(Masked(BANDS["held"][0], ~INSIDE), q, k, v)["attention"]
    assert pattern["body"]["band"] is None and pattern["body"]["mask"] is not None


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Rotary(nn.Module):
    """Queries of 4 heads and keys of 2; values unless `values`, which are the keys then."""

    def __init__(self, bias=True, values=True):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(32, 32, bias), nn.Linear(32, 16, bias), nn.Linear(32, 16, bias)
        self.register_buffer("cos", torch.randn(6, 8))
        self.register_buffer("sin", torch.randn(6, 8))
        self.values = values

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (p(x).view(b, t, -1, 8).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        y = F.scaled_dot_product_attention(q, k, v if self.values else k, enable_gqa=True)
        return y.transpose(1, 2).reshape(b, t, -1)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_rotary_is_part_of_the_product_and_heads_are_shared(bias, values, batch):
    rules = check(Rotary(bias, values), torch.randn(batch, 6, 32))
    (rotation,) = (p for p in rules["pointwise"] if "neg" in p["summary"])
    assert len(rotation["computing"]) == (6 if values else 5)
    # One loop over the heads that queries, keys and values have in common writes all columns.
    assert [len(g["outputs"]) for g in rotation["body"]["groups"]] == ([8] if values else [2])
    (product,) = (p for p in rules["gemm"] if "parts" in p["body"])
    turned, *rest = product["body"]["parts"]
    assert (turned["first"], turned["columns"], turned["period"]) == (0, 48, 8)
    assert [(p["first"], p["columns"], p["period"]) for p in rest] == ([(48, 16, 0)] if values else [])
    assert len(turned["operands"]) == (6 if bias else 4)
    # The tables start anew with every sequence.
    assert turned["operands"][-1]["shape"] == ([2, 6, 6, 4] if batch == 2 else [6, 6, 4])
    assert set(product["computing"]) > set(rotation["computing"])
    assert rules["attention"][0]["body"]["kv_heads"] == 2


def test_an_interleaved_rotation_stays_apart_from_the_product():
    def forward(x, w, c, s):
        y = F.linear(x, w).view(6, 4, 8)
        even, odd = y[..., ::2], y[..., 1::2]
        return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2).flatten(1)

    rules = check(Fn(forward), t(6, 16), t(32, 16), t(6, 1, 4), t(6, 1, 4))
    assert rules["gemm"] and not any("parts" in p["body"] for p in rules["gemm"])


class Gated(nn.Module):
    def __init__(self, act=F.silu, flip=False, bias=False):
        super().__init__()
        self.g, self.u, self.d = nn.Linear(16, 24, bias), nn.Linear(16, 24, bias), nn.Linear(24, 16, bias)
        self.act, self.flip = act, flip

    def forward(self, x):
        g, u = self.act(self.g(x)), self.u(x)
        return x + self.d(u * g if self.flip else g * u)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("act", [F.silu, F.gelu, torch.sigmoid, F.relu])
def test_gated_mlp(act, flip, bias):
    assert len(check(Gated(act, flip, bias), torch.randn(2, 3, 16))["gated_mlp"]) >= 1


class Fn(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *x):
        return self.f(*x)


def t(*shape):
    return torch.randn(*shape)


CASES = {
    "mm": (lambda a, b: a @ b, [t(5, 7), t(7, 6)], "gemm"),
    "mm transposed": (lambda a, b: a.t() @ b.t(), [t(7, 5), t(6, 7)], "gemm"),
    "bmm": (lambda a, b: torch.bmm(a, b.transpose(1, 2)), [t(3, 5, 7), t(3, 6, 7)], "gemm"),
    "matmul 4d": (lambda a, b: a @ b, [t(2, 3, 5, 7), t(2, 3, 7, 6)], "gemm"),
    "matmul broadcast": (lambda a, b: a @ b, [t(2, 3, 5, 7), t(7, 6)], "gemm"),
    "matmul broadcast batch": (lambda a, b: a @ b, [t(3, 5, 7), t(1, 7, 6)], "gemm"),
    "matmul left shared": (lambda a, b: a @ b, [t(5, 7), t(3, 7, 6)], "gemm"),
    "mv": (lambda a, b: a @ b, [t(5, 7), t(7)], "gemm"),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, alpha=0.5, beta=2), [t(6), t(5, 7), t(7, 6)], "gemm"),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b), [t(3, 1, 6), t(3, 5, 7), t(3, 7, 6)], "gemm"),
    "row and column operands": (
        lambda a, b, r, c: torch.relu((a @ b) * c + r),
        [t(5, 7), t(7, 6), t(6), t(5, 1)],
        "gemm",
    ),
    "two results": (lambda a, b, c: ((y := a @ b), torch.tanh(y) + c), [t(5, 7), t(7, 6), t(5, 6)], "gemm"),
    "product in 3d": (lambda a, w, r: F.gelu(F.linear(a, w)) + r, [t(2, 5, 7), t(6, 7), t(2, 5, 6)], "gemm"),
    "reshape on the way": (
        lambda a, w, r: F.linear(a, w).view(2, 5, 2, 3) * r,
        [t(2, 5, 7), t(6, 7), t(2, 5, 2, 3)],
        "gemm",
    ),
    "transposed batch result": (
        lambda a, b: (a @ b).transpose(1, 2).contiguous() + 1,
        [t(4, 5, 7), t(4, 7, 6)],
        "gemm",
    ),
    "layer norm": (lambda x, r, w: F.layer_norm(x + r, (8,), w) * 2, [t(3, 5, 8), t(3, 5, 8), t(8)], "row_norm"),
    "layer norm over two dims": (lambda x: F.layer_norm(x, (5, 8)), [t(3, 5, 8)], "row_norm"),
    "norm scaled and shifted by image": (
        lambda x, g, y, s, b: F.layer_norm(x + g * y, (8,)) * (1 + s) + b,
        [t(3, 5, 8), t(3, 1, 8), t(3, 5, 8), t(3, 1, 8), t(3, 1, 8)],
        "row_norm",
    ),
    "norm and sum": (lambda x, r: ((s := x + r), F.rms_norm(s, (8,), eps=1e-5) + s), [t(3, 8), t(3, 8)], "row_norm"),
    "norm of a broadcast sum": (lambda x, p: F.layer_norm(x + p, (8,)), [t(3, 5, 8), t(5, 8)], "row_norm"),
    "rms norm over channels": (
        lambda x: x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5),
        [t(3, 5, 8, 4)],
        "row_norm",
    ),
    "softmax inner dim": (lambda x: torch.softmax(x * 2, 1), [t(3, 5, 8)], "row_norm"),
    "log softmax": (lambda x: F.log_softmax(x, -1), [t(3, 5, 8)], "row_norm"),
    "softmax with mask": (
        lambda x, m: torch.softmax(x.masked_fill(m, -1e4), -1),
        [t(3, 5, 8), t(5, 8) > 0],
        "row_norm",
    ),
    "pointwise broadcasts": (lambda x, a, b: torch.sigmoid(x * a + b), [t(3, 5, 8), t(5, 1), t(8)], "pointwise"),
    "pointwise results": (lambda x: ((y := x * 2), torch.exp(y)), [t(3, 5)], "pointwise"),
    "cat": (lambda a, b: torch.cat((a * 2, b), 1) + 1, [t(3, 4), t(3, 5)], "pointwise"),
    "cat of slices": (lambda a: torch.cat((a[:, 3:], a[:, :3]), 1), [t(300, 160)], "pointwise"),
    "stack": (lambda a, b: torch.stack((a, -b), -1).flatten(-2) * 2, [t(3, 4), t(3, 4)], "pointwise"),
    "interleaved rotary": (
        lambda x, c: torch.stack((x[..., ::2] * c, x[..., 1::2] * c), -1).flatten(-2),
        [t(2, 3, 8), t(3, 4)],
        "pointwise",
    ),
    "transposed": (lambda a, b: torch.tanh(a.t()) + b, [t(5, 4), t(4, 5)], "pointwise"),
    "sum of all": (lambda a, b: (a * b).sum(), [t(3, 5), t(3, 5)], "pointwise"),
    "mean of last dims": (lambda a: torch.relu(a).mean((1, 2)), [t(3, 5, 4)], "pointwise"),
    "max of first dim": (lambda a: a.square().amax(0), [t(3, 5, 4)], "pointwise"),
    "sum of a middle dim": (lambda a: (a + 1).sum(1, keepdim=True), [t(3, 5, 4)], "pointwise"),
    "a row's norm": (lambda a: (a.square().sum(-1, keepdim=True) + 1e-5).rsqrt(), [t(3, 5, 4)], "pointwise"),
    "a column's scale": (lambda a: a.abs().amax(0).clamp(min=1e-3) / 127, [t(3, 5, 4)], "pointwise"),
    "loss": (lambda a, b: (a - b).pow(2).mean(), [t(3, 5), t(3, 5)], "pointwise"),
    "attention mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        [t(2, 3, 5, 8), t(2, 3, 7, 8), t(2, 3, 7, 4), t(5, 7)],
        "attention",
    ),
    "attention bool mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=0.3),
        [t(2, 3, 5, 8), t(2, 3, 7, 8), t(2, 3, 7, 8), t(2, 1, 5, 7) > -9],
        "attention",
    ),
    "attention 3d": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        [t(2, 5, 8), t(2, 7, 8), t(2, 7, 8)],
        "attention",
    ),
    "one key head": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k.expand(2, 3, 7, 8), v.expand(2, 3, 7, 8)),
        [t(2, 3, 5, 8), t(2, 1, 7, 8), t(2, 1, 7, 8)],
        "attention",
    ),
    "repeated key heads": (
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k.repeat_interleave(2, 1), v[:, :, None].expand(2, 2, 2, 7, 8).reshape(2, 4, 7, 8)
        ),
        [t(2, 4, 5, 8), t(2, 2, 7, 8), t(2, 2, 7, 8)],
        "attention",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_body_means_what_its_nodes_compute(name):
    f, args, rule = CASES[name]
    assert check(Fn(f), *args).get(rule), f"no {rule} pattern"


def test_gate_and_value_in_one_projection():
    def swiglu(x, w, d):
        value, gate = F.linear(x, w).chunk(2, -1)
        return F.linear(value * F.silu(gate), d)

    assert check(Fn(swiglu), t(2, 3, 16), t(48, 16), t(16, 24))["gated_mlp"]
