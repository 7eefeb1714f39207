"""The process that makes the meaning of a judged module (`python -m tessera.reference_process`): it imports the file with the
reference, in a sandbox of its own, and hands over what is data: the traced graph, the state and inputs of every seed. The
judge runs the graph; nothing of the file runs there (docs/judge.md)."""

from __future__ import annotations

import json

import torch

from tessera.common import protocol
from tessera.common.errors import fail
from tessera.common.randomness import draws
from tessera.judging import exchange
from tessera.tracing.held import Held, hold
from tessera.tracing.loading import ProblemFile


def form_of(args: tuple, kwargs: dict, names: dict[int, str]) -> dict:
    """How a call's arguments are nested (rounds.decoded)."""

    def form(x):
        if isinstance(x, torch.Tensor):
            return {"tensor": names[id(x)]}
        if isinstance(x, dict):
            return {"dict": {k: form(v) for k, v in x.items()}}
        if isinstance(x, (list, tuple)):
            return {"list" if isinstance(x, list) else "tuple": [form(v) for v in x]}
        return {"plain": _plain(x)}

    return {"args": [form(a) for a in args], "kwargs": {k: form(v) for k, v in kwargs.items()}}


def _plain(x):
    try:
        json.dumps(x)
    except (TypeError, ValueError) as error:
        raise fail(
            "TS0071",
            "input.argument_not_data",
            f"an argument of the call is a {type(x).__name__}, which cannot be handed to another process",
            expected="tensors, numbers, texts, and lists, tuples or dictionaries of them",
        ) from error
    return x


def reference(params: dict) -> dict:
    """{"graph", "training", "init", "form", "builds": [{"state": {name: place}, "given": {name: place}, "file"}]}"""
    file = ProblemFile(params["path"], params.get("class") or None)
    precision = None if params["precision"] == "auto" else params["precision"]
    builds, first, form, init = [], None, {}, None
    for number, seed in enumerate(params["seeds"]):
        torch.manual_seed(seed)
        made = file.init_inputs()
        torch.manual_seed(seed)
        module = file.build(made).to(params["device"])
        args, kwargs = file.inputs()
        held = _held(module, args, kwargs, precision, params, file)
        if first is None:
            first, init = held, _init_of(made)
            user = held.traced.flatten(held.args, held.kwargs)
            form = form_of(held.args, held.kwargs, {id(t): name for name, t in user.items()})
            if drawn := draws(held.graph):
                raise fail(
                    "TS0540",
                    "judge.random",
                    f"the reference draws random numbers ({', '.join(drawn)}): no other module can give its results",
                    expected="a reference that gives the same results for the same inputs",
                    helps=["set the probability of dropout to 0, or call .eval() in its constructor"],
                )
        elif [n["op"] for n in held.graph["nodes"]] != [n["op"] for n in first.graph["nodes"]]:
            raise fail("TS0541", "judge.unsteady", "the reference is another graph when it is built from another seed")
        builds.append(_written(held, f"{params['folder']}/build{number}.bin"))
    return {
        "graph": first.graph,
        "training": first.module.training,
        "init": init,
        "form": form,
        "builds": builds,
        "class": file.cls.__name__,
    }


def _held(module, args, kwargs, precision, params: dict, file: ProblemFile) -> Held:
    move = torch.utils._pytree.tree_map_only
    args, kwargs = move(torch.Tensor, lambda t: t.to(params["device"]), (tuple(args), dict(kwargs)))
    return hold(module, args, kwargs, precision, params["path"], file.cls.__name__)


def _init_of(made: tuple[tuple, dict]) -> dict | None:
    """What the class is built from, where it is data; else the judged file's own get_init_inputs is asked."""
    init = {"args": list(made[0]), "kwargs": made[1]}
    try:
        same = json.loads(json.dumps(init)) == init
    except (TypeError, ValueError):
        return None
    return init if same else None


def _written(held: Held, path: str) -> dict:
    state, given = held.traced.state(), held.traced.flatten(held.args, held.kwargs)
    places = exchange.write(path, [*state.values(), *given.values()])
    named = dict(zip([*state, *given], places, strict=True))
    return {"file": path, "state": {n: named[n] for n in state}, "given": {n: named[n] for n in given}}


def main() -> None:
    protocol.over_stdio({"reference": reference}).serve()


if __name__ == "__main__":
    main()
