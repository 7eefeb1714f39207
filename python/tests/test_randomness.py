import pytest
import torch
from tessera import api, engine
from tessera.common.errors import Error, fail
from tessera.common.randomness import draws
from tessera.judging.module_times import measure_module
from tessera.tracing import held as holding
from tessera.tracing.training_mode import of_training
from torch import nn


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand_like(x)


class Noisy(nn.Module):
    def forward(self, x):
        return noisy(x)


class Attending(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, **self.options)


def dropping(p: float) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(p), nn.ReLU())


X = (torch.randn(2, 4),)


@pytest.mark.parametrize(
    "module", [dropping(0.5).train(), nn.Sequential(nn.Linear(4, 4), Noisy()).train(), Attending(dropout_p=0.1).train()]
)
def test_training_mode_is_told(module):
    text = of_training(module, holding.hold(module, X, {}).graph)
    assert "in training mode and draws random numbers" in text and "call .eval()" in text


@pytest.mark.parametrize(
    "module",
    [
        dropping(0.5).eval(),
        dropping(0.0).train(),
        nn.Linear(4, 4).train(),
        Noisy().eval(),
        nn.BatchNorm1d(4).eval(),
        Attending().train(),
        Attending(dropout_p=0.0, is_causal=True).train(),
    ],
)
def test_nothing_is_said_of_the_others(module):
    assert of_training(module, holding.hold(module, X, {}).graph) == ""


def test_the_search_begins_with_it(monkeypatch):
    def run_engine(*given):
        raise fail("TS0999", "test.none", "nothing is searched")

    monkeypatch.setattr(engine, "run_engine", run_engine)
    with pytest.warns(UserWarning, match="in training mode"), pytest.raises(Error, match="nothing is searched"):
        api.optimize(dropping(0.5).train(), X)


def test_a_timed_run_draws_what_the_original_drew():
    held = holding.hold(dropping(0.5).train(), X, {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    plan = {"graph": held.graph, "steps": steps, "leftover": []}
    measure_module(held, plan, ["eager"], seconds=0.05)
    measure_module(held, plan | {"runner": "inductor"}, ["eager"], seconds=0.05)  # draws others, which are not judged


def test_what_draws():
    assert draws(holding.hold(Noisy().eval(), X, {}).graph) == ["rand_like"]
    assert draws(holding.hold(dropping(0.5).eval(), X, {}).graph) == []
