"""Concatenations with nothing, and slices of a linear that are its split."""

import pytest
import torch
from graph_tools import X, check, module, ops
from torch import nn


def test_empty_pieces_of_a_concatenation_go():
    _, graph = check(module(lambda s, x: torch.cat([x.relu(), x[..., 16:]], -1).exp()), X)
    assert ops(graph) == ["relu", "exp"]
    _, graph = check(module(lambda s, x: torch.cat([x.new_empty(0), x.transpose(0, 1), x[:0].transpose(0, 1)], 1)), X)
    assert ops(graph) == ["transpose", "clone"]
    _, graph = check(module(lambda s, x: torch.cat([x, x[:, :0], x], 1)), X)
    assert ops(graph) == ["cat"] and len(graph["nodes"][0]["arguments"]["tensors"]) == 2
    by_channels = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for count, wanted in ((1, ["clone", "exp"]), (2, ["slice", "cat", "exp"])):  # two alone would lie by channels
        forward = lambda s, x, n=count: torch.cat([x] * n + [x[:, :0]], 1).exp()  # noqa: E731
        _, graph = check(module(forward), by_channels)
        assert ops(graph) == wanted
        made = {v["name"]: tuple(v["strides"]) for v in graph["values"]}
        assert made[graph["outputs"][0]] == forward(None, by_channels).stride()
    for kept in (lambda s, x: torch.cat([x.float(), x[:0]], 0), lambda s, x: torch.cat([x[:0], x[:0]], 0)):
        assert "cat" in ops(check(module(kept), X.double())[1])


COLUMNS = {
    "all of them": (((0, 8), (8, 12), (12, 16)), True),
    "in another order": (((4, 12), (0, 4), (12, 16)), True),
    "not all": (((0, 4), (4, 8), (8, 12)), False),
    "some twice": (((0, 8), (8, 12), (8, 16)), False),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_slices_of_a_linear_are_its_split_where_they_are_rotated(name):
    """As Phi-3 has them: one linear for queries, keys and values, and an empty part that is not rotated."""
    (queries, keys, values), splits = COLUMNS[name]

    def rotated(s, x):
        turned = torch.cat([-x[..., 2:4], x[..., :2]], -1)
        return torch.cat([x * s.cos + turned * s.sin, x[..., 4:]], -1)

    def forward(s, x):
        wide = s.linear(x)
        q, k, v = (wide[..., a:b].unflatten(-1, (-1, 4)).transpose(1, 2) for a, b in (queries, keys, values))
        return rotated(s, q), rotated(s, k), v.exp()

    angles = torch.randn(6, 2).repeat(1, 2)
    m = module(forward, linear=nn.Linear(16, 16), cos=angles.cos(), sin=angles.sin())
    found = ops(check(m, X)[1])
    assert ("split_with_sizes" in found) == splits and found.count("neg") == (1 if splits else 2)
