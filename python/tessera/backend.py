"""torch.compile(model, backend="tessera"). Options go by torch.compile(..., options={"effort": "quick", ...}), and `mode` is
torch.compile's; torch takes either of them, so the mode may stand among the options too.

Every graph that torch.compile captures is searched like a module. What tessera does not take goes to Inductor, compiled as
plain torch.compile would: sizes that vary, gradients, and graphs in which no kernel gains anything (but those whose ops run
faster one by one than by Inductor, as measured). All graphs of one torch.compile call share `seconds` of search (60 by
default): nobody knows how many will come, so that each takes a share of what is left. `status(model)` tells what became of
each.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import operator
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tessera import breaks
from tessera.common.errors import Error, fail
from tessera.common.laid import cloned
from tessera.miscompiled import miscompiled, written_by
from tessera.running import autocast, leftover, modes

if TYPE_CHECKING:
    from tessera.tracing.captured import HeldGraph

SECONDS = 60.0  # of search for all graphs of a model
SHARE = 1 / 2  # of what is left of them, for a graph behind which others come: no other share leaves a second one more
SHARE_OF_WHOLE = 0.8  # for a graph that is likely to be the only one
LEAST = 1.0  # seconds that are worth a search
WRONG_OPTIONS = {
    "input.unknown_argument",
    "input.bad_argument",
    "input.bad_option",
    "input.negative_option",
    "input.bad_checkpoints",
}
EAGER_WINS = 0.97  # of Inductor's time, in both measures
NEAR = 0.9  # of it: the device's time decides


@dataclass
class Known:
    """What a search gave for a graph, which serves the same graph when Dynamo captures it again."""

    runner: str
    plan: dict
    leftover: str
    report: dict | None


@dataclass
class Model:
    """One torch.compile call: its budget, and what became of its graphs."""

    spent: float = 0.0
    checked: bool = False  # its options are right
    graphs: list[dict] = field(default_factory=list)
    known: dict[str, Known] = field(default_factory=dict)
    collected: list[Part] | None = None  # where graphs wait until all are captured (tessera.optimize in parts)
    # Graphs with symbolic numbers run op by op: compiled, an index that counts reads beyond its tensor.
    by_ops: bool = False


@dataclass
class Part:
    """A captured graph, called with its flat inputs: op by op until it was searched."""

    gm: torch.fx.GraphModule
    held: HeldGraph
    row: dict
    wanted: autocast.States  # that the graph was captured under
    run: Callable
    first_inputs: list[torch.Tensor] = field(default_factory=list)  # copies

    def __call__(self, *flat):
        return self.run(*flat)

    def remember(self) -> None:
        """The inputs as they are: the call goes on, and may write to them."""
        with unset_fake_temporarily(), torch.no_grad():
            self.first_inputs = [cloned(t) for t in self.held.args]

    def as_captured(self) -> None:
        """What was written to since has its content of then again, in a copy."""
        from tessera.tracing.held import same

        pairs = zip(self.held.args, self.first_inputs, strict=True)
        self.held.args = tuple(t if same(t, then) else then for t, then in pairs)
        self.first_inputs = []


def tessera(gm: torch.fx.GraphModule, example_inputs: list, *, options: dict | None = None, mode: str | None = None):
    """The backend's entry point (pyproject.toml, torch_dynamo_backends)."""
    options = {"progress": False, "seconds": SECONDS, **(options or {})}
    if options.pop("frozen", False):  # nothing looks at version counters behind torch.compile's guards
        raise fail("TS0013", "input.bad_option", "frozen=True", expected="tessera.optimize(..., frozen=True)")
    settings = modes.settings_of(options.pop("mode", mode))
    model = _model_of_call()
    _check(options, model)
    return take(gm, example_inputs, options, settings, model)


def take(gm: torch.fx.GraphModule, inputs: list, options: dict, settings: dict, model: Model) -> Callable:
    """A captured graph as what runs it. What is no kernels' goes to Inductor, with the reason in the model's rows."""
    row = {"runner": "inductor", "reason": _unfit(gm, inputs), "composed": None, "report": None}
    model.graphs.append(row)
    if reason := miscompiled(gm):
        row.update(runner="eager", reason=reason)
        return gm.forward
    left = options["seconds"] - model.spent
    none_left = left < LEAST and model.spent > 0 < options["seconds"]
    if none_left and not model.known:
        row["reason"] = row["reason"] or f"the {options['seconds']:.0f} s of search of this model are spent"
    if row["reason"] and model.by_ops and _is_dynamic(inputs):
        row.update(runner="eager", reason="forward counts in integers, which are symbols here: op by op")
        return gm.forward
    if row["reason"]:
        return leftover.compile_inductor(gm, inputs, settings)
    share = share_of(gm) * max(0.0, left)  # now: compilers may change the graph
    begin = time.monotonic()
    try:
        part = _held(gm, inputs, settings, row)
        if model.collected is not None:
            part.remember()
            model.collected.append(part)
            return part
        # The registry is asked for what a search of all the seconds gives, so that a second run asks for the same.
        search(part, {**options, "spent": options["seconds"] - share}, model, none_left)
        run = part.run
    except Error as e:
        given_up(e, row)
        run = gm.forward if row["runner"] == "eager" else leftover.compile_inductor(gm, inputs, settings)
    # What Inductor takes for the graph as it is plain torch.compile takes too; what tracing and checks take beside the search is
    # not the next graph's loss.
    took = time.monotonic() - begin - _inductor_seconds(row["report"])
    model.spent += min(max(0.0, took), share)
    return run


def _held(gm: torch.fx.GraphModule, inputs: list, settings: dict, row: dict) -> Part:
    from tessera.tracing.captured import hold_graph
    from tessera.tracing.held import in_time

    wanted = autocast.states()
    with unset_fake_temporarily(), autocast.entered(()):
        written = autocast.written_into(gm, wanted)
        held = in_time(lambda: hold_graph(written, inputs, settings), lambda text: None)
    return Part(gm, held, row, wanted, gm.forward)


def search(part: Part, options: dict, model: Model, none_left: bool = False) -> None:
    """Searches the graph, or takes what is known of the same one, and has the part run it. Raises tessera.Error."""
    with unset_fake_temporarily(), autocast.entered(()):
        run = _searched(part, options, model, none_left)
    part.run = _with_autocast_off(run) if part.wanted else run


def _searched(part: Part, options: dict, model: Model, none_left: bool) -> Callable:
    from tessera import engine
    from tessera.tracing.captured import FlatCall

    held, row = part.held, part.row
    key = hash_of(held.graph)
    known = model.known.get(key)
    if known is None and none_left:
        row["reason"] = f"the {options['seconds']:.0f} s of search of this model are spent"
        return held.inductor()
    if known is None:
        composed = engine.optimize_held(held, **options)
        known = Known(composed.runner, composed.plan, composed._leftover, composed.report)
        model.known[key] = known
    elif known.runner == "kernels":
        composed = held.compose(known.plan, known.leftover, report=known.report)
    row["reason"] = (known.report or {}).get("settled", {}).get("why", "")
    row["report"] = known.report
    if known.runner != "kernels":
        row["runner"] = "eager" if _eager_wins(known.report) else "inductor"
        return held.module.gm.forward if row["runner"] == "eager" else held.inductor()
    row["runner"], row["composed"] = "kernels", composed
    return FlatCall(composed, held)


def hash_of(graph: dict) -> str:
    return hashlib.sha256(json.dumps(graph, sort_keys=True, default=repr).encode()).hexdigest()


def _with_autocast_off(run: Callable) -> Callable:
    """The graph holds the casts of the autocast that Dynamo guards."""

    def call(*flat):
        with autocast.entered(()):
            return run(*flat)

    return call


def given_up(e: Error, row: dict) -> None:
    """Says why Inductor runs the graph, as plain torch.compile would, or eager, where the graph is not what eager computes. Raises `e`
    where it is about the options."""
    if e.diagnostic["name"] in WRONG_OPTIONS:  # of the mode and the device together
        raise e
    # Who is here needs no help to come here.
    helps = [text for text in e.diagnostic["helps"] if 'backend="tessera"' not in text]
    row["reason"] = str(Error(e.diagnostic | {"helps": helps}))
    eager = (e.diagnostic.get("data") or {}).get("differs")
    row["runner"] = "eager" if eager else "inductor"
    warnings.warn(f"tessera: a graph goes to {'eager' if eager else 'Inductor'}: {row['reason']}", stacklevel=3)


def share_of(gm: torch.fx.GraphModule) -> float:
    """Of the seconds that are left, for this graph. Others follow where Dynamo broke the forward into pieces, and where the graph
    writes to tensors that stay, as to the cache of a language model, whose prompt and token are two graphs."""
    reason = getattr(gm, "compile_subgraph_reason", None)
    if reason is None or reason.graph_break:
        return SHARE
    written = [(n, t) for n in gm.graph.nodes for t in written_by(n)]
    # `x += y` of what the graph itself has made is no such write.
    stays = any(n.op == "call_method" or n.target is operator.setitem or t.op == "placeholder" for n, t in written)
    return SHARE if stays else SHARE_OF_WHOLE


def _check(options: dict, model: Model) -> None:
    """Once a model, before anything is traced. What else keeps the engine from answering is said where the graph goes to Inductor."""
    from tessera import engine

    if model.checked:
        return
    try:
        engine.check_options(**options)
    except Error as e:
        if e.diagnostic["name"] in WRONG_OPTIONS:
            raise
    model.checked = True


def status(compiled) -> list[dict]:
    """What became of the graphs of a module, function or method that torch.compile(..., backend="tessera") made, in the order of their
    compilation: {"runner", "reason", "status", "report"}; `status` is that of the composed module where kernels run, `report`
    (schema tessera.report/1) what the search found, None where there was none. Behind the graphs, with the runner `python`, what
    was not captured and why."""
    context = _context_of(compiled)
    link = compiled if context is None else context.callback
    rows = []
    for _ in range(8):  # torch's chain of wrappers ends at the one that stands for this call of torch.compile
        model = getattr(link, "__dict__", {}).get("_tessera_model")
        if model is not None:
            rows = rows_of(model)
            break
        link = getattr(link, "_torchdynamo_orig_backend", None)
    return rows + rows_of_python(compiled) if context is not None else rows


def rows_of(model: Model) -> list[dict]:
    return [
        {
            "runner": g["runner"],
            "reason": g["reason"],
            "status": g["composed"] and g["composed"].status(),
            "report": g["report"],
        }
        for g in model.graphs
    ]


def rows_of_python(compiled) -> list[dict]:
    original = getattr(compiled, "_orig_mod", None) or inspect.unwrap(compiled)
    places = breaks.not_captured(original)
    return [{"runner": "python", "reason": breaks.text_of(p), "status": None, "report": None} for p in places]


def _context_of(compiled):
    """Torch's context of a compiled module; that of a compiled function or method is in its closure alone."""
    if (context := getattr(compiled, "dynamo_ctx", None)) is not None:
        return context
    for cell in getattr(compiled, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            if isinstance(cell.cell_contents, torch._dynamo.eval_frame._TorchDynamoContext):
                return cell.cell_contents
    return None


def _model_of_call() -> Model:
    """The torch.compile call that this graph belongs to: torch's wrapper of the backend is on the stack, one a call."""
    frame = sys._getframe(1)
    for _ in range(12):
        frame = frame.f_back
        if frame is None:
            break
        wrapper = frame.f_locals.get("self")
        if type(wrapper).__name__ == "_TorchCompileWrapper":
            return wrapper.__dict__.setdefault("_tessera_model", Model())
    return Model()  # called in another way: a budget of its own


def _is_dynamic(inputs: list) -> bool:
    return any(not isinstance(t, torch.Tensor) for t in inputs) or any(
        isinstance(s, torch.SymInt) for t in inputs for s in (*t.shape, *t.stride())
    )


def _unfit(gm: torch.fx.GraphModule, inputs: list) -> str:
    if _is_dynamic(inputs):
        return "its shapes are dynamic; kernels are made for fixed shapes (torch.compile(..., dynamic=False))"
    records = torch.is_grad_enabled() or any(n.target is _set_grad and n.args[0] for n in gm.graph.nodes)
    if records and any(t.requires_grad for t in (*inputs, *gm.parameters())):
        return "it records gradients; kernels have no backward (call it under torch.no_grad())"
    if not any(n.op == "call_function" or n.op == "call_method" or n.op == "call_module" for n in gm.graph.nodes):
        return "it has no operations"
    return ""


_set_grad = torch._C._set_grad_enabled


def _eager_wins(report: dict | None) -> bool:
    """Whether the graph's own ops, one by one, were measured to be faster than Inductor by more than noise: as where Inductor
    gives a convolution another layout. What is near by the host's clock has to be faster on the device, too. Also where Inductor
    cannot run the graph, or gives something else."""
    ways = {w["runner"]: w for w in (report or {}).get("settled", {}).get("ways", ())}
    eager, inductor = ways.get("eager"), ways.get("inductor")
    if eager is None or inductor is None or eager["reason"]:
        return False
    if inductor["reason"]:
        return not inductor.get("no_time")
    measures = ["call_ms", "back_ms"]
    if "device_ms" in eager and any(eager[key] >= NEAR * inductor[key] for key in measures):
        measures.append("device_ms")
    return all(eager[key] < EAGER_WINS * inductor[key] for key in measures)


def _inductor_seconds(report: dict | None) -> float:
    """What Inductor took for the graph as it is."""
    ways = (report or {}).get("settled", {}).get("baseline", ())
    return sum(w["seconds"] for w in ways if w["runner"] == "inductor")
