"""Which tensors of a call are one object, which are the module's own, and whose memory overlaps what forward writes to."""

from __future__ import annotations

import pytest
import torch
from guarding import composed, kinds, served
from tessera.running.memory_guard import overlaps_itself, range_of
from torch import nn


class Three(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 8))
        self.register_buffer("b", torch.randn(4, 8))

    def forward(self, a, b, c):
        if a is b:
            a = a * 3
        return (a * self.w + (2 * b if c is self.b else b)) - c + self.b


def fresh(n: int = 3) -> list[torch.Tensor]:
    return [torch.randn(4, 8) for _ in range(n)]


@pytest.mark.parametrize("traced", ["aaa", "aba", "abc", "awa", "BaB"])
def test_every_partition_is_held_against_the_traced_one(traced):
    """Letters are tensors: `w` the module's parameter, `B` its buffer."""
    m = Three()
    own = {"w": m.w, "B": m.b}

    def call(form: str) -> list[torch.Tensor]:
        some = dict(zip("abc", fresh(), strict=True)) | own
        return [some[letter] for letter in form]

    def numbered(form: str) -> list:
        return [letter if letter in own else form.index(letter) for letter in form]

    made = composed(m, *call(traced))
    for form in ("aaa", "aab", "aba", "abb", "abc", "awa", "wab", "abB", "BaB", "wwB", "BBB"):
        assert served(made, *call(form)) is (numbered(form) == numbered(traced)), (traced, form)
    assert set(kinds(made)) == {"identity"} and served(made, *call(traced))


def test_attention_of_itself_and_of_another():
    m = nn.MultiheadAttention(8, 2)
    x, y = torch.randn(5, 2, 8), torch.randn(5, 2, 8)
    itself, cross = composed(m, x, x, x), composed(m, x, y, y)
    assert served(itself, y, y, y) and not served(itself, x, y, y) and not served(itself, x, x, y)
    assert served(cross, y, x, x) and not served(cross, x, x, x) and not served(cross, x, y, x)


class Writing(nn.Module):
    """Writes to an argument and to a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(6))
        self.register_buffer("scale", torch.randn(6))

    def forward(self, x, y):
        x.mul_(2)
        self.seen += y
        return x + y * self.scale + self.seen


def test_memory_that_is_written_to():
    made = composed(Writing(), torch.randn(6), torch.randn(6))
    base = torch.randn(24)
    assert served(made, torch.randn(6), torch.randn(6))
    assert served(made, base[:6], base[8:14]), "one allocation, apart"
    assert not kinds(made)
    for x, y in ((base[:6], base[:6]), (base[:6], base[4:10]), (base[4:10], base[:6])):
        assert not served(made, x, y)
    assert set(kinds(made)) == {"overlap"}
    x = torch.randn(6)
    assert not served(made, x, x)
    assert not served(made, torch.randn(6), made.seen)
    assert not served(made, torch.randn(6), made.seen[:])
    assert not served(made, made.seen[:], torch.randn(6))
    assert not served(made, made.scale[:], torch.randn(6))
    assert set(kinds(made)) == {"overlap", "identity"}
    assert served(made, torch.randn(6), made.scale[:]), "read alone"
    assert served(made, torch.randn(6), torch.randn(6))


def test_buffers_that_come_to_share_memory():
    made = composed(Writing(), torch.randn(6), torch.randn(6))
    assert served(made, torch.randn(6), torch.randn(6))
    made.original.seen = made.original.scale[:]
    assert not served(made, torch.randn(6), torch.randn(6)) and set(kinds(made)) == {"overlap"}
    made.original.seen = torch.zeros(6)
    assert served(made, torch.randn(6), torch.randn(6))


def test_nothing_is_asked_where_nothing_is_written():
    class Reading(nn.Module):
        def forward(self, x, y):
            return x * 2 + y

    made, base = composed(Reading(), torch.randn(6), torch.randn(6)), torch.randn(24)
    assert served(made, base[:6], base[4:10]) and not kinds(made)


def test_elements_that_share_memory():
    for shape, strides, shares in (((4, 6), (6, 1), False), ((4, 6), (0, 1), True), ((6, 4), (1, 6), False)):
        assert overlaps_itself(shape, strides) is shares
    assert overlaps_itself((3, 4), (2, 1)) and not overlaps_itself((1, 4), (0, 1)) and not overlaps_itself((), ())
    x = torch.zeros(4, 6)
    assert range_of(x[1:3, ::2]) == (x.data_ptr() + 24, x.data_ptr() + 24 + 4 * (6 + 4 + 1))
    assert range_of(x[:0]) == (0, 0)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
        self.head.weight = self.table.weight

    def forward(self, i):
        return self.head(self.table(i))


def load(m: Tied, assign: bool) -> None:
    m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}, assign=assign)


UNTIED = {
    "the head": lambda m: setattr(m.head, "weight", nn.Parameter(m.table.weight * 2)),
    "the table": lambda m: setattr(m.table, "weight", nn.Parameter(m.table.weight * 3)),
    "both, by loading": lambda m: load(m, assign=True),
}


@pytest.mark.parametrize("how", UNTIED)
def test_tied_parameters(how):
    m = Tied()
    made, i = composed(m, torch.arange(5)), torch.arange(5)
    assert served(made, i)
    load(m, assign=False)
    m.head.weight = m.table.weight = nn.Parameter(m.table.weight * 2)
    assert served(made, i), "another tensor on both sides"
    before = m.table.weight
    with torch.no_grad():
        UNTIED[how](m)
    assert not served(made, i) and kinds(made) == {"parameter": 2}
    m.head.weight = m.table.weight = before
    assert served(made, i)


STATE = {
    "a bias where there was none": lambda m: setattr(m, "bias", nn.Parameter(torch.ones(4))),
    "a bias that is gone": lambda m: setattr(m, "other", None),
    "another shape of what gives its shape alone": lambda m: setattr(m, "sizes", torch.zeros(7)),
    "a buffer more": lambda m: m.register_buffer("late", torch.ones(4)),
}


@pytest.mark.parametrize("how", STATE)
def test_names_of_state(how):
    class Optional(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_parameter("bias", None)
            self.other = nn.Parameter(torch.ones(4))
            self.register_buffer("sizes", torch.randn(3))

        def forward(self, x):
            x = x * self.sizes.shape[0]
            x = x if self.bias is None else x + self.bias
            x = x if self.other is None else x * self.other
            return x + getattr(self, "late", 0)

    m = Optional()
    made = composed(m, torch.randn(4))
    assert served(made, torch.randn(4))
    m.sizes = torch.randn(3)
    assert served(made, torch.randn(4))
    STATE[how](m)
    assert not served(made, torch.randn(4)) and set(kinds(made)) == {"parameter"}


def test_a_transposed_parameter_in_the_same_memory():
    m = nn.Linear(4, 4)
    made = composed(m, torch.randn(3, 4))
    assert served(made, torch.randn(3, 4))
    m.weight.data = m.weight.data.t()
    assert not served(made, torch.randn(3, 4)) and kinds(made) == {"parameter": 2}
