"""Recurrent layers as one op. torch's own rule for fake tensors runs every time step of every layer: a GRU of 512 steps and six
layers takes half a minute to trace so, for one node of the graph. Inductor makes a program of all steps: that GRU had not
compiled after four minutes on a CPU, and takes twelve seconds when it is closed. Here such layers are traced by shape alone
(`recurrent_shapes`), and closed to Inductor (`closed`), as Dynamo leaves them to eager.
"""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager

import torch
from torch import fx
from torch._C import DispatchKey

_aten = torch.ops.aten
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def _output(x: torch.Tensor, hidden: torch.Tensor, bidirectional: bool, batch_first: bool) -> torch.Tensor:
    """[steps, batch, directions * hidden], or its transpose where the batch is the first dim, as torch lays it out."""
    steps, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
    made = x.new_empty(steps, batch, hidden.shape[-1] * (2 if bidirectional else 1))
    return made.transpose(0, 1) if batch_first else made


def _one_state(x, hidden, params, has_biases, layers, dropout, train, bidirectional, batch_first):
    return _output(x, hidden, bidirectional, batch_first), hidden.new_empty(hidden.shape)


def _two_states(x, hidden, params, has_biases, layers, dropout, train, bidirectional, batch_first):
    return (_output(x, hidden[0], bidirectional, batch_first), *(h.new_empty(h.shape) for h in hidden))


_RULES = {
    _aten.gru.input: _one_state,
    _aten.rnn_tanh.input: _one_state,
    _aten.rnn_relu.input: _one_state,
    _aten.lstm.input: _two_states,
}


_exchanging = threading.RLock()  # the tables are the process': a second thread would take the rules for torch's own


@contextmanager
def recurrent_shapes():
    """Within: the rules above instead of torch's, for fake tensors, in one thread at a time. No real tensor may go through these
    ops by Python's dispatcher meanwhile, so nothing but torch.export belongs inside."""
    with _exchanging, _exchanged():
        yield


@contextmanager
def _exchanged():
    from torch._decomp import decomposition_table
    from torch._subclasses.fake_impls import op_implementations_dict

    # Where torch.export looks, and where fake tensors look.
    before = {op: {key: op.py_kernels[key] for key in _KEYS if key in op.py_kernels} for op in _RULES}
    table = {op: decomposition_table[op] for op in _RULES if op in decomposition_table}

    def exchange(kernels: dict, decompositions: dict) -> None:
        for op in _RULES:
            op.py_kernels.update(kernels[op])
            op._dispatch_cache.clear()
        decomposition_table.update(decompositions)

    known = set(op_implementations_dict)
    exchange({op: dict.fromkeys(before[op], rule) for op, rule in _RULES.items()}, {op: _RULES[op] for op in table})
    try:
        yield
    finally:
        exchange(before, table)
        for op in (set(op_implementations_dict) - known) & set(_RULES):  # what export kept of these rules
            del op_implementations_dict[op]


# --- closed ------------------------------------------------------------------------------------------------------------

_NAMES = {
    _aten.gru.input: "gru",
    _aten.lstm.input: "lstm",
    _aten.rnn_tanh.input: "rnn_tanh",
    _aten.rnn_relu.input: "rnn_relu",
}


@functools.cache
def _operator(op):
    """A custom operator that is the op, and that no compiler looks into."""
    name, schema = f"tessera::{_NAMES[op]}", str(op._schema)
    torch.library.define(name, schema[schema.index("(") :])
    torch.library.impl(name, "CompositeExplicitAutograd", op)
    torch.library.register_fake(name, _RULES[op])
    return getattr(torch.ops.tessera, _NAMES[op]).default


def closed(graph: fx.Graph) -> None:
    """Exchanges the graph's recurrent ops for operators that Inductor calls as they are."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target in _NAMES:
            node.target = _operator(node.target)
