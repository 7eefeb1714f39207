"""Language models of transformers, whose results hold a cache of keys and values."""

import copy
import pickle

import pytest
import torch
from tessera.common.errors import Error
from tessera.tracing import held as holding
from tessera.tracing import model_caches
from tessera.tracing.tracer import trace_module
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def ids():
    return torch.randint(0, 64, (1, 12))


@pytest.fixture(scope="module")
def composed(model, ids):
    held = holding.hold(model, (ids,), {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    return held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "eager")


def same(found, wanted) -> None:
    assert type(found) is type(wanted) and found.keys() == wanted.keys()
    torch.testing.assert_close(found.logits, wanted.logits)
    ours, theirs = found.past_key_values, wanted.past_key_values
    assert type(ours) is DynamicCache and ours.get_seq_length() == theirs.get_seq_length()
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        torch.testing.assert_close(mine.keys, other.keys)
        torch.testing.assert_close(mine.values, other.values)


@torch.no_grad()
def test_the_result_is_what_the_model_gives(model, ids, composed):
    same(composed(ids), model(ids))
    assert composed.status()["served"] == composed.status()["calls"] > 0


@torch.no_grad()
def test_copies_give_it_too(model, ids, composed):
    same(pickle.loads(pickle.dumps(composed))(ids), model(ids))
    same(copy.deepcopy(composed)(ids), model(ids))


@torch.no_grad()
def test_its_cache_goes_on(model, ids, composed):
    """The next token is the original's to compute: the call has another form than the traced one."""
    same(composed(ids[:, :1], past_key_values=composed(ids).past_key_values), _next(model, ids))
    assert {e["kind"] for e in composed.status()["fallbacks"]} == {"structure"}


def _next(model, ids):
    return model(ids[:, :1], past_key_values=model(ids).past_key_values)


@torch.no_grad()
def test_a_cache_that_is_given_is_refused(model, ids):
    with pytest.raises(Error, match=r"TS0202.*DynamicCache is among the inputs"):
        trace_module(model, (ids[:, :1],), {"past_key_values": model(ids).past_key_values})


@torch.no_grad()
def test_a_cache_of_other_layers_is_refused_with_a_way_out(model, ids, monkeypatch):
    from transformers.cache_utils import DynamicLayer

    class Other(DynamicLayer):
        pass

    result = model(ids)
    result.past_key_values.layers[0].__class__ = Other
    monkeypatch.setattr(model, "forward", lambda ids: result)
    with pytest.raises(Error, match=r"TS0202.*cannot be taken apart") as e:
        trace_module(model, (ids,))
    assert "call it with use_cache=False" in str(e.value)


def test_forward_is_the_models_own_again(model, ids):
    with pytest.raises(ZeroDivisionError), model_caches.flat(model):
        assert isinstance(model(ids), tuple)
        _ = 1 / 0
    assert "forward" not in model.__dict__
    model.forward = mine = model.forward
    try:
        with model_caches.flat(model):
            assert isinstance(model(ids), tuple)
        assert model.__dict__["forward"] is mine
    finally:
        del model.forward


def test_other_modules_are_left_alone():
    linear = nn.Linear(2, 2)
    with model_caches.flat(linear) as nesting:
        assert "forward" not in linear.__dict__
    assert nesting.of("traced") == "traced"
