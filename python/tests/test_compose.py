"""The composed module: right results, and each guard provoked."""

from __future__ import annotations

import collections
import copy
import io
import pickle
import warnings

import pytest
import torch
from composing import Mlp, Still, in_place, kinds, mlp_plan, same, still_plan
from tessera.common.errors import Error
from tessera.running.compose import ComposedModule
from tessera.running.outputs import Outputs, wrapper
from torch import nn
from torch.utils import _pytree as pytree

pytestmark = pytest.mark.filterwarnings("ignore")


def test_runs_the_kernels(pair):
    c, ref = pair
    before = [u.operator.calls for u in c._built.patterns]
    for _ in range(3):
        same(c, ref, torch.randn(8, 16))
    s = c.status()
    assert s["active"] == ["p01", "p02"] and s["served"] == s["calls"] == 3 and not s["fallbacks"]
    assert [u.operator.calls for u in c._built.patterns] == [n + 3 for n in before]
    assert s["leftover"][0]["op"] == "aten.add.Tensor" and s["launch"]["kind"] == "stable-abi"


def test_shares_state(pair):
    c, ref = pair
    assert list(c.state_dict()) == list(ref.state_dict())
    assert all(a is b for a, b in zip(c.parameters(), c.original.parameters(), strict=True))
    assert c.get_submodule("fc1") is c.original.fc1


@pytest.mark.parametrize(
    "kind, x",
    [
        ("shape", torch.randn(5, 16)),
        ("dtype", torch.randn(8, 16).double()),
        ("structure", "text"),
    ],
)
def test_other_inputs_run_the_original(pair, kind, x):
    c, ref = pair
    if kind == "dtype":
        c.double(), ref.double()
    if kind == "structure":
        with pytest.raises(TypeError), torch.no_grad():
            c(x)
    else:
        same(c, ref, x)
    assert kinds(c) == {kind: 1} and c.status()["served"] == 0


def test_another_layout_and_another_address(pair):
    c, ref = pair
    same(c, ref, torch.randn(16, 8).t())
    same(c, ref, torch.randn(8 * 16 + 1)[1:].view(8, 16))  # an unaligned address
    assert kinds(c) == {"layout": 1, "alignment": 1} and c.status()["served"] == 1


def test_warns_once(pair):
    c, _ = pair
    with warnings.catch_warnings(record=True) as heard, torch.no_grad():
        warnings.simplefilter("always")
        for _ in range(3):
            c(torch.randn(5, 16))
    mine = [w for w in heard if "tessera" in str(w.message)]
    assert len(mine) == 1 and mine[0].filename == __file__
    assert kinds(c) == {"shape": 3}


def test_training_runs_the_original(pair):
    c, ref = pair
    x = torch.randn(8, 16)
    c(x).sum().backward()
    ref(x).sum().backward()
    torch.testing.assert_close(c.fc1.weight.grad, ref.fc1.weight.grad)
    assert kinds(c) == {"grad": 1}
    for p in c.parameters():
        p.requires_grad_(False)
    c(x)
    assert c.status()["served"] == 1
    c(x.requires_grad_())
    assert kinds(c) == {"grad": 2}


def test_train_mode_runs_the_original(pair):
    c, _ = pair
    c.train()
    assert c.original.training and c.drop.training
    with torch.no_grad():
        y = c(torch.randn(8, 16))
    assert (y == 0).any() and kinds(c) == {"training": 1}
    c.eval()
    c.drop.train()
    with torch.no_grad():
        c(torch.randn(8, 16))
    assert kinds(c) == {"training": 2}


def test_autocast_runs_the_original(pair):
    c, _ = pair
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert c.fc1(torch.randn(8, 16)).dtype == torch.bfloat16
        c(torch.randn(8, 16))
    assert kinds(c) == {"autocast": 1}


def test_strict_raises(library):
    c = ComposedModule(Mlp().eval(), mlp_plan(library), strict=True)
    with torch.no_grad():
        c(torch.randn(8, 16))
        for x in (torch.randn(5, 16), torch.randn(16, 8).t()):
            with pytest.raises(Error) as e:
                c(x)
            assert e.value.diagnostic["code"] == "TS0522"
        in_place(c)
        c(torch.randn(8, 16))  # packed again: nothing is lost
    with pytest.raises(Error, match="gradients"):
        c(torch.randn(8, 16))


def test_missing_library_runs_aten(library):
    plan = mlp_plan(library)
    plan["steps"][3]["candidate"]["library"] = "/nowhere/kernel.so"
    m = Mlp().eval()
    c, ref = ComposedModule(m, plan), copy.deepcopy(m)
    same(c, ref, torch.randn(8, 16))
    s = c.status()
    assert s["active"] == ["p02"] and "missing" in s["patterns"][0]["reason"]
    with pytest.raises(Error, match=r"TS0521(.|\n)*missing"):
        ComposedModule(m, plan, strict=True)


def test_a_failing_launch_says_so(library):
    c = ComposedModule(Mlp().eval(), mlp_plan(library, rows=13))
    with pytest.raises(RuntimeError, match="refused by the test"), torch.no_grad():
        c(torch.randn(13, 16))


def test_switching_patterns(pair):
    c, ref = pair
    x = torch.randn(8, 16)
    for only in (set(), {"p01"}, {"p02"}):
        d = c.with_patterns(only=only)
        assert set(d.status()["active"]) == only
        with torch.no_grad():
            torch.testing.assert_close(d(x), ref(x), rtol=1e-5, atol=1e-5)


def test_deepcopy_and_pickle(pair):
    c, ref = pair
    d = copy.deepcopy(c)
    assert d.fc1.weight is not c.fc1.weight and d.fc1 is d.original.fc1
    in_place(d)
    same(c, ref, torch.randn(8, 16))
    e = pickle.loads(pickle.dumps(c))
    f = io.BytesIO()
    torch.save(c, f)
    f.seek(0)
    g = torch.load(f, weights_only=False)
    for m in (e, g):
        m.count.copy_(ref.count)
        n = copy.deepcopy(ref)
        same(m, n, torch.randn(8, 16))
        assert m.status()["served"] == 1


def test_aliased_input_is_not_copied():
    """An output that is a view of the input stays one; with other strides the original runs."""

    class View(nn.Module):
        def forward(self, x):
            return x.t(), x + 1

    from composing import node, t, value

    graph = {
        "schema": "tessera.graph/1",
        "device": "cpu",
        "meta": {},
        "inputs": ["x"],
        "outputs": ["v", "y"],
        "values": [value("x", [2, 3], "user_input"), value("v", [3, 2], strides=[1, 3]), value("y", [2, 3])],
        "nodes": [node("v", "t.default", self=t("x")), node("y", "add.Tensor", self=t("x"), other=1)],
    }
    plan = {
        "schema": "tessera.plan/1",
        "graph": graph,
        "steps": [{"kind": "aten", "node": "v"}, {"kind": "aten", "node": "y"}],
        "leftover": [],
    }
    c = ComposedModule(View(), plan)
    x = torch.randn(2, 3)
    v, y = c(x)
    assert v.data_ptr() == x.data_ptr() and torch.equal(y, x + 1)
    for x in (torch.randn(3, 2).t(), torch.randn(7)[1:].view(2, 3)):
        v, y = c(x)
        assert v.data_ptr() == x.data_ptr() and torch.equal(y, x + 1)
    assert kinds(c) == {"layout": 1, "aliased address": 1}


def test_keywords_and_constants(library):
    class Scaled(Mlp):
        def forward(self, x, *, scale=1.0, extra=None):
            return {"y": super().forward(x) * scale}

    plan = mlp_plan(library)
    m = Scaled().eval()
    c = ComposedModule(
        m,
        plan,
        example=((torch.randn(8, 16),), {"scale": 1.0}),
        outputs=Outputs([("value", 0)], pytree.tree_structure({"y": 0})),
    )
    ref = copy.deepcopy(m)
    x = torch.randn(8, 16)
    with torch.no_grad():
        torch.testing.assert_close(c(x=x)["y"], ref(x)["y"])
        assert c.status()["served"] == 1
        torch.testing.assert_close(c(x, scale=2.0)["y"], ref(x, scale=2.0)["y"])
        assert kinds(c) == {"structure": 1}


def test_defaults_cost_no_binding(library):
    """A forward with arguments that the call leaves out: the signature is not bound on every call, and still they count."""

    class Optional(Mlp):
        def forward(self, x, scale=1.0, extra=None):
            y = super().forward(x) * scale
            return y if extra is None else y + extra

    m = Optional().eval()
    c, ref = ComposedModule(m, mlp_plan(library), example=((torch.randn(8, 16),), {})), copy.deepcopy(m)
    bound, normal = [], c._inputs._normal
    c._inputs._normal = lambda *call: (bound.append(call), normal(*call))[1]
    x = torch.randn(8, 16)
    same(c, ref, x)
    assert not bound and c.status()["served"] == 1
    with torch.no_grad():
        for args in ((x, 2.0), (x, 1.0, x)):
            torch.testing.assert_close(c(*args), ref(*args))
        torch.testing.assert_close(c(x, 1.0), ref(x))
    assert kinds(c) == {"structure": 2} and c.status()["served"] == 2


def test_a_form_of_call_is_bound_once(library):
    """Tensors and switches by name, as models are called: bound once in each form, and other switches still miss."""

    class Switched(Mlp):
        def forward(self, x, y=None, twice=False, shift=0.0):
            out = super().forward(x) * (2 if twice else 1) + shift
            return out if y is None else out + y

    m, x = Switched().eval(), torch.randn(8, 16)
    c, ref = ComposedModule(m, mlp_plan(library), example=((x,), {"twice": False})), copy.deepcopy(m)
    bound, normal = [], c._inputs._normal
    c._inputs._normal = lambda *call: (bound.append(call), normal(*call))[1]
    with torch.no_grad():
        for _ in range(3):
            for kwargs in ({"x": x, "twice": False}, {"twice": False, "x": x}, {"x": x, "y": None, "shift": 0.0}):
                torch.testing.assert_close(c(**kwargs), ref(**kwargs))
        assert len(bound) == 3 and c.status()["served"] == 9
        others = {"x": x, "twice": True}, {"x": x, "y": x, "shift": 0.0}, {"x": x, "y": None, "shift": 1.0}
        for kwargs in (*others, {"x": x, "twice": 0}):
            torch.testing.assert_close(c(**kwargs), ref(**kwargs))
    assert kinds(c) == {"structure": 4} and c.status()["served"] == 9  # 0 is of another type than False


def test_nested_results_are_made_again():
    results = [("value", 1), ("constant", None), ("value", 0), ("value", 1), ("constant", "text")]
    pair = collections.namedtuple("pair", "first second")
    nested = {"a": [0, None], "b": pair(1, (2,)), "c": "text"}
    outputs = Outputs(results, pytree.tree_structure(nested))
    flat = (torch.zeros(1), torch.ones(1))
    assert str(outputs.maker()(flat)) == str(outputs(flat))
    assert outputs.maker()(flat)["b"].first is flat[0]
    assert wrapper(outputs, 2)(flat)["a"][0] is flat[1]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_without_graph_breaks(library, backend):
    m = Still().eval()
    c, ref = ComposedModule(m, still_plan(library)), copy.deepcopy(m)
    f = torch.compile(c, fullgraph=True, backend=backend)
    x = torch.randn(8, 16)
    launches = c._built.patterns[0].operator.calls
    same(f, ref, x)
    in_place(c), in_place(ref)
    same(f, ref, x)
    assert c._built.patterns[0].operator.calls == launches + 2
    with torch.no_grad():
        torch.testing.assert_close(f(torch.ones(5, 16)), ref(torch.ones(5, 16)))


def test_what_writes_runs_as_itself_where_torch_compiles(pair):
    c, ref = pair
    f = torch.compile(c, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        same(f, ref, torch.randn(8, 16))
    assert torch.equal(c.count, ref.count)


def test_leftover_by_inductor(library):
    m = Mlp().eval()
    c, ref = ComposedModule(m, mlp_plan(library), leftover="inductor"), copy.deepcopy(m)
    for _ in range(2):
        same(c, ref, torch.randn(8, 16))
    in_place(c), in_place(ref)
    same(c, ref, torch.randn(8, 16))
    s = c.status()
    assert list(c.state_dict()) == list(ref.state_dict()) and len(list(m.modules())) == len(list(ref.modules()))
    assert s["leftover_by"] == "inductor" and s["repacks"] == 0 and s["served"] == 3


def test_malformed_plans(library):
    for damage, code in (
        (lambda p: p["steps"].append({"kind": "sing"}), "TS0214"),
        (lambda p: p["graph"]["outputs"].append("nothing"), "TS0214"),
        (lambda p: p["steps"].append({"kind": "aten", "node": "nothing"}), "TS0214"),
        (lambda p: p["graph"]["values"][1].update(target="fc9.weight"), "TS0215"),
        (lambda p: p["graph"]["nodes"][0].update(op="aten.sing.default"), "TS0220"),
    ):
        plan = mlp_plan(library)
        damage(plan)
        with pytest.raises(Error) as e:
            ComposedModule(Mlp(), plan)
        assert e.value.diagnostic["code"] == code


def _whole(ref, x, mlp):
    return ref.drop(x + mlp)


def test_threads(pair):
    """Many threads call one module while it is packed for the first time, and again after its parameters changed."""
    import threading

    c, ref = pair
    inputs = [torch.randn(8, 16) for _ in range(8)]
    for _ in range(3):
        with torch.no_grad():
            for m in (c.original, ref):
                m.fc1.weight.mul_(1.5)
            expected = [ref.fc2(nn.functional.gelu(ref.fc1(x))) for x in inputs]
        results, barrier = {}, threading.Barrier(len(inputs))

        def work(i, results=results, barrier=barrier):
            barrier.wait()
            with torch.no_grad():
                results[i] = [c(inputs[i]) for _ in range(20)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(results) == len(inputs)
        for i, x in enumerate(inputs):
            for y in results[i]:
                torch.testing.assert_close(y, _whole(ref, x, expected[i]), rtol=1e-5, atol=1e-5)
    assert not kinds(c).keys() - {"repack"}
