"""softmax(scale Q K^T + mask) V, with key and value heads that several query heads share."""

import math

import torch
from bodies import Storage


def run(body: dict, s: Storage) -> None:
    q, k, v = (s.view(body[n]) for n in "qkv")
    group = body["heads"] // body["kv_heads"]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) * body["scale"]
    if body["softcap"]:
        scores = body["softcap"] * (scores / body["softcap"]).tanh()
    if body["causal"]:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if body["band"] is not None:  # what the mask says
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool)
        seen = seen if body["band"]["lower"] is None else seen.triu(body["band"]["lower"])
        seen = seen if body["band"]["upper"] is None else seen.tril(body["band"]["upper"])
        scores = scores.masked_fill(~seen, -math.inf)
    elif body["mask"] is not None:
        mask = s.view(body["mask"])
        scores = scores.masked_fill(mask == 0, -math.inf) if body["mask"]["dtype"] == "bool" else scores + mask
    s.write(body["output"], scores.softmax(-1) @ v)
