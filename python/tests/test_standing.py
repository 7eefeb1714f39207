"""What a module in parts is asked before every call: the extension lets pass what Python lets pass, and nothing more."""

from __future__ import annotations

import pytest
import torch
from tessera.running import fast_guard, standing
from tessera.running.standing import Standing
from torch import nn


class Several(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))


def tail(module):
    return module[2][1]


def columns_first(module):
    tail(module).weight.data = tail(module).weight.data.t().contiguous().t()


def other_dtype(module):
    module[1].num_batches_tracked.data = torch.zeros((), dtype=torch.int32)


def another_buffer(module):
    module[1].register_buffer("more", torch.zeros(1))


def another_shape(module):
    tail(module).weight = nn.Parameter(torch.zeros(3, 4))


def a_hook(module):
    module[2].register_forward_hook(lambda *_: None)


def an_earlier_hook(module):
    module[2][0].register_forward_pre_hook(lambda *_: None)


def another_class(module):
    module[2][0].__class__ = nn.Sigmoid


def another_module(module):
    module[2].append(nn.ReLU())


CHANGES = [
    *(columns_first, other_dtype, another_buffer, another_shape),
    *(a_hook, an_earlier_hook, another_class, another_module),
]


def another_parameter(module):
    tail(module).weight = nn.Parameter(torch.ones(2, 4))


def moved(module):
    tail(module).weight.data = torch.ones(2, 4)


def written(module):
    with torch.no_grad():
        module[1].running_mean.add_(1)


def untouched(module):
    pass


@pytest.fixture(params=["extension", "python"])
def module(request, monkeypatch):
    if request.param == "extension":
        if (reason := fast_guard.extension()[1]) and "asked for" in reason:
            pytest.skip(reason)
    else:
        monkeypatch.setattr(fast_guard, "at_hand", lambda: (None, "none"))
    return Several()


@pytest.mark.parametrize("change", CHANGES)
def test_what_captured_graphs_rely_on(module, change):
    asked = Standing(module)
    assert asked.stands() and asked.stands()
    change(module)
    assert not asked.stands() and not asked.stands()


def test_the_forward_of_a_class(module):
    class Own(nn.Module):
        def forward(self, x):
            return x

    module.append(Own())
    asked = Standing(module)
    assert asked.stands() and asked.stands()
    Own.forward = lambda self, x: x + 1
    assert not asked.stands()


@pytest.mark.parametrize("change", [another_parameter, moved, written, untouched])
def test_what_they_do_not_rely_on(module, change, monkeypatch):
    looks = []
    look = standing._looked
    monkeypatch.setattr(standing, "_looked", lambda m: looks.append(m) or look(m))
    asked = Standing(module)
    assert asked.stands()
    change(module)
    assert asked.stands()
    looks.clear()
    assert asked.stands()  # gradients are recorded here
    assert bool(looks) == (fast_guard.at_hand()[0] is None)


def test_what_the_extension_does_not_compare():
    module = nn.Sequential(nn.LazyLinear(4))
    asked = Standing(module)
    assert asked.stands() and asked.stands()
    module(torch.ones(2, 3))
    assert not asked.stands()
    module = nn.Module()
    module.register_buffer("sparse", torch.eye(3).to_sparse())
    module.forward = lambda x: x
    asked = Standing(module)
    assert asked.stands() and asked.stands()
    module.sparse = torch.eye(3)
    assert not asked.stands()


def test_nested_buffers_have_no_strides():
    module = nn.Module()
    module.register_buffer("several", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    module.forward = lambda x: x
    asked = Standing(module)
    assert asked.stands() and asked.stands()
    module.several = torch.ones(2, 3)
    assert not asked.stands()
