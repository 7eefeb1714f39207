"""What a call left behind, held against what eager leaves: values, types, layouts, and who shares memory with whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from program import Program
from twin import ERRORS, Seen, twin


@dataclass
class Difference:
    symptom: str  # value, zero sign, dtype, shape, strides, identity, memory, structure, type, error
    where: str  # result, buffer, parameter, argument
    text: str


_WHERE = {"x": "argument", "p": "parameter", "b": "buffer", "r": "result"}


def differences(eager: Seen, other: Seen, tolerated: Callable | None = None) -> list[Difference]:
    """`tolerated(name, eager's, other's)`: by element, whether a difference in value is within the budget; None: bit for bit."""
    if eager.structure != other.structure or eager.live.keys() != other.live.keys():
        return [
            Difference(
                "structure", "result", f"{eager.structure} {list(eager.live)}; {other.structure} {list(other.live)}"
            )
        ]
    found = []
    for name, e in eager.held.items():
        o, where = other.held[name], _WHERE[name[0]]

        def differs(symptom: str, wanted, got, name=name, where=where) -> None:
            found.append(Difference(symptom, where, f"{name}: eager {wanted}, got {got}"))

        if e.dtype != o.dtype:
            differs("dtype", e.dtype, o.dtype)
        elif e.shape != o.shape:
            differs("shape", list(e.shape), list(o.shape))
        else:
            le, lo = eager.live[name], other.live[name]
            if _strides(le) != _strides(lo):
                differs("strides", le.stride(), lo.stride())
            if type(le).__name__ != type(lo).__name__:
                differs("type", type(le).__name__, type(lo).__name__)
            symptom = unequal(e, o)
            near = tolerated(name, e, o) if symptom and tolerated else torch.tensor(False)
            if symptom and not near.all():
                differs(symptom, _short(e, o, ~near), _short(o, e, ~near))
    for name, e in eager.plain.items():
        if type(e) is not type(other.plain[name]) or repr(e) != repr(other.plain[name]):
            found.append(Difference("value", "result", f"{name}: eager {e!r}, got {other.plain[name]!r}"))
    if not any(d.symptom in ("dtype", "shape") for d in found):
        found += _relations(eager.live, other.live)
    return found


def _strides(t: torch.Tensor) -> list[int]:
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() else []


def unequal(e: torch.Tensor, o: torch.Tensor) -> str:
    """Empty where equal bit for bit (every NaN is one); else value, or zero sign where nothing else differs."""
    if e.dtype.is_floating_point and e.itemsize == 1:
        return "" if torch.equal(e.view(torch.uint8), o.view(torch.uint8)) else "value"
    same = (e == o) | ((e != e) & (o != o))
    if not bool(same.all()):
        return "value"
    if e.dtype.is_floating_point and not torch.equal((e == 0) & e.signbit(), (o == 0) & o.signbit()):
        return "zero sign"
    return ""


def _short(t: torch.Tensor, other: torch.Tensor, outside: torch.Tensor) -> str:
    """Of the elements `outside` the budget the first ones that differ."""
    dtype = t.dtype
    t, other = (x.double() if x.is_floating_point() else x for x in (t, other))
    differ = (t != other) & ~((t != t) & (other != other))
    if not (differ & outside).any():
        differ = t.signbit() != other.signbit()
    wrong = (differ & outside).flatten()
    return f"{t.flatten()[wrong][:3].tolist()} at {wrong.nonzero().flatten()[:3].tolist()} of {list(t.shape)} {dtype}"


# Who is whom, and whose elements lie where


def _relations(eager: dict, other: dict) -> list[Difference]:
    """State and results against all that comes before them."""
    found, names = [], list(eager)
    for i, name in enumerate(names):
        if name[0] == "x":
            continue
        for before in names[:i]:
            is_e, is_o = eager[name] is eager[before], other[name] is other[before]
            pair = f"{name} and {before}"
            if is_e != is_o:
                found.append(
                    Difference("identity", _WHERE[name[0]], f"{pair}: one object in eager {is_e}, here {is_o}")
                )
            shared_e, shared_o = (_shared(m[name], m[before]) for m in (eager, other))
            if shared_e != shared_o:
                text = f"{pair}: elements in common in eager {len(shared_e)}, here {len(shared_o)}, or others"
                found.append(Difference("memory", _WHERE[name[0]], text))
    return found


def _shared(a: torch.Tensor, b: torch.Tensor) -> list[tuple[int, int]]:
    """Which elements of two tensors lie at one address, by their positions."""
    a, b = (t.detach().as_subclass(torch.Tensor) for t in (a, b))
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr() or not a.numel() or not b.numel():
        return []
    at = {}
    for position, address in enumerate(_addresses(a)):
        at.setdefault(address, position)
    return [(at[address], position) for position, address in enumerate(_addresses(b)) if address in at]


def _addresses(t: torch.Tensor) -> list[int]:
    count = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1
    return (torch.arange(count).as_strided(t.shape, t.stride(), t.storage_offset()).flatten() * t.itemsize).tolist()


def runs(p: Program) -> bool:
    """Whether eager takes the program, and every seed gives one result: two twins agree bit for bit. Notes of the changes which
    of them eager does not take."""
    try:
        one, other = twin(p), twin(p)
        if any(differences(one.call(r), other.call(r)) for r in (0, 1)):
            return False
    except ERRORS:
        return False
    for r, change in enumerate(p.changes, 2):
        try:
            one.call(r, change)
        except ERRORS:
            change["raises"] = True
            one = twin(p)
    return True


def seldom_one_graph(p: Program) -> bool:
    """Whether the first call writes to memory that two arguments, parameters or buffers share, or puts another tensor in a buffer's
    place: such programs are seldom one graph, and an export would fail for all programs beside them."""
    one = twin(p)
    args = one.prepare(0)
    named = {f"x{i}": a for i, a in enumerate(args) if isinstance(a, torch.Tensor)}
    named |= one.module._parameters | one.module._buffers
    before = {n: (t, t._version) for n, t in named.items()}
    with torch.no_grad():
        one.module(*args)
    if any(t is not before[n][0] for n, t in one.module._buffers.items()):
        return True
    written = [n for n, (t, version) in before.items() if t._version != version]
    others = [(n, t) for n, (t, _) in before.items()]
    return any(m != n and (before[m][0] is t or _shared(before[m][0], t)) for m in written for n, t in others)
