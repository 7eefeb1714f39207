"""The tracer: what a graph says of a module, and what the user is told when there is no graph."""

import sys

import pytest
import torch
from graph_tools import check, ops
from tessera.common.errors import Error
from tessera.common.reference import Executor
from tessera.tracing.tracer import load_problem, trace, trace_graph_module, trace_module
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 48)
        self.norm = nn.BatchNorm1d(16)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))
        self.scale = torch.tensor(2.0)

    def forward(self, x, factor=3):
        q, k, v = self.linear(x).split(16, dim=2)
        z = ((q @ k.mT).masked_fill(self.mask[0] == 0, float("-inf")).softmax(-1) @ v) * self.scale
        return {"norm": self.norm(z.mT), "factor": factor, "gelu": F.gelu(z, approximate="tanh")}


def test_graph_says_all():
    net, x = Net(), torch.randn(2, 8, 16)
    traced = trace_module(net, (x,))
    values = {v["name"]: v for v in traced.graph["values"]}
    nodes = {n["name"]: n for n in traced.graph["nodes"]}
    assert values["x"]["origin"] == "user_input" and values["x"]["shape"] == [2, 8, 16]
    assert values["p_linear_weight"]["target"] == "linear.weight"
    assert values["b_mask"]["facts"] == {"lower_triangular": True, "diagonal": 0}
    assert values["c_scale"]["origin"] == "constant" and values["c_scale"]["facts"]["scalar"] == 2.0
    assert nodes["linear"]["arguments"]["bias"] == {"value": "p_linear_bias"} and nodes["linear"]["module"] == "linear"
    assert nodes["masked_fill"]["arguments"]["value"] == {"float": "-inf"}
    line = Net.forward.__code__.co_firstlineno + 2
    assert nodes["masked_fill"]["place"].endswith(f"test_tracer.py:{line}")
    split = next(n for n in nodes.values() if n["op"] == "aten.split.Tensor")
    assert len(split["outputs"]) == 3 and values[split["outputs"][1]]["strides"] == [384, 48, 1]
    assert {m["target"] for m in traced.graph["mutations"]} == {
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    }
    assert "facts" not in values["b_norm_running_mean"]  # it changes
    assert net.training
    result = Executor(traced.graph).run_all({**traced.flatten((x,)), **traced.state()})
    got = traced.unflatten([result[name] for name in traced.graph["outputs"]])
    expected = net(x)
    assert got["factor"] == 3
    torch.testing.assert_close(got["norm"], expected["norm"])
    torch.testing.assert_close(got["gelu"], expected["gelu"])


def test_float_arguments_stay_floats():
    graph = trace(nn.LeakyReLU(2), (torch.randn(4),))
    assert graph["nodes"][0]["arguments"]["negative_slope"] == 2 and isinstance(
        graph["nodes"][0]["arguments"]["negative_slope"], (int, float)
    )
    graph = trace(nn.LayerNorm(4, eps=1), (torch.randn(4),))
    assert isinstance(graph["nodes"][0]["arguments"]["eps"], float)


SMALL = {
    "conv": (
        nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8).eval(), nn.ReLU(), nn.MaxPool2d(2)),
        (2, 3, 8, 8),
    ),
    "conv_transpose": (
        nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2), nn.GroupNorm(2, 6), nn.Hardswish()),
        (2, 4, 5, 5),
    ),
    "conv3d": (nn.Sequential(nn.Conv3d(2, 4, 3), nn.InstanceNorm3d(4), nn.AvgPool3d(2)), (1, 2, 8, 8, 8)),
    "depthwise": (nn.Conv2d(4, 4, 3, groups=4, padding="same"), (1, 4, 6, 6)),
    "adaptive": (nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3), nn.LogSoftmax(1)), (2, 4, 5, 5)),
    "pad": (nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(2, 2, 3)), (1, 2, 4, 4)),
    "lstm": (nn.LSTM(6, 5, 2, batch_first=True), (2, 7, 6)),
    "gru": (nn.GRU(6, 5, bidirectional=True), (7, 2, 6)),
    "rnn": (nn.RNN(6, 5), (7, 2, 6)),
    "activations": (
        nn.Sequential(
            nn.ELU(),
            nn.SELU(),
            nn.Mish(),
            nn.Softplus(),
            nn.Softsign(),
            nn.Hardtanh(),
            nn.Hardsigmoid(),
            nn.LeakyReLU(0.1),
            nn.Tanh(),
            nn.ReLU6(),
            nn.CELU(),
            nn.PReLU(),
        ),
        (3, 5),
    ),
    "embedding": (nn.Embedding(10, 4), torch.randint(0, 10, (2, 3))),
    "encoder": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(), (2, 5, 16)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_modules(name):
    module, shape = SMALL[name]
    check(module, shape if isinstance(shape, torch.Tensor) else torch.randn(shape))


EXPRESSIONS = {
    "reductions": lambda x: (
        x.sum(1),
        x.mean((0, 2)),
        x.amax(-1),
        x.max(1)[0],
        x.argmin(-1),
        x.prod(1),
        x.std(1),
        x.norm(dim=1),
    ),
    "scans": lambda x: (x.cumsum(1), x.flip(1).cumsum(1).flip(1), x.cumprod(0)),
    "losses": lambda x: (
        F.mse_loss(x, x * 2),
        F.huber_loss(x, x * 2),
        F.kl_div(x.log_softmax(-1), x.softmax(-1)),
        F.cross_entropy(x[0], torch.tensor([1, 0, 3])),
    ),
    "triplet": lambda x: F.triplet_margin_loss(x[0], x[1], x[0] * 2),
    "shapes": lambda x: (
        torch.cat([x, x], 1),
        torch.stack([x, x]),
        x.unbind(0)[1],
        x.chunk(2, -1)[0],
        torch.roll(x, 1, 1),
        F.pad(x, (1, 1)),
        x.permute(2, 0, 1).reshape(-1),
        x.tril(),
        x[:, 1:],
        x[..., None],
    ),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
    "gather": lambda x: (
        x[:, torch.tensor([0, 2])],
        x.index_select(1, torch.tensor([1])),
        x.gather(1, torch.zeros(2, 1, 4, dtype=torch.int64)),
    ),
    "arithmetic": lambda x: (
        x.clamp(-1, 1),
        torch.where(x > 0, x, -x),
        torch.lerp(x, x * 2, 0.3),
        x.addcmul(x, x, value=2),
        x.round(),
        x.sign(),
        torch.minimum(x, x * 2),
        x.remainder(0.7),
        1 - x,
        x.logsumexp(1),
    ),
    "matrix": lambda x: (x @ x.mT, torch.bmm(x, x.mT), torch.baddbmm(x @ x.mT, x, x.mT), x[0].tril() @ x[0].T),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name):
    class Expression(nn.Module):
        def forward(self, x):
            return EXPRESSIONS[name](x)

    check(Expression(), torch.randn(2, 3, 4))


def test_precision():
    net = nn.Linear(4, 4)
    assert trace(net, (torch.randn(2, 4),))["precision"] == "fp32"
    graph = trace(net, (torch.randn(2, 4),), precision="bf16")
    assert graph["precision"] == "bf16" and {v["dtype"] for v in graph["values"]} == {"bfloat16"}
    assert trace(net, (torch.randn(2, 4).bfloat16(),))["precision"] == "bf16"
    assert trace(nn.Linear(4, 4), (torch.randn(2, 4),), precision="tf32")["precision"] == "tf32"
    assert trace(nn.Linear(4, 4), (torch.randn(2, 4),))["precision"] == "tf32"
    assert trace(nn.Linear(4, 4), (torch.randn(2, 4),), precision="fp32")["precision"] == "fp32"
    with pytest.raises(Error, match="TS0011"):
        trace(net, (torch.randn(2, 4),), precision="bf61")


def test_traces_where_the_older_flags_cannot_be_read():
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    for place in (torch.backends.cudnn.conv, torch.backends.cudnn.rnn):
        place.fp32_precision = "tf32"
    with pytest.raises(RuntimeError):
        _ = torch.backends.cudnn.allow_tf32
    assert trace(nn.Linear(4, 4), (torch.randn(2, 4),))["nodes"]
    assert torch.backends.cudnn.conv.fp32_precision == torch.backends.cudnn.rnn.fp32_precision == "tf32"


def test_float64_upcasts_conversions():
    class Rounds(nn.Module):
        def forward(self, x):
            return (x.to(torch.bfloat16) * 3).float(), x.to(torch.bfloat16).float() * 3

    traced = trace_module(Rounds(), (x := torch.randn(5),))
    computed, there_and_back = Executor(traced.graph).run_all({"x": x}, torch.float64).values()
    torch.testing.assert_close(computed, x.double() * 3, rtol=0, atol=0)
    torch.testing.assert_close(there_and_back, x.bfloat16().double() * 3, rtol=0, atol=0)


def test_graph_module_with_parameters_as_inputs():
    net, x = nn.Linear(4, 3), torch.randn(2, 4)
    graph = torch.fx.Graph()
    a, w, b = (graph.placeholder(n) for n in ("a", "w", "b"))
    graph.output((graph.call_function(F.relu, (graph.call_function(F.linear, (a, w, b)),)),))
    module = torch.fx.GraphModule(nn.Module(), graph)
    traced = trace_graph_module(module, [x, net.weight, net.bias])
    assert [v["origin"] for v in traced.graph["values"][:3]] == ["user_input", "parameter", "parameter"]
    assert ops(traced.graph) == ["linear", "relu"]
    assert diagnosed(lambda: trace_graph_module(module, [x, net.weight, 3]))["code"] == "TS0204"


def diagnosed(call) -> dict:
    with pytest.raises(Error) as caught:
        call()
    assert caught.value.diagnostic["helps"] or caught.value.diagnostic["code"] in ("TS0001", "TS0002", "TS0005")
    return caught.value.diagnostic


def test_data_dependent_modules_are_named(capsys):
    class Branches(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x - 1

    class Selects(nn.Module):
        def forward(self, x):
            sys.stderr.write("a word of forward\n")
            return x[x > 0]

    for cls in (Branches, Selects):
        d = diagnosed(lambda cls=cls: trace(cls(), (torch.randn(4),)))
        assert d["code"] == "TS0203" and any('backend="tessera"' in text for text in d["helps"])
    # torch.export prints the graph so far before it raises; what forward prints is its own.
    said = capsys.readouterr().err
    assert "def forward" not in said and "a word of forward" in said


def test_an_op_with_captured_functions_is_named_with_the_way_out():
    class Chooses(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    d = diagnosed(lambda: trace(Chooses(), (torch.randn(4),)))
    assert (
        d["code"] == "TS0202" and d["message"].startswith("`cond`") and any("Inductor" in text for text in d["helps"])
    )


def test_module_that_fails_by_itself():
    d = diagnosed(lambda: trace(nn.Linear(4, 4), (torch.randn(2, 5),)))
    assert d["code"] == "TS0007" and "RuntimeError" in d["message"]


def turned(x, rotations):
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * rotations).flatten(-2).type_as(x)


COMPLEX = {
    "product": lambda s, x: turned(x, s.z),
    "slice": lambda s, x: turned(x, s.z[:, None].transpose(0, 1)[0, :, :2]),
    "scaled": lambda s, x: torch.view_as_real(s.z * 2 * torch.view_as_complex(x.view(3, 2, 2)).conj()),
    "polar": lambda s, x: turned(x, torch.polar(torch.ones(3, 2), x[:, :2])),
    "parts": lambda s, x: (z := torch.complex(x, x * 2), z.real + z.imag + (z * x).abs())[1],
    "joined": lambda s, x: torch.view_as_real(
        torch.cat((s.z, -s.z), -1).unsqueeze(-1).reshape(3, 4) - s.z[:, :1].expand(3, 4)
    ),
    "expanded": lambda s, x: turned(x, s.z[:1].expand(3, 2).clone().permute(0, 1)),
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("buffer", [False, True])
def test_complex_numbers_become_their_parts(name, buffer):
    class Complex(nn.Module):
        def __init__(self):
            super().__init__()
            z = torch.polar(torch.rand(3, 2), torch.randn(3, 2))
            self.register_buffer("z", z) if buffer else setattr(self, "z", z)

        def forward(self, x):
            return COMPLEX[name](self, x)

    net, x = Complex(), torch.randn(3, 4)
    traced = trace_module(net, (x,))
    values = Executor(traced.graph).run_all({**traced.flatten((x,)), **traced.state()})
    torch.testing.assert_close(values[traced.graph["outputs"][0]], net(x))
    net.z.mul_(2)  # the parts share its memory
    values = Executor(traced.graph).run_all({**traced.flatten((x,)), **traced.state()})
    torch.testing.assert_close(values[traced.graph["outputs"][0]], net(x))


def test_complex_inputs_results_and_functions_are_refused():
    class Complex(nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x):
            return self.f(x)

    z = torch.complex(torch.randn(4), torch.randn(4))
    assert diagnosed(lambda: trace(Complex(torch.view_as_real), (z,)))["code"] == "TS0205"
    assert diagnosed(lambda: trace(Complex(lambda x: torch.complex(x, x)), (torch.randn(4),)))["code"] == "TS0205"
    d = diagnosed(lambda: trace(Complex(lambda x: torch.view_as_real(torch.complex(x, x).tanh())), (torch.randn(4),)))
    assert d["code"] == "TS0202" and "tanh" in d["message"]


def test_attributes_that_forward_changes_are_kept_as_buffers():
    class Counts(nn.Module):
        def __init__(self, in_place):
            super().__init__()
            self.seen, self.in_place = torch.zeros(3), in_place

        def forward(self, x):
            if self.in_place:
                self.seen.add_(x)
            else:
                self.seen = self.seen + x
            return self.seen * 2

    for in_place in (False, True):
        net, x = Counts(in_place), torch.ones(3)
        with pytest.warns(UserWarning, match="seen"):
            traced = trace_module(net, (x,))
        assert [m["target"] for m in traced.graph["mutations"]] == ["seen"] and not net.state_dict()
        assert torch.equal(net(x), torch.full((3,), 2.0)) and torch.equal(net(x), torch.full((3,), 4.0))


HEAD = "import torch\nfrom torch import nn\n"


@pytest.mark.parametrize(
    ("text", "name", "code", "says"),
    [
        ("class A(nn.Module): pass\nclass B(nn.Module): pass\n", None, "TS0003", "A, B"),
        ("class A(nn.Module): pass\n", "Model", "TS0003", "A"),
        ("x = 1\n", None, "TS0003", "torch.nn.Module"),
        ("class A(nn.Module): pass\n", None, "TS0004", "get_inputs"),
        ("import no_such_package\n", None, "TS0002", "pip install no_such_package"),
        ("def f(:\n", None, "TS0002", "SyntaxError"),
        ("class A(nn.Module):\n  def __init__(self, n): super().__init__()\n", None, "TS0006", "missing"),
        ("class A(nn.Module): pass\ndef get_inputs(): return [1 / 0]\n", None, "TS0005", "ZeroDivisionError"),
    ],
)
def test_wrong_files_are_diagnosed(tmp_path, text, name, code, says):
    path = tmp_path / "problem.py"
    path.write_text(HEAD + text)
    d = diagnosed(lambda: load_problem(str(path), name))
    assert d["code"] == code and says in str(d)
    if code == "TS0002":
        assert d["place"]["line"] == 3


def test_missing_file():
    assert diagnosed(lambda: load_problem("/no/such.py"))["code"] == "TS0001"


def test_kernelbench_interface(tmp_path):
    path = tmp_path / "problem.py"
    path.write_text(
        HEAD
        + "class Other(nn.Module): pass\nclass Model(nn.Module):\n  def __init__(self, n):\n    super().__init__()\n"
        "    self.l = nn.Linear(n, 3)\n  def forward(self, x): return self.l(x)\n"
        "def get_inputs(): return [torch.randn(2, 5)]\ndef get_init_inputs(): return [5]\n"
    )
    loaded = load_problem(str(path))
    assert loaded.name == "Model" and ops(trace(loaded.module, loaded.args, loaded.kwargs)) == ["linear"]
    again = load_problem(str(path))
    assert torch.equal(loaded.module.l.weight, again.module.l.weight) and loaded.args[0].sum().isfinite()


def test_a_module_that_is_refused_is_not_called_on_what_the_caller_holds():
    class Refused(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            x.add_(1)
            self.total.add_(1)
            return x[x > 0]

    m, x = Refused(), torch.zeros(4)
    with pytest.raises(Error), torch.no_grad():
        trace_module(m, (x,))
    assert x.eq(0).all() and m.total.eq(0).all()
