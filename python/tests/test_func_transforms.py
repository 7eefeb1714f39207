"""A call that torch.func transforms, or that carries tangents, runs the original: kernels have rules for neither."""

from __future__ import annotations

import copy

import pytest
import torch
from composing import kinds, plan_of_trace
from tessera.tracing.held import hold
from torch import func, nn
from torch.autograd import forward_ad

pytestmark = pytest.mark.filterwarnings("ignore")


class Mlp(nn.Module):
    """Without a counter: torch.func differentiates no function that writes to what it holds."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.fc2(nn.functional.gelu(self.fc1(x)))


@pytest.fixture
def pair(library):
    torch.manual_seed(0)
    module = Mlp().eval()
    held = hold(module, (torch.randn(8, 16),), {}, None)
    return held.compose(plan_of_trace(held.traced, library), "eager"), copy.deepcopy(module)


def _ensemble(module, x):
    parameters = {name: torch.stack([p, 2 * p]) for name, p in module.named_parameters()}
    return func.vmap(lambda p: func.functional_call(module, p, (x,)))(parameters)


def _tangents(module, x):
    """no_grad ends no forward-mode AD."""
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(module(forward_ad.make_dual(x, torch.ones_like(x)))).tangent


TRANSFORMS = {
    "vmap": lambda module, x: func.vmap(module)(torch.stack([x, -x])),
    "ensemble": _ensemble,
    "grad": lambda module, x: func.grad(lambda y: module(y).sum())(x),
    "jvp": lambda module, x: func.jvp(module, (x,), (x,))[1],
    "functionalize": lambda module, x: func.functionalize(module)(x),
    "tangents": _tangents,
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS.keys())
def test_a_transformed_call_runs_the_original(pair, transform):
    composed, original = pair
    x = torch.randn(8, 16)
    assert composed.status()["active"]
    with torch.no_grad():
        torch.testing.assert_close(composed(x), original(x))
        assert kinds(composed) == {}
        assert torch.equal(transform(composed, x), transform(original, x))
        composed(x)
    assert kinds(composed) == {"transform": 1}


def test_a_transform_that_is_compiled_is_right(pair):
    composed, original = pair
    x = torch.randn(3, 8, 16)
    with torch.no_grad():
        found = torch.compile(lambda y: func.vmap(composed)(y))(x)
        torch.testing.assert_close(found, func.vmap(original)(x))
