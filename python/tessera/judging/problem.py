"""A pattern as a numeric problem: its inputs in several distributions, what must come out, how far eager is off.

The meaning of a pattern is its ATen nodes, run in fp64. The same nodes, run eagerly at the pattern's own precision, are
the baseline that tolerances are relative to; where eager is more exact than the precision class, what the class itself
costs counts as well (docs/measuring.md).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field

import torch

from tessera.common.errors import fail
from tessera.common.facts import MASKS, mask_of
from tessera.common.reference import Executor
from tessera.judging import rounded
from tessera.judging.deviation import Reference, larger_errors, reference_errors, reference_of
from tessera.judging.guarded import Guarded

# Level "quick" decides whether a candidate is worth measuring; "full" is what a winner must pass.
QUICK = (("normal", 0), ("non_finite", 3))
FULL = (("normal", 0), ("normal", 1), ("positive", 2), ("large", 4), ("non_finite", 3))


@contextlib.contextmanager
def arithmetic(precision: str):
    """fp32 operands of matrix products and convolutions at fp32 accuracy, or rounded to tf32 for the class tf32."""
    mode = "tf32" if precision == "tf32" else "ieee"
    places = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    before = [place.fp32_precision for place in places]
    try:
        for place in places:
            place.fp32_precision = mode
        yield
    finally:
        for place, mode in zip(places, before, strict=True):
            place.fp32_precision = mode


@dataclass
class Dataset:
    kind: str
    seed: int
    inputs: list[Guarded]
    references: list[Reference] = field(default_factory=list)
    baseline: list[dict] = field(default_factory=list)  # errors of eager, one an output
    permitted: list[dict] = field(default_factory=list)  # what budgets stand on: eager's, or the precision's own

    @property
    def name(self) -> str:
        return f"{self.kind} inputs, seed {self.seed}"

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [g.tensor for g in self.inputs]

    @property
    def nbytes(self) -> int:
        return sum(r.value.nbytes for r in self.references) + sum(g.nbytes for g in self.inputs)


class Kept:
    """The datasets that a process remembers, of all its problems: a bounded number of bytes, those used last. What is
    dropped is made again, the same, when wanted."""

    def __init__(self, limit: int):
        self._limit, self._bytes = limit, 0
        self._held: dict[tuple[Problem, str, int], tuple[Dataset, int]] = {}  # used last comes last

    def get(self, problem: Problem, kind: str, seed: int) -> Dataset | None:
        found = self._held.pop((problem, kind, seed), None)
        if found is None:
            return None
        self._held[problem, kind, seed] = found
        return found[0]

    def put(self, problem: Problem, data: Dataset) -> None:
        size = data.nbytes
        if size > self._limit:
            return
        while self._bytes + size > self._limit:
            self._drop(next(iter(self._held)))
        self._held[problem, data.kind, data.seed] = (data, size)
        self._bytes += size

    def forget(self, problem: Problem) -> None:
        for key in [key for key in self._held if key[0] is problem]:
            self._drop(key)

    def forget_all(self) -> None:
        self._held.clear()
        self._bytes = 0

    def _drop(self, key: tuple[Problem, str, int]) -> None:
        self._bytes -= self._held.pop(key)[1]


class Problem:
    """`kept`: shared by the problems of a process; by itself a problem keeps a quarter of the memory."""

    def __init__(self, graph: dict, pattern: dict, device: str, precision: str, kept: Kept | None = None):
        self.pattern, self.precision = {**pattern, "nodes": pattern.get("nodes") or pattern["subgraph"]}, precision
        self.roles = pattern.get("roles") or {}  # what the pattern's rule says of its inputs
        self.device = torch.device(device)
        self.executor_graph = graph
        self.executor = Executor(graph, device)
        values = {v["name"]: v for v in graph["values"]}
        nodes = {n["name"]: n for n in graph["nodes"]}
        self.nodes = [nodes[name] for name in self.pattern["nodes"]]
        try:
            self.inputs = [values[name] for name in pattern["inputs"]]
            self.outputs = [values[name] for name in pattern["outputs"]]
        except KeyError as missing:
            raise fail("TS0510", "verify.no_such_value", f"the graph has no value {missing} of the pattern") from None
        prepacked = {name for n in graph["nodes"] if n.get("prepack") for name in n["outputs"]}
        self._weights = {
            v["name"]
            for v in self.inputs
            if v.get("origin") in ("parameter", "buffer", "constant") or v["name"] in prepacked
        }
        self.meaning = torch.float64  # the type that references are computed in
        self._kept = kept or Kept(memory_to_keep(self.device))

    # The meaning and the baseline

    def run(self, tensors: list[torch.Tensor], dtype: torch.dtype | None) -> list[torch.Tensor]:
        """The pattern's own nodes on these inputs: in their own dtypes (None), or with every floating one in `dtype`."""
        named = {v["name"]: t for v, t in zip(self.inputs, tensors, strict=True)}
        with torch.no_grad(), arithmetic(self.precision):
            result = self.executor.run(self.pattern["nodes"], named, self.pattern["outputs"], dtype)
        return [result[name] for name in self.pattern["outputs"]] if isinstance(result, dict) else list(result)

    def values(self, tensors: list[torch.Tensor], names: list[str]) -> list[torch.Tensor]:
        """What the pattern's nodes compute on their way, in fp64."""
        named = {v["name"]: t for v, t in zip(self.inputs, tensors, strict=True)}
        result = self.executor.run(self.pattern["nodes"], named, names, torch.float64)
        return [result[name] for name in names]

    def _exact(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        try:
            return self.run(tensors, self.meaning)
        except torch.OutOfMemoryError:
            # Remembered datasets can be made again; without them there may be room.
            self._kept.forget_all()
            torch.cuda.empty_cache()
        try:
            return self.run(tensors, self.meaning)
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            raise fail(
                "TS0513",
                "verify.reference_out_of_memory",
                f"the reference of {self.pattern.get('id', 'the pattern')} does not fit into memory",
                found=str(error).split("\n")[0][:300],
                helps=["optimize the module at a smaller batch; its kernels are tuned for exact shapes"],
            ) from error

    def dataset(self, kind: str, seed: int) -> Dataset:
        """The inputs with their references and the baseline's errors; remembered while memory allows."""
        found = self._kept.get(self, kind, seed)
        if found:
            return found
        made = self.dataset_of(kind, seed, make_inputs(self, kind, seed))
        self._kept.put(self, made)
        return made

    def dataset_of(self, kind: str, seed: int, inputs: list[Guarded]) -> Dataset:
        """These inputs with their references and the baseline's errors. Errors: TS0511, TS0513."""
        made = Dataset(kind, seed, inputs)
        exact = self._exact(made.tensors)
        eager = self.run(made.tensors, None)
        for value, e, b in zip(self.outputs, exact, eager, strict=True):
            if tuple(e.shape) != tuple(value["shape"]):
                raise fail(
                    "TS0511",
                    "verify.shape",
                    f"the pattern's output {value['name']} has another shape than the graph says",
                    expected=str(value["shape"]),
                    found=str(tuple(e.shape)),
                )
            made.references.append(reference_of(e, b))
        del exact
        made.baseline = [reference_errors(b, r) for b, r in zip(eager, made.references, strict=True)]
        del eager
        self._forgive_parts(made)
        made.permitted = larger_errors(made.baseline, self._own_cost(made))
        return made

    def _own_cost(self, data: Dataset) -> list[dict]:
        """Errors of the nodes with rounded operands; none where the class has no such cost, or memory does not allow."""
        if not rounded.has_own_cost(self.precision):
            return []
        try:
            with rounded.products():
                results = self.run(data.tensors, None)
        except torch.OutOfMemoryError:  # attention written out; eager's own error is the stricter measure
            torch.cuda.empty_cache()
            return []
        return [reference_errors(t, r) for t, r in zip(results, data.references, strict=True)]

    def _forgive_parts(self, data: Dataset) -> None:
        """What is finite in eager alone, since an infinite operand of a product is NaN for kernels that take it apart, need
        not be finite. Where memory does not allow to see which elements those are, all stay as eager has them."""
        asked = [r for r in data.references if r.finite is not None]
        if not asked or not rounded.takes_apart(self.precision):
            return
        try:
            with rounded.infinite_operands():
                results = self.run(data.tensors, None)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return
        for reference, result in zip(data.references, results, strict=True):
            if reference.finite is not None:
                reference.finite &= result.isfinite()

    def forget(self) -> None:
        """Drops the remembered datasets; they are made again, the same, when wanted."""
        self._kept.forget(self)

    def new_outputs(self) -> list[Guarded]:
        made = [Guarded(v["shape"], v["strides"], dtype_of(v), self.device) for v in self.outputs]
        for guarded in made:
            guarded.poison()
        return made

    def is_weight(self, value: dict) -> bool:
        return value["name"] in self._weights


def dtype_of(value: dict) -> torch.dtype:
    return getattr(torch, value["dtype"])


def memory_to_keep(device: torch.device) -> int:
    """Bytes of remembered datasets: a quarter of the device's memory."""
    return _memory(device) // 4


def _memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    with open("/proc/meminfo") as text:
        return int(text.readline().split()[1]) * 1024


# Inputs


def make_inputs(problem: Problem, kind: str, seed: int) -> list[Guarded]:
    """Inputs whose surroundings are NaN, so that a read out of bounds poisons a result."""
    out = []
    for position, value in enumerate(problem.inputs):
        generator = torch.Generator(device=problem.device).manual_seed(1000 * seed + position + 1)
        guarded = Guarded(value["shape"], value["strides"], dtype_of(value), problem.device)
        flat = guarded.flat
        _fill(problem, value, flat, guarded, kind, generator)
        out.append(guarded)
    if kind == "non_finite":
        _sprinkle(problem, [g.tensor for g in out])
    for value, g in zip(problem.inputs, out, strict=True):
        if (value.get("facts") or {}).get("halves_equal"):
            low, high = g.tensor.chunk(2, dim=-1)
            high.copy_(low)
    for g in out:
        g.remember()
    return out


def _fill(problem: Problem, value: dict, flat: torch.Tensor, guarded: Guarded, kind: str, generator) -> None:
    facts = value.get("facts") or {}
    if "scalar" in facts:
        flat.fill_(facts["scalar"])
    elif any(facts.get(k) for k in MASKS):
        flat.zero_()
        guarded.tensor.copy_(mask_of(facts, *value["shape"][-2:], flat.device))
    elif flat.dtype == torch.bool:
        flat.copy_(torch.rand(flat.shape, generator=generator, device=flat.device) < 0.8)
        if guarded.tensor.dim():
            guarded.tensor[..., 0] = True  # no row of a mask is empty: softmax over nothing is NaN everywhere
    elif not flat.dtype.is_floating_point:
        low, high = index_range(problem, value)
        flat.copy_(torch.randint(low, high, flat.shape, generator=generator, device=flat.device))
    else:
        _fill_floating(problem, value, flat, kind, generator)


def _fill_floating(problem: Problem, value: dict, flat: torch.Tensor, kind: str, generator) -> None:
    """Weights are scaled by their fan-in, so that activations stay in range through any depth."""
    shape = value["shape"]
    weight = problem.is_weight(value) and len(shape) >= 2 and not _is_table(problem, value)
    scale = 1.0 / math.sqrt(max(1, fan_in(problem, value))) if weight else 1.0
    if kind == "large" and not problem.is_weight(value):
        scale *= 8.0 if flat.dtype == torch.float16 else 64.0
    step = 1 << 26  # draws are made in fp32, a piece at a time
    for begin in range(0, flat.numel(), step):
        part = flat[begin : begin + step]
        draw = torch.empty(part.shape, dtype=torch.float32, device=flat.device)
        if kind == "positive":
            draw.uniform_(0.0, 1.0, generator=generator)
        else:
            draw.normal_(generator=generator)
        draw.mul_(scale)
        if flat.dtype.itemsize == 1:  # e4m3 has no infinity: what is larger would be NaN
            draw.clamp_(-torch.finfo(flat.dtype).max, torch.finfo(flat.dtype).max)
        part.copy_(draw)


def fan_in(problem: Problem, value: dict) -> int:
    """Over how many elements of this weight one result sums: what the pattern's rule says, else all dims but the first."""
    return problem.roles.get("fan_in") or math.prod(value["shape"][1:])


_tables = {
    "aten.embedding": ("weight", "indices"),
    "aten.index_select": ("self", "index"),
    "aten.gather": ("self", "index"),
}


def _value_name(node: dict, argument: str) -> str | None:
    """The value that a node's tensor argument names."""
    given = node["arguments"].get(argument)
    return given.get("value") if isinstance(given, dict) else None


def _uses(problem: Problem):
    for node in problem.nodes:
        roles = _tables.get(".".join(node["op"].split(".")[:2]))
        if roles:
            yield node, _value_name(node, roles[0]), _value_name(node, roles[1])


def _is_table(problem: Problem, value: dict) -> bool:
    return any(table == value["name"] for _, table, _ in _uses(problem))


def index_range(problem: Problem, value: dict) -> tuple[int, int]:
    """[low, high) of valid indices: from the value's facts, or from the table that a gather reads with it."""
    facts = value.get("facts") or {}
    if "min" in facts and "max" in facts:
        return int(facts["min"]), int(facts["max"]) + 1
    shapes = {v["name"]: v["shape"] for v in problem.inputs}
    for node, table, index in _uses(problem):
        if index == value["name"] and table in shapes:
            dim = node["arguments"].get("dim")
            return 0, int(shapes[table][dim if isinstance(dim, int) else 0])
    return 0, 2  # unknown use: 0 and 1 are valid wherever two entries exist


def _sprinkle(problem: Problem, tensors: list[torch.Tensor]) -> None:
    """-inf, inf and NaN at one place each of every floating activation, in different rows; only in the views that the
    pattern's rule names where it names any."""
    targets = []
    for view in problem.roles.get("non_finite", []):
        base = tensors[view["tensor"]]
        targets.append(base.as_strided(view["shape"], view["strides"], base.storage_offset() + view.get("offset", 0)))
    if not targets:
        targets = [
            t
            for v, t in zip(problem.inputs, tensors, strict=True)
            if t.is_floating_point() and not problem.is_weight(v)
        ]
    sprinkle(targets)


def sprinkle(targets: list[torch.Tensor]) -> None:
    """-inf, inf and NaN at one place each, in different rows."""
    for target in targets:
        rows = math.prod(target.shape[:-1])
        for i, bad in enumerate((float("inf"), float("-inf"), float("nan"))):
            if rows < 2 * (i + 1):
                break
            row = (2 * i + 1) * rows // 7 % rows
            index = []
            for extent in reversed(target.shape[:-1]):
                index.append(row % extent)
                row //= extent
            target[tuple(reversed(index))][..., (7 * i + 3) % target.shape[-1]] = bad
