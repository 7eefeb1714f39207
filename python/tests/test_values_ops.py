"""Single ops on numbers of all kinds: what kernels of the host compute, against eager, for every floating type."""

import math
import os

import pytest
import tessera
import torch
from tessera.common.errors import Error
from tessera.engine import find_binary
from torch import nn
from torch.nn import functional as F

INF, NAN = math.inf, math.nan
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
if os.environ.get("TESSERA_TEST_ALL"):  # a minute or two each
    TYPES["float16"] = torch.float16
PLAIN = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    -0.1,
    0.3,
    0.5,
    -0.5,
    1.5,
    2.0,
    -2.5,
    3.0,
    -3.0,
    6.0,
    7.25,
    -7.25,
    20.5,
    21.0,
    -21.0,
    100.0,
    -89.5,
)
FAR = (
    1e-6,
    1e-12,
    1e6,
    -3e6,
    1e10,
    -1e15,
    1e20,
    -1e20,
    1e30,
    3.4e38,
    -3.4e38,
    1e-38,
    1e-41,
    -1e-44,
    450.0,
    463.9,
    464.1,
    1e5,
)

# Of one argument. Exact ones first: they equal eager bit for bit, and in the sign of zeros.
EXACT = {
    "abs": torch.abs,
    "neg": torch.neg,
    "square": torch.square,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "sign": torch.sign,
    "frac": torch.frac,
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "not": torch.logical_not,
    "relu": F.relu,
    "relu6": F.relu6,
    "reciprocal": torch.reciprocal,
    "sqrt": torch.sqrt,
    "clamp": lambda x: x.clamp(-0.5, 2),
    "clamp crossed": lambda x: x.clamp(2, -1),
    "clamp low": lambda x: x.clamp(min=0.25),
    "clamp high": lambda x: x.clamp(max=0.25),
    "clamp nan": lambda x: x.clamp(NAN, 1),
    "clamp inf": lambda x: x.clamp(-INF, 1),
    "hardtanh": F.hardtanh,
    "hardshrink": lambda x: F.hardshrink(x, 0.5),
    "threshold": lambda x: F.threshold(x, 0.5, -2.0),
    "pow 0": lambda x: x**0,
    "pow 2": lambda x: x**2,
    "pow 0.5": lambda x: x**0.5,
    "pow -1": lambda x: x**-1,
    "eq 0.1": lambda x: x == 0.1,
    "gt 0.1": lambda x: x > 0.1,
    "le 0.3": lambda x: x <= 0.3,
    "ne -0.1": lambda x: x != -0.1,
    "rsub": lambda x: 1 - x,
    "plus 0": lambda x: x + 0,
    "minus 0": lambda x: x - 0,
    "plus -0.0": lambda x: x + -0.0,
    "times 1": lambda x: x * 1,
    "over 3": lambda x: x / 3,
    "floor over 0.1": lambda x: torch.div(x, 0.1, rounding_mode="floor"),
    "trunc over 3": lambda x: torch.div(x, 3, rounding_mode="trunc"),
    "to e4m3": lambda x: x.to(torch.float8_e4m3fn).to(x.dtype),
    "to e5m2": lambda x: x.to(torch.float8_e5m2).to(x.dtype),
    "to bf16": lambda x: x.float().to(torch.bfloat16).float(),
    "to fp16": lambda x: x.float().to(torch.float16).float(),
}
NEAR = {
    "rsqrt": torch.rsqrt,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "atan": torch.atan,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "pow 3": lambda x: x**3,
    "pow 4": lambda x: x**4,
    "pow -0.5": lambda x: x**-0.5,
    "pow -2": lambda x: x**-2,
    "pow 2.5": lambda x: x**2.5,
    "pow -3": lambda x: x**-3,
    "2 ** x": lambda x: 2**x,
    "softplus": F.softplus,
    "softplus 2": lambda x: F.softplus(x, 2, 5),
    "silu": F.silu,
    "mish": F.mish,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "log_sigmoid": F.logsigmoid,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "selu": F.selu,
    "elu": lambda x: F.elu(x, 0.7),
    "celu": lambda x: F.celu(x, 0.7),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "softshrink": lambda x: F.softshrink(x, 0.5),
}
EXACT_OF_TWO = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "floor_divide": torch.floor_divide,
    "difference of products": lambda x, y: x * y - y * x,
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "copysign": torch.copysign,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "xor": torch.logical_xor,
    "clamp by tensors": lambda x, y: x.clamp(y, y * 0 + 1),
    "where": lambda x, y: torch.where(x > 0, y, 0.5),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, -INF),
    "bool sum": lambda x, y: (x > 0) + (y > 0),
    "bool product": lambda x, y: (x > 0) * (y > 0),
    "bool xor": lambda x, y: (x > 0) ^ (y > 0),
    "not a and b": lambda x, y: ~(x > 0) & (y > 0),
}
NEAR_OF_TWO = {
    "add 0.3": lambda x, y: torch.add(x, y, alpha=0.3),
    "sub 1e20": lambda x, y: torch.sub(x, y, alpha=1e20 if x.dtype != torch.float16 else 30.0),
    "pow": torch.pow,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "lerp 0.25": lambda x, y: torch.lerp(x, y, 0.25),
    "lerp 0.5": lambda x, y: torch.lerp(x, y, 0.5),
    "lerp 1": lambda x, y: torch.lerp(x, y, 1.0),
    "lerp y": lambda x, y: torch.lerp(x, x * 0 + 2, y),
    "addcmul": lambda x, y: torch.addcmul(x * 0 + 1, x, y, value=1e-20 if x.dtype != torch.float16 else 0.01),
    "addcmul up": lambda x, y: torch.addcmul(x * 0, x, y, value=4.0),
    "addcdiv": lambda x, y: torch.addcdiv(x * 0, x, y, value=4.0),
    "addcdiv down": lambda x, y: torch.addcdiv(x * 0, x, y, value=0.25),
    "prelu": lambda x, y: F.prelu(x, torch.full((1,), 0.2, dtype=x.dtype)),
}
# Eager's own code for vectors gives a zero another sign than its code for single numbers.
ZEROS_OF_VECTORS = {"softshrink"}
# A result is a difference of numbers of this size.
CANCELS = {
    "log_sigmoid",
    "elu",
    "celu",
    "selu",
    "gelu tanh",
    "expm1",
    "add 0.3",
    "sub 1e20",
    "addcmul",
    "logaddexp",
    "mish",
    "silu",
}
CANCELS |= {"erf", "lerp 0.25", "lerp 0.5", "lerp 1", "lerp y", "softplus", "softplus 2", "hardswish"}


# MKL, which computes eager's float32 roots, is an ulp off on some processors: the correctly rounded root is expected.
ROOTS = {"sqrt", "pow 0.5"}

# Of 16 bits PyTorch rounds every step of these to them: they stay with it.
WHOLE_QUOTIENTS = {"div trunc", "div floor", "floor_divide", "trunc over 3", "floor over 0.1"}


def numbers(dtype: torch.dtype) -> torch.Tensor:
    low, high = torch.finfo(dtype).min, torch.finfo(dtype).max
    finite = torch.tensor(PLAIN + FAR, dtype=torch.float64).clamp(low, high)
    return torch.cat([finite, torch.tensor([INF, -INF, NAN], dtype=torch.float64)]).to(dtype)


class Stacked(nn.Module):
    """All functions of the same arguments, in tensors of so many results as one kernel computes."""

    def __init__(self, functions):
        super().__init__()
        self.parts = [functions[i : i + 24] for i in range(0, len(functions), 24)]

    def forward(self, *args):
        return [torch.stack([f(*args).to(args[0].dtype) for f in part]) for part in self.parts]


def unequal(name: str, got: torch.Tensor, want: torch.Tensor, args: tuple, exact: bool) -> torch.Tensor:
    g, w = got.double(), want.double()
    nan = w.isnan()
    if name in ("fmod", "remainder"):  # of quotients beyond its range PyTorch's vectors make NaN
        nan = nan | (args[1].double().abs() < 1e-30)
        g = torch.where(nan, NAN, g)
    if exact:
        return (g.isnan() != nan) | ~nan & ((g != w) | (g.signbit() != w.signbit()))
    info = torch.finfo(want.dtype)
    size = w.abs()
    if name in CANCELS:
        size = size + sum(a.double().abs().nan_to_num(0, 0, 0) for a in args).clamp(min=1)
    tolerance = 4 * max(info.eps, torch.finfo(torch.float32).eps) * size + 2 * info.smallest_normal * info.eps * 2
    apart = w.isfinite() & g.isfinite() & ((g - w).abs() > tolerance)
    # The last number before infinity may round to it.
    edge = (
        (g.isinf() != w.isinf())
        & (g.sign() == w.sign())
        & (torch.minimum(g.abs(), w.abs()) > info.max * (1 - 4 * info.eps))
    )
    kind = (g.isnan() != nan) | (w.isinf() | g.isinf()) & (g != w) & ~nan
    zeros = (g == 0) & (w == 0) & (g.signbit() != w.signbit())
    return apart | kind & ~edge | (zeros if name not in CANCELS | ZEROS_OF_VECTORS else False)


def check(functions: dict, args: tuple, exact: bool, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TESSERA_HOME", str(tmp_path))
    try:
        find_binary()
    except Error:
        pytest.skip("the engine is not built: ninja -C build tessera")
    module = Stacked(list(functions.values())).eval()
    with torch.no_grad():
        fast = tessera.optimize(
            module, args, effort="quick", seconds=240, progress=False, place_all=True, leftover="eager",
            use_registry=False, only="synthesized",
        )  # fmt: skip
        want, got = torch.cat(module(*args)), torch.cat(fast(*args))
    assert [p["active"] for p in fast.status()["patterns"]] == [True] * len(module.parts), fast.status()
    wrong = []
    for name, g, w in zip(functions, got, want, strict=True):
        if name in ROOTS:
            w = functions[name](args[0].double()).to(w.dtype)
        at = unequal(name, g, w, args, exact).nonzero()
        for i in at[:4, 0].tolist():
            wrong.append(f"{name}{tuple(a[i].item() for a in args)} is {w[i].item()}, not {g[i].item()}")
    assert not wrong, "\n".join(wrong)


def repeated(t: torch.Tensor, least: int = 4096) -> torch.Tensor:
    return t.repeat(-(-least // len(t)))


def of_one(dtype: torch.dtype) -> tuple:
    return (repeated(numbers(dtype)),)


def of_two(dtype: torch.dtype) -> tuple:
    x = numbers(dtype)
    pairs = torch.cartesian_prod(x, x)
    return repeated(pairs[:, 0].contiguous()), repeated(pairs[:, 1].contiguous())


GROUPS = {
    "exact": (EXACT, of_one, True),
    "near": (NEAR, of_one, False),
    "exact of two": (EXACT_OF_TWO, of_two, True),
    "near of two": (NEAR_OF_TWO, of_two, False),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("group", GROUPS)
def test_kernels_compute_what_eager_does(group, dtype, tmp_path, monkeypatch):
    functions, args, exact = GROUPS[group]
    if dtype != "float32":
        functions = {name: f for name, f in functions.items() if name not in WHOLE_QUOTIENTS}
    check(functions, args(TYPES[dtype]), exact, tmp_path, monkeypatch)
