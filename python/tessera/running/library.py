"""Vendor kernels as candidates: functions that run a pattern through a library that PyTorch reaches.

`make(name, pattern, arguments, graph, device)` returns a callable: the pattern's inputs, in order, to its outputs, in
order, with the graph's shapes, types and strides. What a backend does not support is an Error TS0430 with the reason.
A function lives in the table `functions`; each is labelled `library` and never counts as synthesized.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch.nn.attention import sdpa_kernel

from tessera.common.errors import fail
from tessera.common.laid import in_layout
from tessera.common.reference import Executor, overload
from tessera.running.library_steps import BACKENDS

Tensors = list[torch.Tensor]
Function = Callable[[Tensors], Tensors]


def unsupported(reason: str):
    return fail("TS0430", "realize.library_unsupported", reason)


def make(name: str, pattern: dict, arguments: dict, graph: dict, device: str) -> Function:
    if name not in functions:
        raise fail(
            "TS0431",
            "realize.no_such_function",
            f"there is no library function `{name}`",
            expected=", ".join(sorted(functions)),
        )
    return functions[name](pattern, arguments, graph, device)


def view_of(view: dict, tensors: Tensors) -> torch.Tensor:
    """A pattern body's strided view on one of its tensors. Without asking for the base's own offset in its storage, which
    torch.compile cannot trace: as_strided keeps it where none is given."""
    base, offset, shape, strides = tensors[view["tensor"]], view.get("offset", 0), view["shape"], view["strides"]
    if offset:
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        base = base.as_strided((offset + last + 1,), (1,))[offset:]
    return base.as_strided(shape, strides)


def _values(pattern: dict, graph: dict) -> list[dict]:
    values = {v["name"]: v for v in graph["values"]}
    return [values[name] for name in pattern["outputs"]]


def empty_outputs(pattern: dict, graph: dict, device: str) -> Tensors:
    return [
        torch.empty_strided(v["shape"], v["strides"], dtype=getattr(torch, v["dtype"]), device=device)
        for v in _values(pattern, graph)
    ]


def _aten(pattern: dict, arguments: dict, graph: dict, device: str) -> Function:
    """The pattern's own nodes, one ATen call after the other: what eager does, without copies into the same layout."""
    executor = Executor(graph, device, share_clones=True)
    nodes, names, outputs = pattern["nodes"], pattern["inputs"], pattern["outputs"]
    wanted = [(v["shape"], v["strides"]) for v in _values(pattern, graph)]

    def run(tensors: Tensors) -> Tensors:
        result = executor.run(nodes, dict(zip(names, tensors, strict=True)), outputs, None)
        found = [result[name] for name in outputs] if isinstance(result, dict) else list(result)
        return [in_layout(t, shape, strides) for t, (shape, strides) in zip(found, wanted, strict=True)]

    return run


def _about(backend: str, words: list[str]) -> str:
    """What was said of this backend."""
    name = backend.split()[0][:4].lower()
    return "; ".join(dict.fromkeys(w for w in words if name in w.lower() or len(words) == 1))


def _sdpa(pattern: dict, arguments: dict, graph: dict, device: str) -> Function:
    """torch's scaled_dot_product_attention by one backend, on the pattern's strided views."""
    body = pattern["body"]
    backend = arguments.get("backend", "default")
    if backend not in BACKENDS:
        raise unsupported(f"there is no attention backend `{backend}`; there are {', '.join(BACKENDS)}")
    chosen = BACKENDS[backend]
    values = _values(pattern, graph)
    if len(values) != 1:
        raise unsupported("attention with more than one output")
    out_value, out_view = values[0], body["output"]
    grouped = body["heads"] != body["kv_heads"]
    options = {"scale": body["scale"], "is_causal": bool(body.get("causal")), "enable_gqa": grouped}
    if options["is_causal"] and body.get("mask"):
        raise unsupported("torch takes a causal flag or a mask, not both")
    dtype = getattr(torch, out_value["dtype"])

    def attend(tensors: Tensors) -> torch.Tensor:
        q, k, v = (view_of(body[name], tensors) for name in ("q", "k", "v"))
        mask = view_of(body["mask"], tensors) if body.get("mask") else None
        call = torch.nn.functional.scaled_dot_product_attention
        if chosen is None:
            return call(q, k, v, attn_mask=mask, **options)
        with sdpa_kernel(chosen):
            return call(q, k, v, attn_mask=mask, **options)

    def run(tensors: Tensors) -> Tensors:
        o = attend(tensors)
        wanted = out_view["strides"]
        shares = (
            o.dtype == dtype
            and out_view.get("offset", 0) == 0
            and all(n == 1 or a == b for n, a, b in zip(o.shape, o.stride(), wanted, strict=True))
        )
        if shares:
            return [o.as_strided(out_value["shape"], out_value["strides"])]
        out = torch.empty_strided(out_value["shape"], out_value["strides"], dtype=dtype, device=o.device)
        out.as_strided(out_view["shape"], wanted, out_view.get("offset", 0)).copy_(o)
        return [out]

    def first(tensors: Tensors) -> Tensors:
        """The backend's own words for why it refuses are warnings: they become the reason."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                return run(tensors)
            except RuntimeError as error:
                if not any(w in str(error) for w in ("No available kernel", "No viable backend", "not support")):
                    raise
                words = [str(w.message).split(" (Triggered")[0] for w in heard]
                raise unsupported(f"{backend} attention: {_about(backend, words) or error}"[:600]) from error

    state = {"run": first}

    def checked(tensors: Tensors) -> Tensors:
        out = state["run"](tensors)
        state["run"] = run
        return out

    return checked


def _linear(pattern: dict, arguments: dict, graph: dict, device: str) -> Function:
    """cuBLAS (or the host's BLAS) with a bias and an activation in its epilogue: D = act(A B^T + bias).

    arguments: {"bias": position of the row vector among the epilogue's operands or null, "activation": "none", "relu"
    or "gelu_tanh"}; the pattern is a gemm with one output.
    """
    body = pattern["body"]
    activation = arguments.get("activation", "none")
    bias_at = arguments.get("bias")
    if body["batch"] != 1:
        raise unsupported("addmm takes no batch")
    if len(body["outputs"]) != 1:
        raise unsupported("addmm has one result")
    if activation not in ("none", "relu", "gelu_tanh"):
        raise unsupported(f"addmm has no epilogue `{activation}`")
    if activation != "none" and (bias_at is None or torch.device(device).type != "cuda"):
        raise unsupported("the activation epilogue of addmm needs a bias and CUDA")
    out_view, inputs = body["outputs"][0], len(pattern["inputs"])

    def run(tensors: Tensors) -> Tensors:
        outputs = empty_outputs(pattern, graph, device)
        both = tensors + outputs
        a, b, d = view_of(body["a"], both)[0], view_of(body["b"], both)[0], view_of(out_view, both)[0]
        assert out_view["tensor"] == inputs
        if bias_at is None:
            torch.mm(a, b.t(), out=d)
        else:
            bias = view_of(body["operands"][bias_at], both)[0, 0]
            if activation == "none":
                torch.addmm(bias, a, b.t(), out=d)
            else:
                torch.ops.aten._addmm_activation.out(bias, a, b.t(), use_gelu=activation == "gelu_tanh", out=d)
        return outputs

    return run


def _op(pattern: dict, arguments: dict, graph: dict, device: str) -> Function:
    """One ATen op that a pattern's rule names.

    arguments: {"op": "aten.cumsum.default", "arguments": by schema name, where {"view": ...} is a strided view on one of
    the pattern's inputs}; the op's results are the pattern's outputs, in order.
    """
    op = overload(arguments["op"])
    given = arguments["arguments"]
    wanted = _values(pattern, graph)

    def run(tensors: Tensors) -> Tensors:
        call = {k: view_of(v["view"], tensors) if isinstance(v, dict) else v for k, v in given.items()}
        result = op(**call)
        found = [result] if isinstance(result, torch.Tensor) else list(result)
        if [t.dtype for t in found] != [getattr(torch, v["dtype"]) for v in wanted]:
            raise unsupported(f"{arguments['op']} gives other element types than the pattern")
        return [in_layout(t, v["shape"], v["strides"]) for t, v in zip(found, wanted, strict=True)]

    return run


functions: dict[str, Callable[[dict, dict, dict, str], Function]] = {
    "aten": _aten,
    "op": _op,
    "sdpa": _sdpa,
    "linear": _linear,
}
