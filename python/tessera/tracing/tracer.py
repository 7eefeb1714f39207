"""A live module to a graph (schema tessera.graph/1, docs/protocol.md) by torch.export."""

from __future__ import annotations

import torch
from torch import nn

from tessera.common.errors import fail
from tessera.common.precision import cast, detect, set_flags
from tessera.running.keywords import ordered, signature_of
from tessera.tracing import made_objects
from tessera.tracing.fused_layers import take_apart
from tessera.tracing.graph_builder import Builder, Traced
from tessera.tracing.loading import Loaded, load_problem
from tessera.tracing.torch_export import export

__all__ = ["Loaded", "Traced", "load_problem", "trace", "trace_graph_module", "trace_module"]


def trace(module: nn.Module, args: tuple, kwargs: dict | None = None, precision: str | None = None) -> dict:
    """The graph of module(*args, **kwargs) in the mode (train or eval) that the module is in."""
    return trace_module(module, args, kwargs, precision).graph


def trace_module(
    module: nn.Module, args: tuple, kwargs: dict | None = None, precision: str | None = None, name: str | None = None
) -> Traced:
    """Precision bf16 and fp16 convert the module's parameters and buffers in place, as `module.to` does, and the inputs;
    tf32 and fp32 set torch's flags; None takes the module's dtypes and torch's flags as they are."""
    kwargs = ordered(signature_of(module), dict(kwargs or {}))
    if precision is not None:
        args, kwargs = cast(module, tuple(args), kwargs, precision)
        set_flags(precision)
    with made_objects.flat(module, args, kwargs) as nesting:
        exported = export(module, tuple(args), kwargs)
    builder = Builder(
        exported, module, tuple(args), kwargs, precision or detect(module, args, kwargs), name or type(module).__name__
    )
    return nesting.of(builder.build())


def trace_graph_module(gm: torch.fx.GraphModule, inputs: list, targets: list[str] | None = None) -> Traced:
    """A GraphModule whose placeholders include parameters, as torch.compile hands to backends. `targets[i]` names the
    i-th placeholder when it is a parameter or buffer ("" else); by default nn.Parameters are recognized."""
    if any(isinstance(i, torch.SymInt) or not isinstance(i, torch.Tensor) for i in inputs):
        raise fail(
            "TS0204",
            "graph.dynamic_shape",
            "the graph takes sizes as inputs",
            helps=["call torch.compile(..., dynamic=False)"],
        )
    names = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    if targets is None:
        targets = [name if isinstance(t, nn.Parameter) else "" for name, t in zip(names, inputs, strict=True)]
    exported = export(take_apart(gm), tuple(t.detach() for t in inputs), {})
    builder = Builder(exported, gm, tuple(inputs), {}, detect(gm, inputs, {}), type(gm).__name__)
    builder.parameter_targets = dict(enumerate(targets))
    return builder.build()
