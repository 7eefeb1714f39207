"""softmax(scale Q K^T + mask) V, with key and value heads that several query heads share."""

import math

import torch
from bodies import Storage


def run(body: dict, s: Storage) -> None:
    q, k, v = (s.view(body[n]) for n in "qkv")
    group = body["heads"] // body["kv_heads"]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) * body["scale"]
    if body["causal"]:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if body["mask"] is not None:
        mask = s.view(body["mask"])
        scores = scores.masked_fill(mask == 0, -math.inf) if body["mask"]["dtype"] == "bool" else scores + mask
    s.write(body["output"], scores.softmax(-1) @ v)
