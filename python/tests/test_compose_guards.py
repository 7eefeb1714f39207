"""What a call of the original goes through and kernels do not: hooks, submodules and forwards that are replaced, autocast; and
that what is set on the composed module is set on the original."""

from __future__ import annotations

import pytest
import torch
from composing import Mlp, kinds, same
from tessera.common.errors import Error
from tessera.running.hooks import HookGuard
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "register",
    [
        lambda m, h: m.fc1.register_forward_hook(lambda module, args, out: h.append(1) or out * 2),
        lambda m, h: m.fc2.register_forward_pre_hook(lambda module, args: h.append(1) or (args[0] * 2,)),
    ],
    ids=["hook", "pre-hook"],
)
def test_hooks_on_submodules_are_honoured(pair, register):
    c, ref = pair
    x = torch.randn(8, 16)
    same(c, ref, x)
    seen = []
    handles = [register(m, seen) for m in (c, ref)]
    same(c, ref, x)
    assert len(seen) == 2 and kinds(c) == {"hooks": 1}
    for h in handles:
        h.remove()
    same(c, ref, x)
    assert len(seen) == 2 and c.status()["served"] == 2


def test_own_hooks_run(pair):
    c, _ = pair
    seen = []
    c.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    with torch.no_grad():
        c(torch.randn(8, 16))
    assert seen == [(8, 16)] and c.status()["served"] == 1


@pytest.mark.parametrize("change", ["replaced", "patched"])
def test_another_submodule_or_forward(pair, change):
    c, ref = pair
    same(c, ref, torch.randn(8, 16))
    for m in (c.original, ref):
        if change == "replaced":
            torch.manual_seed(7)
            m.fc2 = nn.Linear(m.fc2.in_features, m.fc2.out_features)
        else:
            m.fc2.forward = lambda x, m=m: nn.functional.linear(x, m.fc2.weight) * 3
    same(c, ref, torch.randn(8, 16))
    assert kinds(c) == {"structure": 1}


def test_compiled_falls_back_under_autocast_and_in_training(pair):
    c, ref = pair
    f = torch.compile(c, backend="aot_eager", fullgraph=True)
    x = torch.randn(8, 16)
    with torch.no_grad():
        torch.testing.assert_close(f(x), ref(x), rtol=1e-5, atol=1e-5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.testing.assert_close(f(x), ref(x))
    calls = [u.operator.calls for u in c._built.patterns]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        f(x)
    assert [u.operator.calls for u in c._built.patterns] == calls


def test_a_module_with_hooks_is_not_optimized():
    from tessera.tracing.held import hold

    m = Mlp().eval()
    m.fc1.register_forward_hook(lambda module, args, out: out)
    with pytest.raises(Error) as e:
        hold(m, (torch.randn(8, 16),), {})
    assert e.value.diagnostic["code"] == "TS0015" and "fc1" in e.value.diagnostic["message"]
    normed = nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(16, 16)))
    assert hold(normed, (torch.randn(8, 16),), {}).graph["nodes"]


def test_hooks_that_were_traced_are_not_skipped():
    """torch's own compute with tensors; Transformers' collect what a forward asks for."""
    from transformers.utils import output_capturing

    m = nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(16, 16)), nn.Linear(16, 16))
    guard = HookGuard(m)
    assert guard.changed() == "" and not guard.differ()

    def collects(module, args, output):
        pass

    collects.__module__ = output_capturing.__name__
    handle = m[1].register_forward_hook(collects)
    assert guard.differ() and guard.changed() == "" and not guard.differ(), "a model registers them in a call"
    token = output_capturing._active_collector.set({"hidden_states": []})
    assert guard.differ() and guard.changed().startswith("a module around this one collects")
    output_capturing._active_collector.reset(token)
    assert guard.changed() == "" and not guard.differ()
    other = m[1].register_forward_hook(lambda module, args, output: output)
    assert guard.changed() == "1 (Linear) has forward hooks; kernels would skip them"
    other.remove()
    handle.remove()
    assert guard.changed() == ""
    torch.nn.utils.remove_weight_norm(m[0])
    assert guard.changed().startswith("a parametrization was added or removed")


def test_what_transformers_collects_around_a_composed_part_is_collected(monkeypatch):
    """The part was traced while nobody asked for hidden states: the original runs where its model does."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    model = transformers.LlamaModel(config).eval()
    ids = torch.arange(6).reshape(1, 6)
    with torch.no_grad():
        assert len(model(ids, output_hidden_states=True).hidden_states) == 3
    guard, seen = HookGuard(model.layers[0]), []
    original = model.layers[0].forward
    monkeypatch.setattr(model.layers[0], "forward", lambda *a, **k: seen.append(guard.changed()) or original(*a, **k))
    with torch.no_grad():
        model(ids)
        model(ids, output_hidden_states=True)
    assert seen[0] == "" and seen[1].startswith("a module around this one collects"), seen


def test_a_hook_in_the_place_of_another_is_seen():
    normed = nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(16, 16)))
    guard = HookGuard(normed)
    hooks = normed[0]._forward_pre_hooks
    hooks[next(iter(hooks))] = lambda module, args: None
    assert guard.changed() == "0 (Linear) has forward hooks; kernels would skip them"


def test_what_is_set_is_the_originals(pair):
    c, ref = pair
    x = torch.randn(8, 16)
    for m in (c, ref):
        m.fc1 = nn.Linear(16, 32, bias=False)
        m.scale = 3.0
        m.outputs = nn.Identity()  # named as what the composed module keeps for itself
        torch.nn.init.ones_(m.fc1.weight)
    assert c.original.scale == 3.0 and c.scale == 3.0 and c.outputs is c.original.outputs
    same(c, ref, x)
    assert kinds(c) == {"structure": 1} and list(c.state_dict()) == list(ref.state_dict())
    del c.scale, c.fc1
    assert not hasattr(c.original, "scale") and "fc1" not in c.original._modules


def test_a_forward_is_set_on_the_composed_module(pair):
    c, _ = pair
    c.forward = torch.zeros_like
    assert torch.equal(c(torch.ones(3)), torch.zeros(3)) and "forward" not in c.original.__dict__
    del c.forward
    assert c(torch.randn(8, 16)).shape == (8, 16)
