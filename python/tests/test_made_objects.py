"""Objects that a call makes and returns, as language models of transformers do a cache of keys and values."""

import collections
import copy
import pickle
from dataclasses import dataclass

import pytest
import torch
from tessera.common.errors import Error
from tessera.tracing import held as holding
from tessera.tracing import made_objects
from tessera.tracing.tracer import trace_module
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM


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


def composed_of(module, *args):
    held = holding.hold(module, args, {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    return held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "eager")


@pytest.fixture(scope="module")
def composed(model, ids):
    return composed_of(model, ids)


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
def test_a_cache_keeps_what_it_is_beside_its_tensors():
    """Layers with a window count the tokens that they no longer hold."""
    torch.manual_seed(0)
    sizes = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
    m = MistralForCausalLM(MistralConfig(**sizes, num_key_value_heads=2, sliding_window=4)).eval()
    ids = torch.randint(0, 64, (1, 12))
    ours, theirs = composed_of(m, ids)(ids).past_key_values, m(ids).past_key_values
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        assert vars(mine).keys() == vars(other).keys() and type(mine) is type(other)
        assert mine.cumulative_length == other.cumulative_length == 12
    torch.testing.assert_close(m(ids[:, :1], past_key_values=ours).logits, m(ids[:, :1], past_key_values=theirs).logits)


class State:
    """Made by a call; holds itself, and one tensor twice."""

    def __init__(self, x):
        self.x, self.rows, self.named, self.itself = x, [x, (x + 1, None)], {"count": x.shape[0]}, self
        self.ask = self.first

    def first(self):
        return self.rows[0]


@dataclass
class Answer:
    loss: torch.Tensor
    state: State


class Answering(nn.Module):
    def forward(self, x):
        return {"answer": Answer(x.sum(), State(x * 2)), "plain": x.cos()}


@torch.no_grad()
@pytest.mark.parametrize("how", [lambda m: m, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_objects_are_made_anew_in_each_call(how):
    ours, x = how(composed_of(Answering(), torch.randn(3))), torch.randn(3)
    got, again, want = ours(x), ours(x), Answering()(x)
    state = got["answer"].state
    torch.testing.assert_close(got["answer"].loss, want["answer"].loss)
    torch.testing.assert_close(state.rows, want["answer"].state.rows)
    assert state.itself is state and state.x is state.rows[0] and state.ask() is state.x
    assert state.named == {"count": 3} and state.named is not again["answer"].state.named
    assert ours.status()["served"] == 2


@torch.no_grad()
def test_objects_that_are_older_than_the_call_are_not_made_anew():
    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = Answer(torch.zeros(3), None)

        def forward(self, x):
            return x + 1, self.kept

    with pytest.raises(Error, match=r"TS0202.*older than the call"):
        trace_module(Keeping(), (torch.randn(3),))


def _twice(self, x, given):
    made = [x.sin()]
    return made, made


@torch.no_grad()
@pytest.mark.parametrize(
    "forward",
    [
        lambda self, x, given: (x.cos(), given),
        lambda self, x, given: dict(given) | {"y": x.cos()},
        lambda self, x, given: (x.cos(), self.names),
        lambda self, x, given: {"y": x.cos(), "t": self.tensors},
        _twice,
    ],
)
def test_a_container_that_stays_is_captured_in_parts(forward):
    """A graph's results are put into new ones: what the caller writes to them would be lost."""
    m, x = type("Answers", (nn.Module,), {"forward": forward})(), torch.randn(3)
    m.names, m.tensors = ["a"], [torch.ones(3)]
    with pytest.raises(Error, match=r"TS0202.*list or dictionary"):
        trace_module(m, (x, {"inner": [1], "x": x}))


@torch.no_grad()
def test_objects_without_tensors_are_made_anew():
    class Log:
        def __init__(self):
            self.entries = []

    class Answers(nn.Module):
        def forward(self, x):
            return x.sin(), {1}, Log(), collections.Counter("ab"), x.shape

    ours = composed_of(Answers(), torch.randn(3))
    for i in range(3):
        _, members, log, counts, shape = ours(torch.randn(3))
        assert (members, log.entries, counts["a"], shape) == ({1}, [], 1, torch.Size([3]))
        members.add(i + 5), log.entries.append(i), counts.update("a")
    assert ours.status()["served"] == 3


@torch.no_grad()
def test_objects_that_cannot_be_made_anew_are_captured_in_parts():
    m = type("Answers", (nn.Module,), {"forward": lambda self, x: (x.sin(), x.shape, bytearray(b"a"))})()
    with pytest.raises(Error, match=r"TS0202.*bytearray"):
        trace_module(m, (torch.randn(3),))


def test_forward_is_the_models_own_again(model, ids):
    with pytest.raises(ZeroDivisionError), made_objects.flat(model, (ids,), {}):
        assert isinstance(model(ids), tuple)
        _ = 1 / 0
    assert "forward" not in model.__dict__
    model.forward = mine = model.forward
    try:
        with made_objects.flat(model, (ids,), {}):
            assert isinstance(model(ids), tuple)
        assert model.__dict__["forward"] is mine
    finally:
        del model.forward


def test_other_results_are_left_alone():
    linear, x = nn.Linear(2, 2), torch.randn(2)
    with made_objects.flat(linear, (x,), {}) as nesting:
        assert isinstance(linear(x), torch.Tensor)
    assert nesting.of("traced") == "traced"
