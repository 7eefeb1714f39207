"""What comes with the results of forward beside tensors: sizes by their type, attributes of tensors, seeds of random numbers."""

from __future__ import annotations

import pickle
from collections import OrderedDict, namedtuple

import pytest
import torch
from tessera.running.outputs import Outputs, wrapper
from tessera.tracing.picture import Picture
from tessera.tracing.python_state import changes_of_calls
from tessera.tracing.tracer import trace_module
from torch import nn

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))

Both = namedtuple("Both", "shape value")
FORMS = {
    "beside": lambda x: (x + 1, x.shape),
    "alone in a list": lambda x: [x.mT.shape, x * 2],
    "in a dictionary": lambda x: {"of": (x.new_ones(3).shape, None), "y": x},
    "in a named tuple": lambda x: Both(x[0].shape, x * 3),
    "without dimensions": lambda x: OrderedDict(n=x.sum().shape, y=x.sum()),
    "alone": lambda x: x.shape,
    "of itself": lambda x: (torch.Size([2, 5]), x.exp(), (2, 5)),
}


class Giving(nn.Module):
    def __init__(self, form: str):
        super().__init__()
        self.form = form

    def forward(self, x):
        return FORMS[self.form](x)


def kinds(result):
    if isinstance(result, torch.Tensor):
        return result.tolist()
    if isinstance(result, dict):
        return type(result), {k: kinds(v) for k, v in result.items()}
    return (type(result), [kinds(v) for v in result]) if isinstance(result, (tuple, list)) else result


@pytest.mark.parametrize("form", FORMS)
def test_sizes_stay_sizes(form):
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    m = Giving(form)
    traced = trace_module(m, (x,))
    wanted = m(x)
    outputs = Outputs(traced.results, traced.out_spec)
    flat = tuple(v for v in _tensors(wanted))
    again = [] if isinstance(wanted, Both) else [pickle.loads(pickle.dumps(outputs))]  # pytree pickles no such type
    for made in (outputs, wrapper(outputs, len(flat)), *again):
        assert kinds(made(flat)) == kinds(wanted)


def _tensors(result):
    if isinstance(result, torch.Tensor):
        return [result]
    held = result.values() if isinstance(result, dict) else result
    return [t for v in held if isinstance(v, (torch.Tensor, tuple, list, dict)) for t in _tensors(v)]


class Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.fc, self.function = nn.Linear(4, 4), function

    def forward(self, x):
        return self.function(self, x)


def reasons_of(function, x=X) -> list[str]:
    return changes_of_calls(Module(function), (x,), {}, lambda: ((X * 2,), {})).reasons


def forked(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return x + torch.rand(4)


def set_back(x):
    state = torch.get_rng_state()
    y = x + torch.rand(4)
    torch.random.set_rng_state(state)
    return y


SEEDING = {
    "seeded": (lambda x: (torch.manual_seed(0), x + torch.rand(4))[1], "seeds"),
    "seeded otherwise": (lambda x: (torch.default_generator.manual_seed(11), x * 2)[1], "seeds"),
    "forked": (forked, "sets the state"),
    "set back": (set_back, "sets the state"),
}


@pytest.mark.parametrize("kind", SEEDING)
def test_forward_that_seeds(kind):
    f, said = SEEDING[kind]
    torch.manual_seed(4)
    reasons = reasons_of(lambda self, x: f(x))
    assert any(said in reason for reason in reasons), reasons
    assert torch.initial_seed() == 4


def test_forward_that_draws_seeds_nothing():
    assert reasons_of(lambda self, x: torch.dropout(x, 0.5, True) + torch.rand(4)) == []


def marking_a_result(self, x):
    y = self.fc(x)
    y.kind = "logits"
    return {"y": y}


def marking_an_argument(self, x):
    x.read = True
    return self.fc(x)


@pytest.mark.parametrize(("forward", "name"), [(marking_a_result, "kind"), (marking_an_argument, "read")])
def test_attributes_that_forward_gives_tensors(forward, name):
    x = X.clone()
    (reason,) = reasons_of(forward, x)
    assert f"`{name}`" in reason and not vars(x)


def test_attributes_of_a_parameter_are_put_back():
    m = Module(lambda self, x: self.fc(x))
    m.fc.weight.note = 1
    before = Picture(m)
    m.fc.weight.note, m.fc.bias.other = 2, 3
    assert before.changed() == ["fc.bias", "fc.weight"]
    before.restore()
    assert vars(m.fc.weight) == {"note": 1} and not vars(m.fc.bias)
