"""PyTorch's own samples of its ops (OpInfo), through trace, rewrites and the plan run op by op, beside eager.

    python tests/fuzz/opinfo.py [--family reduction] [--samples 300]
    python tests/fuzz/opinfo.py --kernels --samples 20          with kernels placed on `host`

Many calls share an export. A family is a file of src/graph/ops; the functions of src/pointwise/functions are one.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import torch
from torch.utils import _pytree as pytree

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from comparing import differences  # noqa: E402
from road import ROOT, Way  # noqa: E402
from tessera.common.errors import Error  # noqa: E402
from twin import Seen  # noqa: E402

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]
# Names in op_db that no record's name tells.
_OTHERS = {
    "nn.functional.cross_entropy": "loss",
    "nn.functional.interpolate": "copy",
    "__getitem__": "gather",
    "torch.ops.aten._safe_softmax.default": "normalize",
    "T": "view",
    "argsort": "reduction",
}
_UNDEFINED = ("empty", "empty_like", "nn.functional.dropout2d")  # what they hold is not said
_CALLS = 40  # in one export


@dataclass
class Call:
    """One sample: `run` on tensors in the places of the leaves that are tensors."""

    name: str
    run: Callable
    leaves: list
    form: pytree.TreeSpec

    def __post_init__(self):
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def tensors(self) -> list[torch.Tensor]:
        """Copies, each in the layout of the sample's."""
        return [
            self.leaves[i].detach().clone() if _plain(self.leaves[i]) else self.leaves[i].detach() for i in self.places
        ]

    def __call__(self, tensors):
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors, strict=True):
            leaves[i] = t
        first, args, kwargs = pytree.tree_unflatten(leaves, self.form)
        return self.run(first, *args, **kwargs)


def _plain(t: torch.Tensor) -> bool:
    return t.is_contiguous()


def families() -> dict[str, str]:
    """The family of every op that has a record, by the op's name without `aten.`."""
    found = {}
    for path in sorted((ROOT / "src/graph/ops").glob("*.cpp")):
        found |= dict.fromkeys(re.findall(r'"aten\.(\w+)"', path.read_text()), path.stem)
    for path in sorted((ROOT / "src/pointwise/functions").glob("*.cpp")):
        for name in re.findall(r'"aten\.(\w+)', path.read_text()):
            found.setdefault(name, "pointwise")
    return found


def ops_of(family: str) -> list:
    # Its import forbids that torch's flags are set in this process, which other tests do.
    with patch.object(torch.backends, "disable_global_flags"):
        from torch.testing._internal import common_methods_invocations as invocations

    # The samples' functions of random numbers set the seed and put the generator back, which a graph does not hold.
    invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    known, mine = families(), []
    for op in invocations.op_db:
        names = [op.aten_name or "", op.name.replace(".", "_"), op.name.split(".")[-1]]
        of = _OTHERS.get(op.name) or next((known[n] for n in names if n in known), None)
        if of == family and op.name not in _UNDEFINED and not op.name.startswith(("sparse.", "masked.")):
            mine.append(op)
    return mine


def _samples(op, dtype: torch.dtype) -> Iterator[Call]:
    name = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''} {str(dtype).removeprefix('torch.')}"
    in_place = op.inplace_variant
    try:
        for i, s in enumerate(op.sample_inputs("cpu", dtype)):
            leaves, form = pytree.tree_flatten((s.input, tuple(s.args), dict(s.kwargs)))
            run = op.op
            if in_place is not None and i % 4 == 3:
                run = lambda x, *a, in_place=in_place, **k: in_place(x.clone(), *a, **k)  # noqa: E731
            yield Call(name + (" in place" if run is not op.op else ""), run, leaves, form)
    except Exception:  # noqa: BLE001 - PyTorch's own makers of samples fail for some types
        return


def calls_of(family: str, count: int) -> list[Call]:
    """`count` samples in turn from every op and type, those that eager takes twice alike."""
    sources = [_samples(op, d) for d in DTYPES for op in ops_of(family) if d in op.supported_dtypes("cpu")]
    made: list[Call] = []
    while sources and len(made) < count:
        for source in list(sources):
            call = next(source, None)
            if call is None:
                sources.remove(source)
            elif _runs(call):
                made.append(call)
    return made[:count]


def _runs(call: Call) -> bool:
    try:
        one, other = (_seen(call, call.tensors()) for _ in range(2))
    except Exception:  # noqa: BLE001 - samples that are meant to fail, or not for this machine
        return False
    tensors = list(one.live.values())
    small = all(t.numel() <= 20000 and t.layout == torch.strided and not t.is_complex() for t in tensors)
    return small and not differences(one, other)


def _seen(call: Call, tensors: list, results=None) -> Seen:
    if results is None:
        with torch.no_grad():
            torch.manual_seed(0)
            results = call(tensors)
    live = {f"x{i}": t for i, t in enumerate(tensors)}
    leaves, structure = pytree.tree_flatten(results)
    plain = {}
    for i, leaf in enumerate(leaves):
        (live if isinstance(leaf, torch.Tensor) else plain)[f"r{i}"] = leaf
    return Seen(live, {n: t.detach().clone() for n, t in live.items()}, plain, structure)


class Calls(torch.nn.Module):
    """`behind`: what is made of every result: a lone op is left to PyTorch, what follows it makes it a part of a kernel."""

    def __init__(self, calls: list[Call], behind: Callable | None = None):
        super().__init__()
        self.calls, self.behind = calls, behind or (lambda t: t)

    def forward(self, *tensors):
        results, at = [], 0
        for call in self.calls:
            results.append(pytree.tree_map_only(torch.Tensor, self.behind, call(tensors[at : at + len(call.places)])))
            at += len(call.places)
        return results


@dataclass
class Counts:
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    kernels: int = 0  # where the road places some


def pointwise(t: torch.Tensor) -> torch.Tensor:
    return torch.tanh(t * 0.5) + t if t.is_floating_point() and t.itemsize > 1 else t


def judge(calls: list[Call], counts: Counts, road: Callable = Way) -> None:
    """Calls in one export; those that it does not take are found by halving. `road(module, args)`: road.Way, or as it."""
    if not calls:
        return
    try:
        module = Calls(calls, None if road is Way else pointwise)
        given = [c.tensors() for c in calls]
        way = road(module, [t for ts in given for t in ts])
        wanted = _all_seen(calls, module)
        got = _all_seen(calls, way.composed)
    except Exception as e:  # noqa: BLE001 - halved until it is one call's
        if len(calls) > 1:
            half = len(calls) // 2
            judge(calls[:half], counts, road)
            judge(calls[half:], counts, road)
        else:
            code = e.diagnostic["code"] if isinstance(e, Error) else type(e).__name__
            (counts.refused if isinstance(e, Error) else counts.wrong).append(f"{calls[0].name}: {code} {str(e)[:200]}")
        return
    counts.kernels += sum(way.kernels().values())
    at = 0
    for call, w, g in zip(calls, wanted, got, strict=True):
        count = _tensors(w)
        found = differences(w, g, None if way.exact(at, count, "") == "exact" else _near)
        at += count
        if found:
            counts.wrong.append(f"{call.name}: {found[0].symptom} of {found[0].where}: {found[0].text}"[:400])
        else:
            counts.right += 1


def _tensors(seen: Seen) -> int:
    return sum(name[0] == "r" for name in seen.live)


def _all_seen(calls: list[Call], run) -> list[Seen]:
    given = [c.tensors() for c in calls]
    with torch.no_grad():
        torch.manual_seed(0)
        results = run(*[t for ts in given for t in ts])
    return [_seen(c, ts, r) for c, ts, r in zip(calls, given, results, strict=True)]


def _near(name: str, eager: torch.Tensor, other: torch.Tensor) -> bool:
    """Within some roundings: where a rewrite, or a product, adds up otherwise."""
    if not eager.is_floating_point() or eager.itemsize == 1:
        return False
    e, o = eager.double(), other.double()
    if not torch.equal(e.isfinite(), o.isfinite()):
        return False
    finite = e.isfinite()
    if not torch.equal(e[~finite].nan_to_num(1.5), o[~finite].nan_to_num(1.5)):
        return False
    e, o = e[finite], o[finite]
    size = e.abs().mean() if e.numel() else 0.0
    return bool(((e - o).abs() <= 16 * torch.finfo(eager.dtype).eps * (e.abs() + size)).all())


def family_counts(family: str, samples: int, road: Callable = Way) -> Counts:
    counts = Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = calls_of(family, samples)
        for i in range(0, len(calls), _CALLS):
            judge(calls[i : i + _CALLS], counts, road)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--kernels", action="store_true")
    o = parser.parse_args()
    torch.set_num_threads(1)
    road = Way
    if o.kernels:
        from placing import Placed as road
    wrong = 0
    for family in o.family or sorted(set(families().values())):
        c = family_counts(family, o.samples, road)
        wrong += len(c.wrong)
        kernels = f", {c.kernels} kernels" if o.kernels else ""
        print(f"{family}: {c.right} right, {len(c.wrong)} wrong, {len(c.refused)} refused{kernels}", flush=True)
        grouped: dict[str, list[str]] = defaultdict(list)
        for text in itertools.chain(c.wrong, (f"refused {r}" for r in c.refused)):
            grouped[
                re.sub(r" (float|int|uint|bfloat|bool)\d*:| (float|int|uint|bfloat|bool)\d* in place:", ":", text)[:60]
            ].append(text)
        for texts in sorted(grouped.values(), key=len, reverse=True):
            print(f"  {len(texts)} like: {texts[0]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
