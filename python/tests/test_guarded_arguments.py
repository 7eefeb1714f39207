"""What forward asks of an argument in Python, and under which names and in which order a module holds what it has: a change is a
miss, by the extension's guards and by Python's."""

from __future__ import annotations

import pytest
import torch
from guarding import composed, kinds, served
from tessera.running import fast_guard
from torch import nn


@pytest.fixture(params=["extension", "python"], autouse=True)
def by(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr(fast_guard, "at_hand", lambda: (None, "the test asks for Python's"))
    else:
        assert fast_guard.extension()[0] is not None
    return request.param


def refused(made, by: str, *args) -> bool:
    """By the guards that the test is about, and by the close look at it; the results are eager's. Nothing is copied: a copy of a
    parameter has none of its attributes."""
    fast, before = made._guard._fast, made.status()["served"]
    assert (fast is None) is (by == "python")
    assert all(torch.equal(made(*args), made.original(*args)) for _ in range(2))
    return (fast is None or fast(args, {}) is None) and made.status()["served"] == before


class AsksClass(nn.Module):
    def forward(self, x):
        return x * (2 if isinstance(x, nn.Parameter) else 1)


class AsksTag(nn.Module):
    def forward(self, x):
        return x * getattr(x, "tag", 1)


class OfList(nn.Module):
    def forward(self, several):
        return several[0] * getattr(several[0], "tag", 1) + (isinstance(several[1], nn.Parameter))


def plain() -> torch.Tensor:
    return torch.randn(2, 4)


def parameter() -> torch.Tensor:
    return nn.Parameter(plain(), requires_grad=False)


def tagged(x: torch.Tensor, **tags) -> torch.Tensor:
    x.__dict__.update(tags)
    return x


@pytest.mark.parametrize(("traced", "later"), [(plain, parameter), (parameter, plain)])
@torch.no_grad()
def test_the_class_of_an_argument(by, traced, later):
    made = composed(AsksClass(), traced())
    assert served(made, traced())
    assert refused(made, by, later())
    assert kinds(made) == {"subclass": 2} and served(made, traced())


@pytest.mark.parametrize("make", [plain, parameter])
@torch.no_grad()
def test_an_attribute_of_an_argument(by, make):
    made = composed(AsksTag(), make())
    x = make()
    assert served(made, x)
    x.tag = 5
    assert refused(made, by, x) and kinds(made) == {"attribute": 2}
    assert "`tag`" in made.status()["fallbacks"][0]["reason"]
    del x.tag
    assert served(made, x) and served(made, make())


@torch.no_grad()
def test_an_attribute_is_no_part_of_a_trace(by):
    made = composed(AsksTag(), tagged(plain(), tag=5))
    assert not served(made, tagged(plain(), tag=5))
    assert served(made, plain()) and refused(made, by, tagged(plain(), tag=5))


@torch.no_grad()
def test_notes_of_dynamo_do_not_matter():
    made, x = composed(AsksTag(), plain()), plain()
    torch._dynamo.mark_static_address(x)
    assert x.__dict__ and served(made, x)


@torch.no_grad()
def test_arguments_in_a_list():
    made = composed(OfList(), [plain(), plain()])
    assert served(made, [plain(), plain()])
    assert not served(made, [tagged(plain(), tag=5), plain()]) and not served(made, [plain(), parameter()])
    assert kinds(made) == {"attribute": 2, "subclass": 2} and served(made, [plain(), plain()])


class Unskipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        for name, child in self.named_children():
            x = x if name.startswith("skip") else child(x)
        return x + sum(1 for _ in self.modules())


class InOrder(nn.Module):
    """Horner's scheme over what it holds."""

    def __init__(self, held: str):
        super().__init__()
        self.held, tensors = held, {"p": torch.full((4,), 3.0), "q": torch.full((4,), 5.0)}
        if held == "dict":
            self.dict = nn.ParameterDict(tensors)
        for name, t in tensors.items() if held != "dict" else ():
            if held == "parameters":
                setattr(self, name, nn.Parameter(t))
            else:
                self.register_buffer(name, t)

    def forward(self, x):
        for t in self.dict.values() if self.held == "dict" else getattr(self, self.held)():
            x = x * 2 + t
        return x


class Named(nn.Module):
    """Reads of its parameter no more than the name."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * (2 if next(iter(self._parameters)) == "p" else 3)


def moved(held: dict, name: str, to: str | None = None):
    held[to or name] = held.pop(name)


@torch.no_grad()
def test_the_name_of_a_submodule(by):
    made, x = composed(Unskipped(), plain()), plain()
    assert served(made, x)
    moved(made.original._modules, "a", "skip_a")
    assert refused(made, by, x)
    moved(made.original._modules, "skip_a", "a")
    assert served(made, x)
    made.original.a.add_module("late", nn.Identity())
    assert refused(made, by, x)


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Sequential(nn.Tanh(), nn.Tanh())
        self.two = nn.ModuleDict({"2": nn.Tanh()})

    def forward(self, x):
        return x * len(self.one)


@torch.no_grad()
def test_a_submodule_that_goes_from_one_module_to_the_next(by):
    made, x = composed(Counted(), plain()), plain()
    assert served(made, x)
    m = made.original
    two = m.two._modules.pop("2")
    m.two._modules |= {"1": m.one._modules.pop("1"), "2": two}
    assert refused(made, by, x)


@pytest.mark.parametrize("held", ["parameters", "buffers", "dict"])
@torch.no_grad()
def test_the_order_of_parameters_and_buffers(by, held):
    made, x = composed(InOrder(held), plain()), plain()
    assert served(made, x)
    m = made.original
    own = m._buffers if held == "buffers" else m.dict if held == "dict" else m._parameters
    moved(own, "p")
    assert refused(made, by, x) and set(kinds(made)) <= {"parameter", "attribute"}
    moved(own, "q")
    assert served(made, x)


@torch.no_grad()
def test_the_name_of_a_parameter_that_no_graph_reads(by):
    made, x = composed(Named(), plain()), plain()
    assert served(made, x)
    moved(made.original._parameters, "p", "r")
    assert refused(made, by, x)
    moved(made.original._parameters, "r", "p")
    assert served(made, x)
