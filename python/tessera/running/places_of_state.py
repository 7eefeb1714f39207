"""Where the tensors that a plan reads live in the original module, and which inputs a copy may not stand for."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import fail
from tessera.common.module_state import owner_of
from tessera.running.plan_graph import Built, device_of, type_of
from tessera.running.state_guard import Slot


def private_constants(module: nn.Module, constants: dict[str, torch.Tensor]) -> frozenset[str]:
    """Constants whose memory nothing of the module looks at: literals of forward."""
    tensors = [*module.parameters(), *module.buffers()]
    for m in module.modules():
        tensors += [t for t in pytree.tree_leaves(list(m.__dict__.values())) if isinstance(t, torch.Tensor)]
    seen = {t.untyped_storage().data_ptr() for t in tensors if t.layout == torch.strided}
    return frozenset(n for n, t in constants.items() if t.untyped_storage().data_ptr() not in seen)


def slots_of(
    module: nn.Module, graph: dict, built: Built, constants: dict[str, torch.Tensor], device: torch.device
) -> list[Slot]:
    """The parameters, buffers and constants that the built graphs read, or whose content the plan relies on. `device`: the
    graph's."""
    packed = set(built.pack_feeds)
    used = set(built.feeds) | packed | {name for parts in built.neighbours.values() for name in parts}
    values = {v["name"]: v for v in graph["values"]}
    slots = []
    for name in graph["inputs"]:
        v = values[name]
        if v["origin"] == "user_input" or (name not in used and not v.get("facts")):
            continue
        home, owner, key, tensor = _find(module, name, v, constants)
        place, facts = device_of(v, device), v.get("facts") or {}
        slots.append(Slot(name, type_of(v), place, owner, key, tensor, facts, name in packed, (home, key)))
    return slots


def _find(
    root: nn.Module, name: str, v: dict, constants: dict[str, torch.Tensor]
) -> tuple[nn.Module | None, dict | None, str, torch.Tensor]:
    """Where a parameter, buffer or constant lives: its module, the dictionary and key; None for a loose constant."""
    place = owner_of(root, v.get("target", ""))
    if name in constants and not (place and place[1] is place[0].__dict__ and place[1][place[2]] is constants[name]):
        return None, None, name, constants[name]
    if place is not None:
        module, owner, key = place
        return module, owner, key, owner[key]
    raise fail(
        "TS0215",
        "plan.unknown_tensor",
        f"the module has no {v['origin']} `{v.get('target') or name}`",
        helps=["the plan is of another module: optimize this one"],
    )


def aliased(graph: dict, users: list[str]) -> set[int]:
    """Indices of user inputs that a copy may not stand for: those that forward writes to, those whose memory a result shares, and
    those whose place in memory the graph names. All of them where the graph does not say."""
    memory = graph.get("meta", {}).get("memory")
    if memory is None:
        return set(range(len(users)))
    names = {*memory["written"], *(row["of"] for row in memory["outputs"] if row), *memory.get("offsets", ())}
    return {i for i, name in enumerate(users) if name in names}
