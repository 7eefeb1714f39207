"""What a kernel file says that it computes (`means` of `@kernel`), by torch in fp64.

    C[b, i, j] = relu(sum(A[b, i, k] * B[b, j, k], k) * 0.5 + X[0, j])

An index is a name or a number. A value has a dimension for each name that it depends on, in the order of `names`.
"""

from __future__ import annotations

import ast
import operator

import torch
from torch.nn import functional

from tessera.common.errors import Error, fail

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS = {
    **{
        n: getattr(torch, n)
        for n in ("abs", "sqrt", "rsqrt", "square", "tanh", "sigmoid", "exp", "log", "sin", "cos", "erf")
    },
    **{n: getattr(torch, n) for n in ("maximum", "minimum", "where", "neg", "reciprocal", "exp2", "log1p", "expm1")},
    **{
        n: getattr(functional, n)
        for n in ("relu", "relu6", "silu", "mish", "softplus", "hardswish", "hardsigmoid", "elu")
    },
    "gelu_erf": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "max": torch.maximum,
    "min": torch.minimum,
}


class _Value:
    """`tensor` has a dimension for each of `names`."""

    def __init__(self, tensor: torch.Tensor, names: tuple[str, ...]):
        self.tensor, self.names = tensor, names

    def over(self, names: tuple[str, ...]) -> torch.Tensor:
        """With dimensions of one element for names that it does not have."""
        order = [self.names.index(n) for n in names if n in self.names]
        shape = iter(self.tensor.permute(order).shape)
        return self.tensor.permute(order).reshape([next(shape) if n in self.names else 1 for n in names])


def is_plain_product(means: str) -> tuple[str, str] | None:
    """The factors A and B of C[..., i, j] = sum(A[..., i, k] * B[..., j, k], k), one output and no function; else None."""
    try:
        body = ast.parse(means.strip()).body if ";" not in means else []
    except SyntaxError:
        return None
    match body:
        case [
            ast.Assign(
                targets=[ast.Subscript() as c],
                value=ast.Call(
                    func=ast.Name("sum"),
                    args=[
                        ast.BinOp(
                            left=ast.Subscript(value=ast.Name(x)) as a,
                            op=ast.Mult(),
                            right=ast.Subscript(value=ast.Name(y)) as b,
                        ),
                        ast.Name(k),
                    ],
                ),
            )
        ]:
            of_a, of_b, of_c = ([ast.unparse(i) for i in _indices(e)] for e in (a, b, c))
            if (
                of_a[-1:] == of_b[-1:] == [k]
                and of_c[-2:] == [*of_a[-2:-1], *of_b[-2:-1]]
                and of_c[:-2] in (of_a[:-2], of_b[:-2])
            ):
                return x, y
    return None


def meaning(means: str, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The outputs, in fp64. Error TS0899: a text of another form, or a function that has no reference."""
    outputs = {}
    for equation in filter(str.strip, means.split(";")):
        try:
            body = ast.parse(equation.strip()).body
        except SyntaxError:  # sums of slices stand on the left
            raise _unreadable(equation) from None
        match body:
            case [ast.Assign(targets=[ast.Subscript(value=ast.Name(name)) as target], value=value)]:
                names = tuple(i.id for i in _indices(target))
                outputs[name] = _of(value, inputs).over(names)
            case _:
                raise _unreadable(equation)
    return outputs


def _indices(e: ast.Subscript) -> list[ast.expr]:
    return e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]


def _of(e: ast.expr, inputs: dict[str, torch.Tensor]) -> _Value:
    match e:
        case ast.Constant(value=int() | float() as number):
            return _Value(torch.tensor(float(number), dtype=torch.float64), ())
        case ast.Subscript(value=ast.Name(name)) if name in inputs:
            return _element(inputs[name], _indices(e))
        case ast.UnaryOp(op=ast.USub(), operand=x):
            x = _of(x, inputs)
            return _Value(-x.tensor, x.names)
        case ast.BinOp(left=a, op=op, right=b) if type(op) in _OPERATORS:
            return _apply(_OPERATORS[type(op)], [_of(a, inputs), _of(b, inputs)])
        case ast.Call(func=ast.Name("sum"), args=[ast.BinOp(left=a, op=ast.Mult(), right=b), ast.Name(k)]):
            return _product(_of(a, inputs), _of(b, inputs), k)
        case ast.Call(func=ast.Name("sum"), args=[x, ast.Name(k)]):
            x = _of(x, inputs)
            return _Value(x.tensor.sum(x.names.index(k)), tuple(n for n in x.names if n != k))
        case ast.Call(func=ast.Name(f), args=arguments) if f in _FUNCTIONS:
            return _apply(_FUNCTIONS[f], [_of(x, inputs) for x in arguments])
    raise _unreadable(ast.unparse(e))


def _element(t: torch.Tensor, indices: list[ast.expr]) -> _Value:
    names, t = [], t.double()
    for i in indices:
        if isinstance(i, ast.Constant):
            t = t.select(len(names), i.value)
        elif isinstance(i, ast.Name):
            names.append(i.id)
        else:
            raise _unreadable(ast.unparse(i))
    return _Value(t, tuple(names))


def _apply(f, values: list[_Value]) -> _Value:
    names = tuple(dict.fromkeys(n for v in values for n in v.names))
    device = next((v.tensor.device for v in values if v.names), None)
    return _Value(f(*(v.over(names).to(device) for v in values)), names)


def _product(a: _Value, b: _Value, k: str) -> _Value:
    """By einsum, which does not make all products at once."""
    letters = {n: chr(97 + i) for i, n in enumerate(dict.fromkeys((*a.names, *b.names)))}
    names = tuple(n for n in letters if n != k)
    text = ["".join(letters[n] for n in of) for of in (a.names, b.names, names)]
    return _Value(torch.einsum(f"{text[0]},{text[1]}->{text[2]}", a.tensor, b.tensor), names)


def _unreadable(text: str) -> Error:
    return fail(
        "TS0899",
        "kernel.no_reference",
        f"`{text.strip()}` cannot be computed by torch",
        expected="sums of products of tensors, and functions of them: C[i, j] = relu(sum(A[i, k] * B[j, k], k))",
        found=text.strip() or "no meaning",
        helps=["say what the kernel means: `means` of `@kernel`, or --means"],
    )
