"""Results, inputs and buffers lie in the memory that the original has them in, after canonicalization too, whoever runs the rest."""

from __future__ import annotations

import copy

import graph_tools
import pytest
import torch
from tessera.common.errors import Error
from tessera.tracing.held import hold, inputs_of
from tessera.tracing.memory import relations
from tessera.tracing.tracer import trace_module
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")


def clones(m, x, y):
    return (
        x.clone().view(-1),
        (x * 1).t(),
        (x - 0)[:4],
        m.b.clone().view(-1),
        m.w.clone()[None],
        (y / 1).expand(2, 8, 8),
    )


def views(m, x, y):
    return x.view(-1), x, m.b, m.b[2:].t(), m.w, m.w[None], y.chunk(2)[1], y.diagonal()


def shared(m, x, y):
    z = x * y
    first, second = z.split(3, 1)[:2]
    return z[1:], z, z.t(), first, second, z, torch.relu(z), z.reshape(-1)


def old_beside_new(m, x, y):
    old = m.b.clone().view(-1)
    kept = x.clone()[:2]
    x.mul_(3)
    m.b.mul_(0.5).add_(x)
    return old, kept, x, m.b, x.view(-1), m.b[1:]


def delay_line(m, x, y):
    m.older.copy_(m.b)
    m.b.copy_(x)
    return m.b - m.older


def exchanged(m, x, y):
    t = m.b.clone()
    m.b.copy_(m.older)
    m.older.copy_(t)
    return m.b + x


def turned(m, x, y):
    m.b.copy_(m.b.t().clone())
    m.older.copy_(m.b.flip(0))
    return x + m.older


def copied(m, x, y):
    z = x * 2
    x.copy_(z)
    return z, x, z.view(-1)


def through_views(m, x, y):
    m.b[0].copy_(x[1])
    m.b[:, 1].add_(y[0])
    x.view(-1)[3:9].zero_()
    return m.b.sum(), x


def literal(m, x, y):
    c = torch.tensor([1.0, 2.0])
    return c, c[1:], torch.zeros(3), x + c.sum()


def parameters_in(m, x, y):
    m.w.mul_(0.5)
    return m.w + x[0], m.w


def conversions(m, x, y):
    return x.to(torch.float32), x.float().view(-1), x.contiguous(), x.t().contiguous(), x.reshape(8, 8), y.detach()


def again(m, x, y):
    v, z = m.w.reshape(-1), x * 2
    first = z[None].chunk(2)[0]
    return v, v, m.w.reshape(-1), z, first, z.narrow(0, 0, 8), first, x[2:], x[2:]


def laid_out(m, x, y):
    z = x.t().mul(2)
    return z.index_put((torch.tensor([0]),), z[-1:]), x.t().relu(), (y.t() * 1).t().contiguous(), z.t().exp()


def laid_out_together(m, x, y):
    v = x.clone().t_()
    v.scatter_(0, torch.zeros(1, 8, dtype=torch.int64), y)
    z = x.t().mul(2)
    s = z.index_put((torch.tensor([0]),), z[-1:])
    return v[2:], v, v.t(), s[1:], s, s[None].expand(3, 8, 8)


def hidden_views(m, x, y):
    v = m.b.mul_(2)
    w = v.type_as(m.older)
    m.b.zero_()
    loss = torch.nn.functional.smooth_l1_loss(x, x, reduction="none")
    wide = torch.broadcast_tensors(x, x[None])[0]
    turned = torch.einsum("ij->ji", y)
    rows = torch.meshgrid(m.w, m.w, indexing="ij")[0]
    x.index_put_((torch.tensor([0, -1]),), torch.full((), 2.0))
    y.mul_(3)
    return w, loss, wide, turned, rows, x


def of_several(m, x, y):
    v, u = m.w.transpose(-1, -1), x.view(8, 8)
    torch.broadcast_tensors(m.w, v)
    same = torch.broadcast_tensors(y, u)[1]
    return v, v * 2, u, same, torch.broadcast_tensors(x, u)[0]


def other_forms(m, x, y):
    v, flat = m.b.copy_(x[0]), m.b.view(-1)
    return (
        v * 2,
        flat,
        m.w.copy_(y[0].double() * 3) / 3,
        m.older.copy_((x * 4).int()).sin(),
        x.copy_(y[1:2].double()) - 1,
    )


EVERY = [
    of_several,
    other_forms,
    hidden_views,
    again,
    laid_out,
    laid_out_together,
    clones,
    views,
    shared,
    old_beside_new,
    delay_line,
    exchanged,
    turned,
    copied,
    through_views,
    literal,
    parameters_in,
    conversions,
]


def made(forward) -> nn.Module:
    torch.manual_seed(0)
    m = graph_tools.module(lambda self, x, y: forward(self, x, y), b=torch.randn(8, 8), older=torch.randn(8, 8))
    m.w = nn.Parameter(torch.randn(8))
    return m.eval()


def arguments(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    return torch.randn(8, 8), torch.randn(8, 8)


def observed(m: nn.Module, args: tuple, result) -> list:
    """What a caller can see of a call: values, strides, memory, and what a write into each result changes."""
    leaves = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
    state = [*args, *m.buffers(), *m.parameters()]
    values = [t.clone() for t in (*leaves, *state)]
    seen = [(t.dtype, t.shape, t.stride()) for t in leaves]
    return [seen, relations(leaves, state), *values]


@pytest.mark.parametrize("runner", ["eager", "inductor"])
@pytest.mark.parametrize("form", ["traced", "canonical"])
@pytest.mark.parametrize("forward", EVERY, ids=lambda f: f.__name__)
def test_as_the_original(forward, form, runner):
    m, mine = made(forward), made(forward)
    with torch.no_grad():
        held = hold(mine, arguments(0), {})
        graph = held.graph if form == "traced" else graph_tools.canonical(held.graph)
        steps = [{"kind": "prepack" if n.get("prepack") else "aten", "node": n["name"]} for n in graph["nodes"]]
        for step, node in zip(steps, graph["nodes"], strict=True):
            step |= {"nodes": [node["name"]], "outputs": node["outputs"]}
        composed = held.compose({"graph": graph, "steps": steps}, runner)
        for call in range(3):
            ours, theirs = arguments(call), arguments(call)
            got, wanted = observed(mine, ours, composed(*ours)), observed(m, theirs, m(*theirs))
            assert got[:2] == wanted[:2]
            for a, b in zip(got[2:], wanted[2:], strict=True):
                torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
        assert composed.status()["served"] == 3
        if runner == "eager":  # what the caller writes into a result is seen where it is seen of the original's
            ours, theirs = arguments(9), arguments(9)
            for a, b in zip(composed(*ours), m(*theirs), strict=True):
                if a._is_view() or not b.is_leaf or b.dim():
                    a.select(0, 0).fill_(7.0)
                    b.select(0, 0).fill_(7.0)
            for a, b in zip((*ours, *mine.buffers(), *mine.parameters()), (*theirs, *m.buffers(), *m.parameters())):
                assert torch.equal(a, b)


def test_what_is_one_object():
    m, x = made(clones), torch.randn(8, 8)
    assert trace_module(m, (x, x)).graph["meta"]["memory"]["same"] == [["x", "y"]]
    assert trace_module(m, (x, m.b)).graph["meta"]["memory"]["same"] == [["buffer:b", "y"]]
    assert trace_module(m, (x, x.clone())).graph["meta"]["memory"]["same"] == []


@pytest.mark.parametrize("kind", ["one tensor", "overlapping", "buffer"])
def test_writes_to_shared_memory_are_refused(kind):
    m, base = made(old_beside_new), torch.randn(10, 8)
    args = {"one tensor": (base[:8],) * 2, "overlapping": (base[:8], base[2:]), "buffer": (m.b, base[:8])}[kind]
    m = made(copied) if kind == "overlapping" else m
    if kind == "overlapping":
        m = graph_tools.module(lambda self, x, y: x.mul_(2) + y)
    with pytest.raises(Error) as e:
        trace_module(m, args)
    assert e.value.diagnostic["code"] == "TS0206"


def test_statistics_are_written():
    m = graph_tools.module(
        lambda self, x: torch.nn.functional.batch_norm(x, self.mean, self.var, None, None, True, 0.1),
        mean=torch.zeros(6),
        var=torch.ones(6),
    )
    with torch.no_grad():
        held = hold(m, (torch.randn(4, 6),), {})
        assert {"b_mean", "b_var"} <= set(held.graph["meta"]["memory"]["written"])
        steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
        composed, ref = held.compose({"graph": held.graph, "steps": steps}, "eager"), copy.deepcopy(m)
        for each in (m, ref):
            each.mean = each.var
        x = torch.randn(4, 6)
        assert torch.equal(composed(x), ref(x)) and torch.equal(m.var, ref.var)
        assert [f["kind"] for f in composed.status()["fallbacks"]] == ["overlap"]


def test_writes_to_elements_that_share_memory_are_refused():
    m = graph_tools.module(lambda self, x: x[:, :1].clone().expand(4, 6).index_put_((torch.tensor([0]),), x[:1]))
    with pytest.raises(Error, match="TS0206"):
        trace_module(m, (torch.randn(4, 6),))


@pytest.mark.parametrize("change", [lambda t: t.unsqueeze_(0), lambda t: t.t_(), lambda t: t.transpose_(0, 1)])
def test_other_forms_in_place_are_refused(change):
    m = graph_tools.module(lambda self, x: change(self.b) + x, b=torch.randn(2, 3))
    with pytest.raises(Error, match="TS0206"):
        trace_module(m, (torch.randn(1),))


@torch.no_grad()
def test_elements_that_share_memory():
    x = torch.randn(1, 6).expand(6, 6)
    held = hold(graph_tools.module(lambda self, x, y: (x * 2 + y.sum(), y)), (x, x[..., 1:]), {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    composed = held.compose({"graph": held.graph, "steps": steps}, "eager")
    for seed in range(2):
        args, _ = held.copies(*inputs_of(held, seed))
        assert [t.stride() for t in args] == [(0, 1), (0, 1)]
        for a, b in zip(composed(*args), held.module(*args), strict=True):
            assert torch.equal(a, b) and a.stride() == b.stride()
    composed(x, x[..., 1:])  # begins at no multiple of 16 bytes


def test_statistics_whose_writes_no_schema_says_are_written():
    norm = torch.nn.functional.instance_norm
    m = graph_tools.module(lambda self, x, mean, var: norm(x, mean, var, use_input_stats=True, momentum=0.5) * 2)
    args = torch.randn(2, 3, 8), torch.zeros(3), torch.ones(3)
    with torch.no_grad():
        held = hold(m, args, {})
        assert {row["target"] for row in held.graph["mutations"]} == {"input:mean", "input:var"}
        steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
        ours, (mine, theirs) = (
            held.compose({"graph": held.graph, "steps": steps}, "eager"),
            (held.copies(args, {})[0] for _ in "ab"),
        )
        torch.testing.assert_close(ours(*mine), m(*theirs))
        torch.testing.assert_close(mine, theirs)


def test_writes_beside_each_other_are_taken():
    base = torch.randn(16, 8)
    m = graph_tools.module(lambda self, x, y: x.mul_(2) + y)
    memory = trace_module(m, (base[:8], base[8:])).graph["meta"]["memory"]
    assert "x" in memory["written"]


def test_record_is_of_the_trace():
    m = made(shared)
    rows = trace_module(m, arguments(0)).graph["meta"]["memory"]["outputs"]
    assert rows[0] is None and rows[6] is None and [r["of"] for r in rows if r] == [0, 0, 0, 0, 1, 0]
    assert rows[5] == {"of": 1, "same": True} and rows[3]["offset"] == -8
    assert copy.deepcopy(m) is not m


@pytest.mark.parametrize(
    "written",
    [lambda y: y.expand(2, 8, 8)[0].fill_(3.0), lambda y: torch.meshgrid(y[0], y[1], indexing="ij")[1][1:].mul_(-0.0)],
)
def test_writes_to_a_part_of_what_shares_memory_are_refused(written):
    """Functionalization adds up what the elements that share a place hold."""
    m = graph_tools.module(lambda self, x: (y := x.clone(), written(y), y)[2])
    with pytest.raises(Error, match="TS0206"):
        trace_module(m, (torch.randn(8, 8),))


@pytest.mark.parametrize(
    "written",
    [
        lambda y: y.unfold(-1, 2, 3).mul_(2),  # functionalization makes zeros of what is left out
        lambda y: y.unfold(0, 2, 3).select(-1, 0).zero_(),
        lambda y: y.neg_().as_strided(y.shape, y.stride(), y.storage_offset()).abs(),
        lambda y: (v := y.as_strided((2, 2), (1, 1), 9), y.relu_(), v)[2],
    ],
)
def test_writes_that_functionalization_loses_are_refused(written):
    m = graph_tools.module(lambda self, x: written(x) + 1)
    with pytest.raises(Error, match="TS0206"):
        trace_module(m, (torch.randn(9, 8)[1:],))


def test_writes_through_all_of_what_is_unfolded():
    m = graph_tools.module(lambda self, x: (y := x.clone(), y.unfold(-1, 2, 2).mul_(2), y + 1)[2])
    graph_tools.check(m, torch.randn(8, 8))


def test_writes_through_a_view_of_the_same_size():
    m = graph_tools.module(lambda self, x: x.expand_as(x).abs_() + self.b, b=torch.ones(4, 4))
    with torch.no_grad():
        held = hold(m, (torch.randn(4, 4),), {})
        steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
        x = torch.full((4, 4), -3e38)
        held.compose({"graph": held.graph, "steps": steps}, "eager")(x)
        assert bool(x.eq(3e38).all())


def test_writes_through_a_view_with_new_dims():
    def forward(self, x):
        y = x * 1.5
        z = y.broadcast_to((1, *y.shape))
        z[1:] = 100.0
        z.mul_(-0.0)
        return y, z

    m, x = graph_tools.module(forward), torch.rand(4, 4)
    with torch.no_grad():
        held = hold(m, (x,), {})
        steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
        for t in held.compose({"graph": held.graph, "steps": steps}, "eager")(x):
            assert bool(t.eq(0).all() and t.signbit().all())
