"""Ops that know fewer types than their meaning needs, or need more memory for it than they must: written out in ops that do."""

from __future__ import annotations

import math

import torch

from tessera.common.errors import fail


def _scaled_product(a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """aten._scaled_mm in a wider type: a (m, k), b (k, n), scales of one element, of the rows of a, of the columns of b."""
    if scale_result is not None:
        raise fail("TS0222", "graph.no_meaning", "a scale of the result of aten._scaled_mm has no meaning here")
    y = (a @ b) * scale_a * scale_b
    return y if bias is None else y + bias


def _grouped_product(a, b, offs=None, bias=None, out_dtype=None):
    """aten._grouped_mm in a wider type, as mixtures of experts call it: products of which each has the rows of `a` up to its
    offset (a of 2 dims, b of 3), the columns of `b` (3 and 2), or the part of the summed extent (2 and 2). Rows and columns
    behind the last offset are zero."""
    if offs is None:
        y = a @ b
    else:
        ends = offs.tolist()
        parts = [slice(i, j) for i, j in zip([0, *ends], ends, strict=False)]
        if a.dim() == 2 and b.dim() == 2:
            y = torch.stack([a[:, part] @ b[part] for part in parts])
        elif a.dim() == 2:
            y = a.new_zeros(a.shape[0], b.shape[2])
            for group, part in enumerate(parts):
                y[part] = a[part] @ b[group]
        else:
            y = a.new_zeros(a.shape[1], b.shape[1])
            for group, part in enumerate(parts):
                y[:, part] = a[group] @ b[:, part]
    return y if bias is None else y + bias


def _attention_in_pieces(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    """aten.scaled_dot_product_attention in a type that only torch's written-out form knows: [batch, heads, length, width]
    cut along batch, then along heads, so that the scores of a piece stay near _PIECE_BYTES."""
    op = torch.ops.aten.scaled_dot_product_attention.default
    options = {"scale": scale, "enable_gqa": enable_gqa}
    whole = query.dim() == key.dim() == value.dim() == 4 and not dropout_p
    scores = query.shape[-2] * key.shape[-2] * query.element_size()  # of one head
    if not whole or math.prod(query.shape[:2]) * scores <= _PIECE_BYTES or query.shape[0] != key.shape[0]:
        return op(query, key, value, attn_mask, dropout_p, is_causal, **options)
    times = query.shape[1] // key.shape[1]
    step = min(key.shape[1], max(1, _PIECE_BYTES // (times * scores)))
    out = query.new_empty((*query.shape[:-1], value.shape[-1]))
    for i in range(query.shape[0]):
        for h in range(0, key.shape[1], step):
            heads, kv = slice(h * times, (h + step) * times), slice(h, h + step)
            mask = attn_mask
            if mask is not None:
                full = mask.expand(*query.shape[:2], *mask.shape[-2:])
                mask = full[i : i + 1, heads]
            part = op(
                query[i : i + 1, heads], key[i : i + 1, kv], value[i : i + 1, kv], mask, 0.0, is_causal, **options
            )
            out[i : i + 1, heads] = part
    return out


_PIECE_BYTES = 1 << 30
WRITTEN_OUT = {
    torch.ops.aten._scaled_mm.default: _scaled_product,
    torch.ops.aten._grouped_mm.default: _grouped_product,
    torch.ops.aten.scaled_dot_product_attention.default: _attention_in_pieces,
}
