"""torch.compile(model, backend="tessera"). Options go by torch.compile(..., options={"effort": "quick", ...}).

The graph that torch.compile captured is optimized like any module: its placeholders that are parameters count as such.
Graphs with gradients or sizes as inputs, and graphs that cannot be optimized, run as captured, with one warning each. A weight that is another tensor in a later
call, or has changed, is packed again.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import torch
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tessera.errors import Error


def tessera(gm: torch.fx.GraphModule, example_inputs: list, *, options: dict | None = None, **more):
    """The backend's entry point (pyproject.toml, torch_dynamo_backends)."""
    options = {"progress": False, **(options or {}), **more}
    options.pop("mode", None)
    reason = _unfit(gm, example_inputs)
    if reason:
        return _as_captured(gm, reason)
    try:
        return _optimized(gm, example_inputs, options)
    except Error as e:
        return _as_captured(gm, str(e))


def _as_captured(gm: torch.fx.GraphModule, reason: str):
    warnings.warn(f"tessera: this graph runs as PyTorch captured it: {reason}", stacklevel=2)
    return gm.forward


def _unfit(gm: torch.fx.GraphModule, inputs: list) -> str:
    if any(not isinstance(t, torch.Tensor) for t in inputs) or any(
        isinstance(s, torch.SymInt) for t in inputs for s in (*t.shape, *t.stride())
    ):
        return "its shapes are dynamic; kernels are made for fixed shapes (torch.compile(..., dynamic=False))"
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*inputs, *gm.parameters())):
        return "it records gradients; kernels have no backward (call it under torch.no_grad())"
    if not any(n.op == "call_function" or n.op == "call_method" or n.op == "call_module" for n in gm.graph.nodes):
        return "it has no operations"
    return ""


class _Captured(nn.Module):
    """A captured graph whose weights are buffers and whose forward takes the rest: what a traced module looks like."""

    def __init__(self, gm: torch.fx.GraphModule, names: list[str]):
        super().__init__()
        self.__dict__["gm"], self.names = gm, names  # "" for a placeholder that is no weight

    def hold_weights(self, flat) -> list[torch.Tensor]:
        """Takes over the weights of a call; the other arguments."""
        rest = []
        for name, t in zip(self.names, flat, strict=True):
            if name:
                self._buffers[name] = t
            else:
                rest.append(t)
        return rest

    def forward(self, *rest):
        rest = iter(rest)
        return self.gm.forward(*[self._buffers[name] if name else next(rest) for name in self.names])


def _optimized(gm: torch.fx.GraphModule, inputs: list, options: dict):
    from tessera import api
    from tessera.held import Held, describe_device
    from tessera.tracer import trace_graph_module

    with unset_fake_temporarily():
        placeholders = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        names = [n if isinstance(t, nn.Parameter) else "" for n, t in zip(placeholders, inputs, strict=True)]
        traced = trace_graph_module(gm, inputs, names)
        module = _Captured(gm, names)
        rest = module.hold_weights(inputs)
        users = [u for u, name in zip(traced.user_inputs, names, strict=True) if not name]
        traced = replace(traced, module=module, user_inputs=users)
        describe_device(traced.graph)
        composed = api.optimize_held(Held(module, tuple(rest), {}, traced, resizable=False), **options)

    def run(*flat):
        return composed(*module.hold_weights(flat))

    run.composed = composed
    return run
