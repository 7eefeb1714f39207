"""A library call of a plan as ATen nodes of the composed graph, on views that every compiler understands.

What the evaluator times is a function of whole tensors (library.py). In the module the same call stands as its op between
views: eager pays for no Python in between, and Inductor sees a product or an attention with its layouts. `as_strided` is
avoided, for Inductor reads one of a view from the beginning of the memory below.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
BACKENDS = {
    "cudnn": [SDPBackend.CUDNN_ATTENTION],
    "flash": [SDPBackend.FLASH_ATTENTION],
    "efficient": [SDPBackend.EFFICIENT_ATTENTION],
    "math": [SDPBackend.MATH],
    "default": None,
}


def dense_order(value: dict) -> list[int] | None:
    """A value's dims as they lie in its memory, the outermost first; None where there are gaps or overlaps."""
    shape, strides = value["shape"], value["strides"]
    order = [d for d in range(len(shape)) if shape[d] == 1]
    order += sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -strides[d])
    step = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != step:
            return None
        step *= shape[d]
    return order if step else None


class Views:
    """Strided views of contiguous values as chains of ATen's view ops in one fx graph."""

    def __init__(self, graph: fx.Graph):
        self.fx = graph

    def _call(self, op, *arguments) -> fx.Node:
        return self.fx.call_function(op, arguments)

    def of(self, node: fx.Node, value: dict, shape: list[int], strides: list[int], offset: int) -> fx.Node | None:
        """The view of a value without gaps; None where it is no nest of its dims (overlapping windows).

        Its extents, by descending strides, are the digits of a mixed radix in which the memory is cut."""
        lying = dense_order(value)
        if lying is None:
            return None
        total = math.prod(value["shape"])
        kept = [d for d in range(len(shape)) if shape[d] != 1 and strides[d] != 0]
        order = sorted(kept, key=lambda d: -strides[d])
        steps = [strides[d] for d in order] + ([1] if not order or strides[order[-1]] != 1 else [])
        radix, above, windows, left = [], total, [], offset
        for i, step in enumerate(steps):
            if above % step:
                return None
            digits, begin = above // step, left // step
            count = shape[order[i]] if i < len(order) else 1
            if begin + count > digits:
                return None
            radix.append(digits)
            windows.append((begin, count))
            left, above = left % step, step
        if lying != sorted(lying):
            node = self._call(aten.permute.default, node, lying)
        if [value["shape"][d] for d in lying] != radix:
            node = self._call(aten.view.default, node, radix)
        for dim, (begin, count) in enumerate(windows):
            if count != radix[dim]:
                node = self._call(aten.slice.Tensor, node, dim, begin, begin + count)
        return self._ordered(node, [order.index(d) if d in order else None for d in range(len(shape))], shape, radix)

    def _ordered(self, node: fx.Node, places: list[int | None], shape: list[int], radix: list[int]) -> fx.Node:
        """Dims of the cut memory in the order of the view's; those that it has besides are of extent 1 or repeated."""
        inside = [p for p in places if p is not None]
        if len(inside) < len(radix):  # the rest of the last digit
            node = self._call(aten.select.int, node, len(radix) - 1, 0)
        if inside != sorted(inside):
            node = self._call(aten.permute.default, node, inside)
        for d, place in enumerate(places):
            if place is None:
                node = self._call(aten.unsqueeze.default, node, d)
        if any(p is None and n != 1 for p, n in zip(places, shape, strict=True)):
            node = self._call(aten.expand.default, node, list(shape))
        return node

    def onto(self, node: fx.Node, view: dict, value: dict, copied: bool = False) -> fx.Node | None:
        """The value whose view is what the node holds: the inverse of `of`, where the view covers it all. `copied`: where the
        node lies otherwise, which only its op knows."""
        shape, dims, lying = view["shape"], dense_order(view), dense_order(value)
        if dims is None or lying is None or view.get("offset", 0) or math.prod(shape) != math.prod(value["shape"]):
            return None
        if shape == value["shape"] and dims == lying and not copied:
            return node
        if dims != sorted(dims):
            node = self._call(aten.permute.default, node, dims)
        if copied:
            node = self._call(aten.contiguous.default, node)
        inside = [value["shape"][d] for d in lying]
        if [shape[d] for d in dims] != inside:
            node = self._call(aten.view.default, node, inside)
        if lying != sorted(lying):
            node = self._call(aten.permute.default, node, [lying.index(d) for d in range(len(lying))])
        return node


class _Calls(TorchDispatchMode):
    """The ops that a call comes down to, with their results."""

    def __init__(self):
        super().__init__()
        self.seen: list[tuple] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.seen.append((func, args, kwargs or {}, result))
        return result


def attention(backend: str, options: dict) -> Callable:
    """scaled_dot_product_attention by one backend. `concrete(q, k, v, mask)` is its result on real tensors, and the one op
    that it comes down to as a function of such tensors: choosing a backend takes a context manager, which costs the host more
    than the op; None where it is more than one op."""
    chosen = BACKENDS[backend]

    def attend(q, k, v, mask=None):
        call = torch.nn.functional.scaled_dot_product_attention
        if chosen is None:
            return call(q, k, v, attn_mask=mask, **options)
        with sdpa_kernel(chosen):
            return call(q, k, v, attn_mask=mask, **options)

    def concrete(q, k, v, mask=None):
        with _Calls() as calls:
            result = attend(q, k, v, mask)
        if len(calls.seen) != 1:
            return result, None
        op, args, kwargs, made = calls.seen[0]
        first = made[0] if isinstance(made, (tuple, list)) else made
        given = [q, k, v]
        if not (_same(first, result) and len(args) >= 3 and all(map(_same, args[:3], given))):
            return result, None
        rest, at = list(args[3:]), None
        if mask is not None:
            at = next((i for i, a in enumerate(rest) if isinstance(a, torch.Tensor) and _same(a, mask)), None)
            if at is None:  # it goes by keyword, or in another form
                return result, None
            rest[at] = None
        if any(isinstance(a, torch.Tensor) for a in (*rest, *kwargs.values())):
            return result, None
        return result, _direct(op, rest, kwargs, at, isinstance(made, (tuple, list)))

    attend.concrete = concrete
    return attend


def _direct(op, rest: list, kwargs: dict, mask_at: int | None, several: bool) -> Callable:
    op = op._op  # without the wrapper around it

    def run(q, k, v, mask=None):
        arguments = rest
        if mask_at is not None:
            arguments = [*rest[:mask_at], mask, *rest[mask_at + 1 :]]
        made = op(q, k, v, *arguments, **kwargs)
        return made[0] if several else made

    return run


def _same(a, b) -> bool:
    return (
        isinstance(a, torch.Tensor)
        and a.data_ptr() == b.data_ptr()
        and (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)
    )


# --- steps -----------------------------------------------------------------------------------------------------------


def emit(graph: fx.Graph, step: dict, values: dict[str, dict], given: list[fx.Node]) -> fx.Node | None:
    """The step's one result as nodes; None where it is not among the forms that are known here."""
    call, body = step["candidate"]["call"], step["pattern"].get("body") or {}
    emitter = _forms.get(call["function"])
    if emitter is None or len(step["outputs"]) != 1:
        return None
    mark = next(iter(reversed(graph.nodes)), None)
    node = emitter(
        Views(graph),
        body,
        call.get("arguments") or {},
        given,
        [values[v] for v in step["inputs"]],
        values[step["outputs"][0]["value"]],
    )
    if node is None:
        _erase_after(graph, mark)
    return node


def _erase_after(graph: fx.Graph, mark: fx.Node | None) -> None:
    for node in reversed(list(graph.nodes)):
        if node is mark:
            return
        graph.erase_node(node)


def _view(views: Views, view: dict, given: list, types: list[dict], drop: int = 0) -> fx.Node | None:
    """A body's view on one of the inputs, without its first `drop` dims, which are of extent 1 or read at 0."""
    at = view["tensor"]
    if at >= len(given):
        return None
    return views.of(given[at], types[at], view["shape"][drop:], view["strides"][drop:], view.get("offset", 0))


def _sdpa(views: Views, body: dict, arguments: dict, given: list, types: list[dict], result: dict) -> fx.Node | None:
    backend = arguments.get("backend", "default")
    if backend not in BACKENDS or (body.get("causal") and body.get("mask")):
        return None
    operands = [_view(views, body[name], given, types) for name in ("q", "k", "v")]
    if body.get("mask"):
        operands.append(_view(views, body["mask"], given, types))
    if any(o is None for o in operands):
        return None
    options = {
        "scale": body["scale"],
        "is_causal": bool(body.get("causal")),
        "enable_gqa": body["heads"] != body["kv_heads"],
    }
    if result["dtype"] != types[body["q"]["tensor"]]["dtype"]:
        return None
    made = views.fx.call_function(attention(backend, options), tuple(operands))
    return views.onto(made, body["output"], result, copied=True)


def _whole(view: dict, types: list[dict]) -> dict | None:
    """The input that the view reads as rows from end to end, or None."""
    at, columns = view["tensor"], view["shape"][-1]
    if at >= len(types) or view.get("offset", 0) or view["strides"][1:] != [columns, 1]:
        return None
    value = types[at]
    lies = dense_order(value)
    plain = lies is not None and lies == sorted(lies) and value["shape"][-1] == columns
    return value if plain and math.prod(value["shape"]) == math.prod(view["shape"]) else None


def _is_layer(whole: list[dict | None], body: dict, out: dict, result: dict) -> bool:
    """Whether the product is aten.linear of a matrix or of a batch of them, which is one call instead of four."""
    if None in whole or len(whole[0]["shape"]) not in (2, 3) or len(whole[1]["shape"]) != 2:
        return False
    shape = [*whole[0]["shape"][:-1], whole[1]["shape"][0]]
    lies = dense_order(result)
    plain = not out.get("offset", 0) and out["strides"][1:] == [shape[-1], 1]
    return plain and list(result["shape"]) == shape and lies is not None and lies == sorted(lies)


def _linear(views: Views, body: dict, arguments: dict, given: list, types: list[dict], result: dict) -> fx.Node | None:
    activation, bias_at = arguments.get("activation", "none"), arguments.get("bias")
    out = body["outputs"][0]
    if body["batch"] != 1 or len(body["outputs"]) != 1 or activation not in ("none", "relu", "gelu_tanh"):
        return None
    if activation != "none" and bias_at is None:
        return None
    whole = [_whole(body[name], types) for name in ("a", "b")]
    if activation == "none" and _is_layer(whole, body, out, result):
        operands = [given[body["a"]["tensor"]], given[body["b"]["tensor"]]]
        bias = None if bias_at is None else _view(views, body["operands"][bias_at], given, types, 2)
        if bias is not None or bias_at is None:
            return views.fx.call_function(aten.linear.default, (*operands, bias))
    a, b = (_view(views, body[name], given, types, 1) for name in ("a", "b"))
    if a is None or b is None or result["dtype"] != types[body["a"]["tensor"]]["dtype"]:
        return None
    bt = views.fx.call_function(aten.t.default, (b,))
    if bias_at is None:
        made = views.fx.call_function(aten.mm.default, (a, bt))
    else:
        bias = _view(views, body["operands"][bias_at], given, types, 2)
        if bias is None:
            return None
        if activation == "none":
            made = views.fx.call_function(aten.addmm.default, (bias, a, bt))
        else:
            made = views.fx.call_function(
                aten._addmm_activation.default, (bias, a, bt), {"use_gelu": activation == "gelu_tanh"}
            )
    flat = {**out, "shape": out["shape"][1:], "strides": out["strides"][1:]}
    if flat["shape"][1] != 1 and flat["strides"][1] != 1:  # written by columns: the library writes it so itself
        return None
    return views.onto(made, flat, result)


_forms = {"sdpa": _sdpa, "linear": _linear}
