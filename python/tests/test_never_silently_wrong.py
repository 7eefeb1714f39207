"""What may change behind a composed module's back: each change gives the original's result, or its warning."""

from __future__ import annotations

import copy
import io
import pickle
import types
import warnings

import numpy as np
import pytest
import torch
from composing import Mlp, compile_kernel, mlp_plan, node, t, value
from tessera.judging.perturbed import perturb
from tessera.running.compose import ComposedModule
from tessera.tracing.captured import FlatCall, hold_graph
from tessera.tracing.held import hold
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.autograd import forward_ad


class Two(nn.Module):
    """Two linears of one input, with plain attributes of every kind."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 4), nn.Linear(8, 6)
        self.scale = 2.0
        self.sizes = [1, 2]
        self.config = types.SimpleNamespace(shift=1.0, name="two")

    def forward(self, x):
        y = torch.cat([self.a(x), self.b(x)], -1)
        return y * self.scale + self.config.shift * self.sizes[0]


def merged_plan() -> dict:
    """The engine's form of Two: one linear of concatenated weights."""
    values = [
        value("x", [3, 8], "user_input"),
        *(value(f"{n}_w", [rows, 8], "parameter", f"{n}.weight") for n, rows in (("a", 4), ("b", 6))),
        *(value(f"{n}_b", [rows], "parameter", f"{n}.bias") for n, rows in (("a", 4), ("b", 6))),
        value("w", [10, 8]),
        value("bias", [10]),
        *(value(name, [3, 10]) for name in ("y", "m", "s")),
    ]
    nodes = [
        node("w", "cat.default", tensors=[t("a_w"), t("b_w")], dim=0) | {"prepack": True},
        node("bias", "cat.default", tensors=[t("a_b"), t("b_b")], dim=0) | {"prepack": True},
        node("y", "linear.default", input=t("x"), weight=t("w"), bias=t("bias")),
        node("m", "mul.Tensor", self=t("y"), other=2.0),
        node("s", "add.Tensor", self=t("m"), other=1.0, alpha=1),
    ]
    graph = {
        "schema": "tessera.graph/1",
        "name": "two",
        "device": "cpu",
        "precision": "fp32",
        "meta": {},
        "inputs": ["x", "a_w", "b_w", "a_b", "b_b"],
        "outputs": ["s"],
        "values": values,
        "nodes": nodes,
        "mutations": [],
    }
    steps = [{"kind": "prepack", "nodes": [n], "outputs": [n]} for n in ("w", "bias")]
    return {"schema": "tessera.plan/1", "graph": graph, "steps": steps, "leftover": []}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def pair():
    torch.manual_seed(0)
    m = Two().eval()
    return ComposedModule(m, merged_plan()), copy.deepcopy(m)


def same(composed, reference) -> None:
    x = torch.randn(3, 8, dtype=reference.a.weight.dtype)
    with torch.no_grad():
        torch.testing.assert_close(composed(x), reference(x), rtol=1e-5, atol=1e-5)


def kinds(composed) -> dict[str, int]:
    return {e["kind"]: e["count"] for e in composed.status()["fallbacks"]}


def load_changed(m):
    m.load_state_dict({k: v * 2 + 1 for k, v in m.state_dict().items()})


def assign_changed(m):
    m.load_state_dict({k: v * 2 + 1 for k, v in m.state_dict().items()}, assign=True)


def data_scaled(m):
    m.a.weight.data.mul_(3)


def data_added(m):
    m.b.weight.data += 0.5
    m.b.bias.data -= 1


def data_exchanged(m):
    m.a.weight.data = m.a.weight.data * 2


def replaced(m):
    m.b.weight = nn.Parameter(torch.ones(6, 8))


def in_place(m):
    with torch.no_grad():
        m.a.bias.fill_(7)


def moved(m):
    m.to(torch.float64)
    m.to(torch.float32)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    "change", [load_changed, assign_changed, data_scaled, data_added, data_exchanged, replaced, in_place, moved]
)
def test_parameters(change, frozen):
    torch.manual_seed(0)
    m = Two().eval()
    c, ref = ComposedModule(m, merged_plan(), frozen=frozen), copy.deepcopy(m)
    same(c, ref)
    for _ in range(2):
        change(m), change(ref)
        same(c, ref), same(c, ref)
    s = c.status()
    assert s["served"] == s["calls"] and not kinds(c), kinds(c)
    assert m.a.weight.data_ptr() + m.a.weight.nbytes == m.b.weight.data_ptr(), "neighbours again"


def test_parameters_of_another_type_are_not_read():
    """Kernels that were made for float32 would read past the end of float16's memory."""

    class Lookup(nn.Embedding):
        def forward(self, x):
            return super().forward(x) * 2

    m = Lookup(8, 4)
    held = hold(m, (torch.arange(3),), {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    c = held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "eager")
    read, runner = [], c._runner
    c.__dict__["_runner"] = lambda x, w: (read.append(w.dtype), runner(x, w))[1]
    with torch.no_grad():
        c(torch.arange(3))
        m.half()
        assert c(torch.arange(3)).dtype == torch.float16
    assert read == [torch.float32] and kinds(c) == {"parameter": 1}


def test_nothing_is_kept_twice(pair):
    c, _ = pair
    assert c._built.neighbours == {"w": ("a_w", "b_w"), "bias": ("a_b", "b_b")} and not c._built.packed
    whole = c._feeds.now[0][c._feeds.names.index("w")]
    assert whole.shape == (10, 8) and whole.data_ptr() == c.a.weight.data_ptr()


def test_a_parameter_that_others_look_at_is_left_alone():
    torch.manual_seed(0)
    m = Two().eval()
    mirror = m.a.weight.data  # as an EMA, a flat parameter or a LoRA tool holds it
    c, ref = ComposedModule(m, merged_plan()), copy.deepcopy(m)
    same(c, ref)
    mirror.mul_(3), ref.a.weight.data.mul_(3)
    for _ in range(5):
        same(c, ref)
    assert mirror.data_ptr() == m.a.weight.data_ptr() and kinds(c)["apart"] > 0
    assert c.status()["served"] == c.status()["calls"]
    del mirror
    for _ in range(9):
        same(c, ref)
    assert not c._feeds.now[1] and m.a.weight.data_ptr() + m.a.weight.nbytes == m.b.weight.data_ptr()


def test_parameters_over_foreign_memory_stay_there():
    array, m = np.ones((4, 8), dtype=np.float32), Two().eval()
    m.a.weight = nn.Parameter(torch.from_numpy(array))
    c, ref = ComposedModule(m, merged_plan()), copy.deepcopy(m)
    for _ in range(4):
        array *= 2
        ref.a.weight.data.mul_(2), same(c, ref)


def test_tied_and_copied_and_pickled(pair):
    c, ref = pair
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        other.original.a.weight.data.mul_(2)
        same(c, ref)
        doubled = copy.deepcopy(ref)
        doubled.a.weight.data.mul_(2)
        same(other, doubled)
        assert other._built.neighbours and not other._feeds.now[1]
    m = Two().eval()
    m.c = nn.Linear(8, 4)
    m.c.weight = m.a.weight
    tied = ComposedModule(m, merged_plan())
    m.c.weight.data.zero_()
    same(tied, m)
    assert m.c.weight is m.a.weight and not tied._feeds.now[1]


def test_saved_state_has_its_own_size(pair):
    c, ref = pair
    file = io.BytesIO()
    torch.save({"only": c.a.weight.data}, file)
    plain = io.BytesIO()
    torch.save({"only": ref.a.weight.data.clone()}, plain)
    assert len(file.getvalue()) == len(plain.getvalue())


@pytest.mark.parametrize(
    "change, back",
    [
        (lambda m: setattr(m, "scale", 3.0), lambda m: setattr(m, "scale", 2.0)),
        (lambda m: setattr(m, "scale", 2), lambda m: setattr(m, "scale", 2.0)),
        (lambda m: setattr(m.config, "shift", 0.0), lambda m: setattr(m.config, "shift", 1.0)),
        (lambda m: m.sizes.__setitem__(0, 5), lambda m: m.sizes.__setitem__(0, 1)),
        (lambda m: delattr(m.config, "name"), lambda m: setattr(m.config, "name", "two")),
    ],
)
def test_attributes(pair, change, back):
    c, ref = pair
    same(c, ref)
    change(c.original), change(ref)
    same(c, ref)
    assert kinds(c) == {"attribute": 1}
    back(c.original), back(ref)
    same(c, ref)
    assert c.status()["served"] == 2


def test_attributes_that_are_set_on_the_composed_module(pair):
    c, ref = pair
    c.scale = ref.scale = 3.0
    same(c, ref)
    assert c.original.scale == 3.0 and kinds(c) == {"attribute": 1}
    c.scale = ref.scale = 2.0
    same(c, ref)
    assert kinds(c) == {"attribute": 1}


def test_a_tensor_attribute():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.randn(8)

        def forward(self, x):
            return x * torch.exp(self.table)

    m = Table().eval()
    traced = trace_module(m, (torch.randn(3, 8),))
    exp = next(n for n in traced.graph["nodes"] if "exp" in n["op"])
    steps = [{"kind": "prepack", "nodes": [exp["name"]], "outputs": exp["outputs"]}]
    c = ComposedModule(m, {"graph": traced.graph, "steps": steps, "leftover": []}, constants=traced.constants)
    x = torch.randn(3, 8)
    for change in (lambda: m.table.data.mul_(2), lambda: setattr(m, "table", torch.randn(8)), lambda: m.table.zero_()):
        change()
        assert torch.equal(c(x), m(x))
    assert c.status()["served"] == 3


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_kernel(tmp_path_factory.mktemp("kernels"))


def test_precision_flags(library):
    c = ComposedModule(Mlp().eval(), mlp_plan(library))
    x = torch.randn(8, 16)
    with torch.no_grad():
        c(x)
        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("high")
            c(x)
            assert kinds(c) == {"precision": 1}
        finally:
            torch.set_float32_matmul_precision(before)
        c(x)
    assert c.status()["served"] == 2


def test_lost_kernels_are_said_and_not_served(library):
    plan = mlp_plan(library)
    plan["steps"][3]["candidate"]["library"] = "/nowhere/kernel.so"
    with pytest.warns(UserWarning, match=r"1 of 2 kernels cannot be loaded.*missing"):
        c = ComposedModule(Mlp().eval(), plan)
    with torch.no_grad():
        c(torch.randn(8, 16))
    s = c.status()
    assert s["calls"] == 1 and s["served"] == 0 and [p["id"] for p in s["lost"]] == ["p01"]
    assert [p["calls"] for p in s["patterns"]] == [0, 1]
    off = c.with_patterns(without={"p01"})  # asked for: nothing is lost
    with torch.no_grad():
        off(torch.randn(8, 16))
    assert off.status()["served"] == 1 and not off.status()["lost"]


@pytest.mark.parametrize("runner", ["eager", "inductor"])
def test_the_whole_module_by_pytorch(library, runner):
    torch.manual_seed(0)
    m = Mlp().eval()
    ref = copy.deepcopy(m)
    c = ComposedModule(m, mlp_plan(library), runner=runner)
    for rows in (8, 5):
        x = torch.randn(rows, 16)
        with torch.no_grad():
            torch.testing.assert_close(c(x), ref(x), rtol=1e-5, atol=1e-5)
    s = c.status()
    assert s["runner"] == runner and s["active"] == [] and s["served"] == s["calls"] == 2
    assert runner in s["patterns"][0]["reason"] and runner in repr(c)


class Asserts(nn.Module):
    def forward(self, x):
        torch._assert_async((x > 0).all(), "not positive")
        return torch.sqrt(x) * 2


def test_what_forward_asserts_holds_in_each_call():
    x = torch.rand(4, 8) + 0.1
    held = hold(Asserts().eval(), (x,), {})
    (row,) = held.graph["assertions"]
    assert row["message"] == "not positive"
    made = ComposedModule(held.module, {"schema": "tessera.plan/1", "graph": held.graph, "steps": [], "leftover": []})
    with torch.no_grad():
        assert torch.equal(made(x), torch.sqrt(x) * 2) and made.status()["served"] == 1
        with pytest.raises(RuntimeError, match="not positive"):
            made(-x)


def test_what_dynamo_does_not_guard():
    """Behind torch.compile a tangent and a lazily negated argument are the captured ops', not the kernels'."""
    made = []

    def door(gm, inputs):
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        with unset_fake_temporarily():
            held = hold_graph(gm, inputs, {})
            steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
            made.append(held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "eager"))
        return FlatCall(made[-1], held)

    m = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).requires_grad_(False).eval()
    f, x, t = torch.compile(m, backend=door), torch.randn(3, 8), torch.randn(3, 8)
    torch.testing.assert_close(f(x), m(x))
    torch.testing.assert_close(f(torch._neg_view(x)), m(-x))
    with forward_ad.dual_level():
        got, wanted = (forward_ad.unpack_dual(g(forward_ad.make_dual(x, t))) for g in (f, m))
        torch.testing.assert_close(got.tangent, wanted.tangent)
    assert {e["kind"] for composed in made for e in composed.status()["fallbacks"]} == {"type", "transform"}


def test_inductor_compiled_where_gradients_are_recorded():
    """A part's search ends outside of the no_grad that the part was captured under."""
    made = []

    def door(gm, inputs):
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        with unset_fake_temporarily():
            made.append(hold_graph(gm, inputs, {}))
        return lambda *flat: run[0](*flat)

    m, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(3, 8)
    f, run = torch.compile(m, backend=door), []
    with torch.no_grad():
        run.append(lambda *flat: made[0].module.gm.forward(*flat))
        f(x)
    run[0] = made[0].inductor()
    with torch.no_grad():
        result = f(x)
        torch.testing.assert_close(result, m(x))
    assert len(made) == 1 and not result.requires_grad


def test_values_are_drawn_whatever_the_default_device():
    x = torch.zeros(4, 8)
    wanted = perturb(x, {}, torch.Generator().manual_seed(3), 1.0)
    with torch.device("meta"):
        assert torch.equal(perturb(x, {}, torch.Generator().manual_seed(3), 1.0), wanted)
