"""Tensors of one number that is known, and tensors that lie on another device than the rest."""

import torch
from graph_tools import X, canonical, check, module
from tessera.tracing.tracer import trace_module

NUMBERS = {
    "as DeBERTa scales its scores": (
        lambda s, x: x / torch.sqrt(torch.tensor(x.shape[-1], dtype=torch.float) * 3),
        48**0.5,
    ),
    "in front": (lambda s, x: torch.tensor(0.5) * x, 0.5),
    "of another type": (lambda s, x: x + torch.tensor(3), 3),
    "with dims of one element": (lambda s, x: x * torch.tensor([2.0]), None),
    "that decides the type": (lambda s, x: x.int() * torch.tensor(2.0, dtype=torch.float64), None),
    "not finite": (lambda s, x: x + torch.tensor(float("-inf")), None),
    "of an input": (lambda s, x: x * x[0, 0].sum(), None),
    "taken from": (lambda s, x: torch.tensor(1.5) - x, None),
}


def test_numbers_in_tensors():
    for name, (forward, wanted) in NUMBERS.items():
        _, graph = check(module(forward), X)
        last = graph["nodes"][-1]
        got = [v for k, v in last["arguments"].items() if k in ("self", "other") and isinstance(v, (int, float))]
        if wanted is None:
            assert not got, name
        else:
            assert len(graph["nodes"]) == 1 and abs(got[0] - wanted) < 1e-12, (name, last)
            assert last["arguments"]["self"]["value"] == "x"


def test_numbers_that_may_change_are_read_where_they_lie():
    """A buffer, a tensor in a list, and what follows from them: they may be written between the replays of a CUDA graph."""
    scale = torch.tensor(2.0)
    held = [torch.tensor(2.0)]  # export names it as it names literals
    for forward in (
        lambda s, x: x * s.scale,
        lambda s, x: x / (s.scale + 1).sqrt(),
        lambda s, x: x * held[0],
        lambda s, x: x / (held[0].detach() + 1).sqrt(),
        lambda s, x: x / (held[0].view(1, 1) + 1).sqrt(),
    ):
        _, graph = check(module(forward, scale=scale), X)
        assert any("other" in n["arguments"] and isinstance(n["arguments"]["other"], dict) for n in graph["nodes"][-1:])


def test_a_value_elsewhere_is_told():
    """The meta device stands for a GPU."""
    with torch.device("meta"):
        traced = trace_module(module(lambda s, x, t: x * t), (X.to("meta"), torch.tensor(2.0, device="cpu")))
    assert traced.graph["device"] == "meta"
    assert {v["name"]: v.get("device") for v in traced.graph["values"]} == {"x": None, "t": "cpu", "mul": None}
    assert [v.get("device") for v in canonical(traced.graph)["values"]] == [
        v.get("device") for v in traced.graph["values"]
    ]
