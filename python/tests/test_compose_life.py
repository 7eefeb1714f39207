"""A composed module in the rest of a program: changed, copied, compiled with what is around it, saved, and of a class with ways of its own."""

from __future__ import annotations

import copy
import io
import json
import pickle

import pytest
import torch
from composing import Mlp, Still, kinds, mlp_plan, still_plan
from tessera.running.compose import ComposedModule
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
FACTOR = 1.0


class Scaled(Still):
    def forward(self, x):
        return super().forward(x) * FACTOR


def a_global(m, monkeypatch):
    monkeypatch.setitem(globals(), "FACTOR", 3.0)


def an_attribute(m, monkeypatch):
    m.scale = 2.0


def a_hook(m, monkeypatch):
    m.fc1.register_forward_hook(lambda module, args, result: result * 2)


def a_submodule(m, monkeypatch):
    m.fc1 = nn.Sequential(nn.Linear(16, 32))


def its_forward(m, monkeypatch):
    m.fc2.forward = lambda x: torch.zeros(x.shape[0], 16)


def its_shape(m, monkeypatch):
    m.fc1, m.fc2 = nn.Linear(16, 8), nn.Linear(8, 16)


def its_mode(m, monkeypatch):
    m.train()


CHANGES = [a_global, an_attribute, a_hook, a_submodule, its_forward, its_shape, its_mode]
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda c: pickle.loads(pickle.dumps(c))}


@torch.no_grad()
def equal(c, original):
    """One call of each, which draw alike."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        got = c(X)
        torch.manual_seed(0)
        torch.testing.assert_close(got, original(X))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_after_a_change_computes_what_its_original_does(library, monkeypatch, change, how):
    if how == "pickle" and change in (a_hook, its_forward):
        pytest.skip("a lambda cannot be pickled")
    c = ComposedModule(Scaled().eval(), still_plan(library))
    equal(c, c.original)
    change(c.original, monkeypatch)
    again = COPIES[how](c)
    for _ in range(2):
        equal(again, again.original)
        equal(c, again.original)
    if change is its_mode:
        again.eval(), c.eval()
        equal(again, again.original)
        assert again.status()["served"] == 1  # it is the module that was traced
    else:
        assert again.status()["served"] == 0
        third = copy.deepcopy(again)
        equal(third, again.original)


def test_a_copy_of_what_has_not_changed_runs_the_kernels(library):
    c = ComposedModule(Scaled().eval(), still_plan(library))
    c.original.fc1.weight.data = torch.randn(32, 16)
    for make in COPIES.values():
        again = make(c)
        equal(again, c.original)
        assert again.status()["served"] == 1


class Meter:
    def __init__(self):
        self.seen = 0

    def __call__(self, module, args, result):
        self.seen += 1
        return result * 2


@pytest.mark.parametrize("how", COPIES)
def test_a_hook_on_it_goes_with_its_copies(library, how):
    c, meter = ComposedModule(Scaled().eval(), still_plan(library)), Meter()
    c.register_forward_hook(meter)
    again = COPIES[how](c)
    with torch.no_grad():
        torch.testing.assert_close(again(X), 2 * c.original(X))
    (mine,) = again._forward_hooks.values()
    assert mine.seen == 1 and meter.seen == 0 and again.status()["served"] == 1


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("change", [c for c in CHANGES if c is not its_mode])
def test_torch_compile_around_it_sees_changes(library, monkeypatch, change, outer):
    torch._dynamo.reset()
    c = ComposedModule(Scaled().eval(), still_plan(library))
    model = nn.Sequential(c, nn.Tanh()) if outer else c
    f = torch.compile(model, backend="eager")
    launches = c._built.patterns[0].operator.calls
    equal(f, nn.Sequential(c.original, nn.Tanh()) if outer else c.original)
    assert c._built.patterns[0].operator.calls == launches + 1
    change(c.original, monkeypatch)
    equal(f, nn.Sequential(c.original, nn.Tanh()) if outer else c.original)


class Ways(Still):
    """What nn.Module has, done in another way."""

    _version = 7

    def __init__(self):
        super().__init__()
        self.cache, self.applied, self.loaded = torch.zeros(3), 0, ""

    def _apply(self, fn, recurse=True):
        self.cache, self.applied = fn(self.cache), self.applied + 1
        return super()._apply(fn, recurse)

    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        state["more"] = torch.ones(1)
        return state

    def load_state_dict(self, state, *args, **kwargs):
        return super().load_state_dict({k: v for k, v in state.items() if k != "more"}, *args, **kwargs)

    def get_extra_state(self):
        return {"text": self.loaded}

    def set_extra_state(self, state):
        self.loaded = state["text"]

    def eval(self):
        self.applied += 10
        return super().eval()


def test_what_the_class_overrides_is_used(library):
    m, other = Ways().eval(), Ways()
    c = ComposedModule(m, still_plan(library))
    other.loaded = "text"
    assert list(c.state_dict()) == list(m.state_dict()) and c.state_dict()._metadata[""]["version"] == 7
    c.load_state_dict(other.state_dict())
    assert m.loaded == "text" and torch.equal(c.fc1.weight, other.fc1.weight)
    c(X), c.eval()
    assert c.eval() is c and c.double() is c
    assert m.cache.dtype == torch.float64 and m.applied == 31 and m.fc1.weight.dtype == torch.float64
    again = copy.deepcopy(c)
    assert again.original.applied == 31 and again.float() is again and m.applied == 31


def test_its_mode_is_the_originals(library):
    c = ComposedModule(Mlp().eval(), mlp_plan(library))
    for module in c.modules():
        module.training = True
    assert c.training and c.original.training and c.original.drop.training
    c.original.training = False
    assert not c.training
    c.train()
    assert c.original.training
    with torch.no_grad():
        c(X)
    assert kinds(c) == {"training": 1}


def test_a_parametrization_that_is_kept_is_not_computed_anew(library):
    c = ComposedModule(Still().eval(), still_plan(library))
    with torch.no_grad(), nn.utils.parametrize.cached():
        c(X)
    assert kinds(c) == {"parametrizations": 1}


def test_what_is_pickled_holds_what_the_original_does(library):
    file = io.BytesIO()
    torch.save(ComposedModule(Ways().eval(), still_plan(library)), file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    equal(again, again.original)
    assert again.status()["served"] == 1


@pytest.mark.parametrize("runner", ["kernels", "eager", "inductor"])
@pytest.mark.parametrize("strict", [False, True])
def test_what_is_saved_needs_nothing_of_ours(library, tmp_path, runner, strict):
    m = Mlp().eval()
    c, ref, x = ComposedModule(m, mlp_plan(library), runner=runner), copy.deepcopy(m), torch.randn(8, 16)
    with torch.no_grad():
        c(x)
        program = torch.export.export(c, (x,), strict=strict)
        traced = torch.jit.trace(c, (x,))
        assert "tessera::" not in str(program.graph) + str(traced.graph)
        for again in (program.module(), traced, torch.jit.freeze(traced.eval())):
            assert torch.equal(again(x), ref(x))
    torch.export.save(program, tmp_path / "exported.pt2")
    torch.jit.save(traced, tmp_path / "traced.pt")
    assert torch.equal(torch.jit.load(tmp_path / "traced.pt")(x), ref(x))
    assert torch.equal(torch.export.load(tmp_path / "exported.pt2").module()(x), ref(x))
    assert set(program.state_dict) == set(ref.state_dict()) == set(traced.state_dict())


class Layers(nn.Sequential):
    def __enter__(self):
        self.entered = True
        return self

    def __exit__(self, *error):
        self.entered = False


def test_it_is_a_container_where_the_original_is_one(library):
    layers = Layers(Mlp().eval(), nn.ReLU())
    plan = json.loads(json.dumps(mlp_plan(library)).replace('"target": "', '"target": "0.'))
    c = ComposedModule(layers, plan, runner="eager")
    assert len(c) == 2 and list(c) == list(layers) and c[0] is layers[0] and c[-1] in c and type(c[:1]) is Layers
    c[1] = nn.Tanh()
    x = torch.randn(8, 16)
    assert torch.equal(c(x), layers(x)) and type(layers[1]) is nn.Tanh
    del c[1]
    assert len(layers) == 1 and torch.equal(c(x), layers(x))
    with c as entered:
        assert entered is layers and layers.entered
    assert not layers.entered


def test_it_is_none_where_the_original_is_none(library):
    c = ComposedModule(Mlp().eval(), mlp_plan(library))
    assert c and copy.deepcopy(c)
    for use in (len, iter, lambda m: m[0], lambda m: 0 in m, lambda m: m.__enter__()):
        with pytest.raises((TypeError, AttributeError)):
            use(c)
