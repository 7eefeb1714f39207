"""What follows from no input is known: masks of positions among it."""

import torch
from graph_tools import X, check, module, ops
from tessera.common import facts as facts_module
from tessera.tracing import closed
from tessera.tracing.tracer import trace_module
from torch.nn import functional as F


def positions_mask(s, x, window=0, device=None):
    """As language models of transformers make it, element by element of broadcast positions."""
    n = x.shape[-2]
    rows, columns = torch.arange(n, device=device)[:, None], torch.arange(n, device=device)[None, :]
    documents = torch.cumsum(torch.diff(torch.arange(n), prepend=torch.tensor([-1])) != 1, 0)
    kept = (columns <= rows) & (documents[rows] == documents[columns])
    if window:
        kept = kept & (columns > rows - window)
    return F.scaled_dot_product_attention(x, x, x, attn_mask=kept[None, None].expand(1, -1, -1, -1))


def test_a_mask_of_positions_is_known_to_be_causal():
    x = torch.randn(1, 2, 12, 8)
    _, graph = check(module(positions_mask), x)
    assert ops(graph) == ["scaled_dot_product_attention"] and graph["nodes"][0]["arguments"]["is_causal"]
    _, graph = check(module(lambda s, x: positions_mask(s, x, window=4)), x)
    assert graph["nodes"][-1]["arguments"]["attn_mask"] is not None


def windowed(s, x):
    n = x.shape[-2]
    distance = torch.arange(n)[:, None] - torch.arange(n)
    return F.scaled_dot_product_attention(x, x, x, attn_mask=(distance >= 0) & (distance < 3))


def test_masks_are_known_up_to_a_size_that_counts_positions_as_truth_values(monkeypatch):
    monkeypatch.setattr(closed, "_KEPT", 4)  # nothing is missing where what is large was dropped
    for most, bands in ((144, [{"band": True, "lower": -2, "upper": 0}]), (143, [])):
        monkeypatch.setattr(facts_module, "LARGEST", most)
        found = known(windowed, torch.randn(1, 2, 12, 8))
        assert [facts for facts in found.values() if "band" in facts] == bands


def known(forward, x) -> dict[str, dict]:
    values = trace_module(module(forward), (x,)).graph["values"]
    return {v["name"]: v["facts"] for v in values if v["origin"] == "node" and "facts" in v}


def test_what_follows_from_no_input_is_known():
    assert known(lambda s, x: x + torch.ones(4, 1, 1) * 2, X) == {"mul": {"scalar": 2.0}}
    assert known(lambda s, x: x + torch.tensor([3.0]).expand(16), X)["expand"] == {"scalar": 3.0}
    assert known(lambda s, x: x + torch.rand(1) * 2, X) == {}
    assert known(lambda s, x: x + torch.empty(1).abs(), X) == {}
    assert known(lambda s, x: x + x.new_ones(16).mul_(x[0, 0]), X).keys() <= {"new_ones"}
    held = [torch.tensor([3.0])]  # whoever holds it may write to it
    assert known(lambda s, x: x + held[0].expand(16), X) == {}
