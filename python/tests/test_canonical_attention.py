"""Attention in the canonical form: written out, with masks, with repeated heads."""

import math

import pytest
import torch
from graph_tools import check, module, ops
from torch.nn import functional as F

torch.manual_seed(0)


def heads(seed, count=3, batch=2, number=4, length=10, width=8):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, number, length, width, generator=generator) for _ in range(count)]


def causal_buffer(s, q, k, v):
    a = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(q.size(-1)))
    a = a.masked_fill(s.mask[:, :, : q.size(2), : q.size(2)] == 0, float("-inf"))
    return F.softmax(a, dim=-1) @ v


def causal_triu(s, q, k, v):
    mask = torch.triu(torch.full((10, 10), float("-inf")), diagonal=1)
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(2, 3)) / 2.5 + mask, -1), v)


def causal_where(s, q, k, v):
    keep = torch.tril(torch.ones(10, 10, dtype=torch.bool))
    a = (
        torch.where(keep, torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.3, float("-inf"))
        if s.einsum
        else torch.where(keep, (q * 0.3) @ k.mT, float("-inf"))
    )
    return a.softmax(-1) @ v


def causal_arange(s, q, k, v):
    i = torch.arange(10)
    a = (q / math.sqrt(8)) @ k.permute(0, 1, 3, 2)
    return a.masked_fill(i[None, :] > i[:, None], torch.finfo(a.dtype).min).softmax(-1) @ v


def three_dims(s, q, k, v):
    q, k, v = (t.reshape(8, 10, 8) for t in (q, k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.5, -1), v)


ATTENTIONS = {
    "buffer": (causal_buffer, {"mask": torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32)}, True),
    "triu": (causal_triu, {}, True),
    "where": (causal_where, {"einsum": False}, True),
    "arange": (causal_arange, {}, True),
    "additive_buffer": (
        lambda s, q, k, v: torch.softmax(q @ k.mT * 0.2 + s.mask[:10, :10], -1) @ v,
        {"mask": torch.full((16, 16), float("-inf")).triu(1)},
        True,
    ),
    "no_mask": (lambda s, q, k, v: F.dropout(torch.softmax(q @ k.transpose(-1, -2), -1), 0.0) @ v, {}, False),
    "softmax_written": (
        lambda s, q, k, v: (
            (e := torch.exp((a := q @ k.mT * 0.3) - a.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True) @ v
        ),
        {},
        False,
    ),
    "three_dims": (three_dims, {}, False),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_written_out(name):
    forward, state, causal = ATTENTIONS[name]
    _, graph = check(module(forward, **state), *heads(1))
    found = [n for n in graph["nodes"] if n["op"].startswith("aten.scaled_dot_product_attention")]
    assert len(found) == 1 and found[0]["arguments"]["is_causal"] is causal
    assert not set(ops(graph)) & {"softmax", "matmul", "bmm", "exp", "masked_fill", "triu", "tril", "where"}


def test_additive_mask_is_passed_on():
    bias = torch.randn(2, 4, 10, 10)
    _, graph = check(module(lambda s, q, k, v, m: torch.softmax(q @ k.mT * 0.25 + m, -1) @ v), *heads(2), bias)
    call = next(n for n in graph["nodes"] if "attention" in n["op"])
    assert call["arguments"]["attn_mask"] == {"value": "m"} and not call["arguments"]["is_causal"]


def padding(seed=8):
    """True where a key is no padding: two batches of ten, of which at least one key stays."""
    keep = torch.rand(2, 10, generator=torch.Generator().manual_seed(seed)) > 0.4
    keep[:, 0] = True
    return keep[:, None, None, :]


AT = torch.arange(10)  # positions
JOINED = {
    "a bias for each head, then causal": (
        lambda s, a, keep: (a + s.bias).masked_fill(AT[None, :] > AT[:, None], float("-inf")),
        "float",
    ),
    "causal, then a bias": (
        lambda s, a, keep: a.masked_fill(AT[None, :] > AT[:, None], float("-inf")) + s.bias,
        "float",
    ),
    "a bias and a mask, both added": (lambda s, a, keep: a + s.bias + torch.where(keep, 0.0, -1e30), "float"),
    "numbers of two types": (lambda s, a, keep: a + s.bias + s.whole, "float"),
    "a bias, where a key is none": (lambda s, a, keep: torch.where(keep, a + s.bias, float("-inf")), "float"),
    "causal and padding": (
        lambda s, a, keep: a.masked_fill(AT[None, :] > AT[:, None], float("-inf")).masked_fill(~keep, float("-inf")),
        "bool",
    ),
    "two conditions and two biases": (
        lambda s, a, keep: torch.where(keep, s.bias + a, float("-inf")).masked_fill(s.mask, float("-inf")) + s.more,
        "float",
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_several_masks_become_one(name):
    """ALiBi and relative positions beside causal masks and padding: one call, whose mask all of them make."""
    masked, kind = JOINED[name]
    mask = torch.ones(10, 10, dtype=torch.bool).triu(6)
    state = {"bias": torch.randn(4, 10, 10), "more": torch.randn(1, 10), "mask": mask, "whole": torch.arange(10)}
    _, graph = check(
        module(lambda s, q, k, v, keep: masked(s, q @ k.mT * 0.25, keep).softmax(-1) @ v, **state), *heads(2), padding()
    )
    (call,) = (n for n in graph["nodes"] if "attention" in n["op"])
    assert not set(ops(graph)) & {"softmax", "matmul"} and not call["arguments"]["is_causal"]
    values = {v["name"]: v for v in graph["values"]}
    assert values[call["arguments"]["attn_mask"]["value"]]["dtype"].startswith(kind)


LOWEST = torch.finfo(torch.float32).min
FILLED = {
    "by itself": lambda s, a, keep: a.masked_fill(~keep, LOWEST),
    "over a bias": lambda s, a, keep: torch.where(keep, a + s.bias, LOWEST),
    "below a bias": lambda s, a, keep: a.masked_fill(~keep, -1e38) + s.bias,
    "over -inf": lambda s, a, keep: a.masked_fill(AT[None, :] > AT[:, None], float("-inf")).masked_fill(~keep, LOWEST),
}


@pytest.mark.parametrize("name", FILLED)
def test_the_lowest_numbers_are_added(name):
    """Scores vanish beside them. A row that they mask as a whole attends to all its keys alike."""
    keep = padding()
    keep[1] = False
    forward = module(
        lambda s, q, k, v, keep: FILLED[name](s, q @ k.mT, keep).softmax(-1) @ v, bias=torch.randn(4, 10, 10)
    )
    _, graph = check(forward, *heads(2), keep)
    (call,) = (n for n in graph["nodes"] if "attention" in n["op"])
    assert call["arguments"]["attn_mask"] and "softmax" not in ops(graph)


def test_a_row_that_other_numbers_mask_stays_as_it_is():
    """Scores beside -1e9 tell the keys of a row apart that is masked as a whole; eager has filled them all alike."""
    forward = module(
        lambda s, q, k, v, keep: (q @ k.mT + s.bias).masked_fill(~keep, -1e9).softmax(-1) @ v,
        bias=torch.randn(4, 10, 10),
    )
    _, graph = check(forward, *heads(2), padding())
    assert "softmax" in ops(graph)


MASKS = {
    "additive": (lambda n: torch.full((n, n), float("-inf")).triu(1), True, False),
    "boolean": (lambda n: torch.ones(n, n, dtype=torch.bool).tril(), True, False),
    "four dims": (lambda n: torch.ones(n, n, dtype=torch.bool).tril()[None, None], True, False),
    "nothing": (lambda n: torch.zeros(n, n), False, False),
    "boolean additive": (lambda n: torch.ones(n, n).tril(), False, True),
    "window": (lambda n: torch.ones(n, n, dtype=torch.bool).tril().triu(-3), False, True),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_attention_calls_are_named(name):
    make, causal, mask = MASKS[name]
    _, graph = check(module(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=make(10))), *heads(7))
    call = next(n for n in graph["nodes"] if "attention" in n["op"])["arguments"]
    assert (call["is_causal"], call["attn_mask"] is not None) == (causal, mask)


def test_window_mask_is_no_causal_mask():
    i = torch.arange(10)
    window = ((i[None, :] <= i[:, None]) & (i[None, :] > i[:, None] - 4)).float()
    _, graph = check(
        module(lambda s, q, k, v: (q @ k.mT).masked_fill(s.window == 0, float("-inf")).softmax(-1) @ v, window=window),
        *heads(3),
    )
    for n in graph["nodes"]:
        assert not n["arguments"].get("is_causal")


@pytest.mark.parametrize("spelling", ["expand", "repeat_interleave", "sdpa"])
def test_repeated_heads_become_grouped(spelling):
    def repeat(x):
        if spelling == "expand":
            return x[:, :, None].expand(2, 2, 3, 10, 8).reshape(2, 6, 10, 8)
        return x.repeat_interleave(3, dim=1)

    def forward(s, q, k, v):
        k, v = repeat(k), repeat(v)
        if spelling == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.softmax(q @ k.transpose(2, 3) * 0.35, -1) @ v

    q = heads(4, 1, number=6)[0]
    k, v = heads(5, 2, number=2)
    _, graph = check(module(forward), q, k, v)
    assert ops(graph) == ["scaled_dot_product_attention"] and graph["nodes"][0]["arguments"]["enable_gqa"]


def test_attention_weights_that_are_a_result_stay():
    _, graph = check(module(lambda s, q, k, v: (w := torch.softmax(q @ k.mT, -1), w @ v)), *heads(6))
    assert "softmax" in ops(graph)
