"""A live module to an exported program by torch.export, or a diagnostic that says why not."""

from __future__ import annotations

import contextlib
import os
import re
import traceback
import warnings
from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass
from unittest.mock import patch

import torch
import torch._inductor.config as inductor_config
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram, _unlift

from tessera.common.errors import BY_GRAPHS, Error, fail
from tessera.common.precision import legacy_readable_flags
from tessera.common.recurrent import recurrent_shapes
from tessera.tracing import eager_ops, made_objects, partial_graphs, state_copies
from tessera.tracing.composites import take_complex_apart
from tessera.tracing.dropouts import ReturnedAsGiven
from tessera.tracing.flex_attention import close_flex_attention
from tessera.tracing.literals import literals, storages_alive
from tessera.tracing.memory import hidden_views, hidden_writes, memory_of, with_mutations
from tessera.tracing.picture import recomputed
from tessera.tracing.python_state import fails


@dataclass
class Exported:
    program: ExportedProgram
    literals: dict[str, torch.Tensor]  # see literals.py
    calls: dict[str, dict]  # what operators of its graph mean (common/flex_calls.py)
    memory: dict  # see memory.py


def export(module: nn.Module, args: tuple, kwargs: dict) -> Exported:
    made_objects.refuse_given(args, kwargs)
    alive = storages_alive()
    try:
        exported, memory, complaints = _exported(module, args, kwargs, alive)
        if (exported is None or complaints) and _keep_as_buffers(module, complaints):
            exported, memory, complaints = _exported(module, args, kwargs, alive)
        if exported is None:
            raise complaints[0]
        take_complex_apart(exported)
        calls = close_flex_attention(exported)
        return Exported(exported, literals(exported, alive), calls, memory)
    except Error:
        raise
    except Exception as e:  # noqa: BLE001 - export raises many kinds; each becomes a diagnostic
        raise _untraceable(module, args, kwargs, e) from e


def _exported(module: nn.Module, args: tuple, kwargs: dict, alive: Container[int]):
    """The exported program and its record of memory, or None, and what export said of tensor attributes that forward assigns:
    its error, or its warnings. Any other error is raised."""
    training = [(m, m.training) for m in module.modules()]
    hooks = nn.modules.module._global_buffer_registration_hooks
    before = set(hooks)
    try:
        with (
            torch.no_grad(),
            legacy_readable_flags(),
            recurrent_shapes(),
            partial_graphs.unprinted(),
            ReturnedAsGiven(),
            state_copies.kept(),
            eager_ops.put_right(),
            _its_own_attributes(module),
            # Else what draws and is not read is dropped, and shifts what is drawn next.
            inductor_config.patch(fallback_random=True),
            # The guards of a graph that Dynamo captured, which names them by its own sources.
            patch.object(_unlift, "_ok_to_generate_guards_fn", lambda: False),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            captured = torch.export.export(module, args, kwargs, strict=False)
            if any(isinstance(c, FakeTensor) for c in captured.constants.values()):
                raise RuntimeError("forward writes to the memory of a tensor past autograd, by `.data`")
            memory = memory_of(captured, module, args, kwargs, set(literals(captured, alive)))
            exported = captured.run_decompositions(_taken_apart(captured))
            memory = with_mutations(memory, exported)
            _let_go(captured.graph, exported.graph)
    except RuntimeError as e:
        if not _state_of.search(str(e)):
            raise
        return None, {}, [e]
    finally:
        for m, mode in training:
            m.training = mode
        for key in set(hooks) - before:  # a failed export leaves its hook behind, and torch.compile stumbles on it
            del hooks[key]
    mine = [w.message for w in said if _state_of.search(str(w.message))]
    for w in said:
        if w.message not in mine and not issubclass(w.category, (FutureWarning, DeprecationWarning)):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return exported, memory, mine


def _let_go(*graphs: torch.fx.Graph) -> None:
    """Of the tensors that fake ones stand for: their modes refer to them weakly for good, and torch.utils.swap_tensors takes none that
    somebody refers to so."""
    values = [n.meta.get("val") for graph in graphs for n in graph.nodes]
    for mode in {v.fake_mode for v in values if isinstance(v, FakeTensor)}:
        mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()


@contextlib.contextmanager
def _its_own_attributes(module: nn.Module) -> Iterator[None]:
    """Afterwards export puts attributes back as they were before, and with them copies of lists, tuples and dictionaries, which
    others may hold too: the module is to hold the very objects."""
    before = [(m.__dict__, dict(m.__dict__)) for m in module.modules()]
    try:
        yield
    finally:
        for own, held in before:
            own.update((k, v) for k, v in held.items() if isinstance(v, (list, tuple, dict, deque)) and k in own)


def _taken_apart(captured: ExportedProgram) -> dict:
    """Of the composite ops, all of which the graph keeps, those that hide views or writes."""
    hiding = hidden_views(captured) | hidden_writes(captured)
    every = torch.export.default_decompositions() if hiding else {}
    return {op: every[op] for op in hiding if op in every}


_state_of = re.compile(r"Constant (\S+) is mutated in the forward method|tensor attributes? (.*?) w(?:as|ere) assigned")


def _keep_as_buffers(module: nn.Module, complaints: list) -> bool:
    """Tensors that forward keeps from call to call as plain attributes become buffers that are not saved: export follows
    the changes of buffers only. The module computes what it did before. False when there is no such attribute."""
    names = set()
    for complaint in complaints:
        mutated, assigned = _state_of.search(str(complaint)).groups()
        names |= {mutated} if mutated else {a.strip().removeprefix("self.") for a in assigned.split(",")}
    kept, anew = [], recomputed(module)
    for path, owner in module.named_modules():
        for name, tensor in list(vars(owner).items()):
            full = f"{path}.{name}" if path else name
            wanted = (full in names or full.replace(".", "_") in names) and (path, name) not in anew
            if isinstance(tensor, torch.Tensor) and wanted:
                delattr(owner, name)
                owner.register_buffer(name, tensor, persistent=False)
                kept.append(full)
    if kept:
        warnings.warn(
            f"forward assigns the tensor attributes {', '.join(kept)}: they are kept as buffers (persistent=False)",
            stacklevel=5,
        )
    return bool(kept)


def _untraceable(module: nn.Module, args: tuple, kwargs: dict, error: Exception) -> Error:
    text = str(error).strip() or type(error).__name__
    first = next((line.strip() for line in text.splitlines() if line.strip()), text)[:400]
    if (own := fails(module, args, kwargs)) is not None:
        return own
    notes = [f"at {place}" for place in places_of_user(error)[-2:]]
    kind = type(error).__name__ + text
    if any(word in kind for word in ("DataDependent", "data-dependent", "unbacked", "Unbacked", "nonzero")):
        return fail(
            "TS0203",
            "graph.data_dependent",
            f"what the module computes depends on the values of a tensor: {first}",
            notes=notes,
            helps=[
                "replace Python control flow on tensor values by torch.where or masking",
                "or optimize the submodules that do not depend on values",
                BY_GRAPHS,
            ],
        )
    return fail(
        "TS0202",
        "graph.untraceable",
        f"torch.export cannot trace the module: {type(error).__name__}: {first}",
        notes=notes,
        helps=[
            "`torch.export.export(module, inputs, strict=False)` shows the whole error",
            "or optimize the submodules that it can trace",
            BY_GRAPHS,
        ],
    )


def places_of_user(error: BaseException) -> list[str]:
    """FILE:LINE of the user's code that the traceback goes through, or that the error's text names, outermost first."""
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    own = [(file, line) for file, line in frames if not file.startswith(_not_of_user)]
    if not own:
        named = re.findall(r'File "([^"]+)", line (\d+)', str(error))
        own = [(file, line) for file, line in named if not file.startswith(_not_of_user)]
    return list(dict.fromkeys(f"{file}:{line}" for file, line in own))


_not_of_user = (
    os.path.dirname(torch.__file__) + os.sep,
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    os.path.dirname(os.__file__) + os.sep,
    "<",
)
