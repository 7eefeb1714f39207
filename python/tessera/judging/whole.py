"""A whole module as a numeric problem: what a module that stands in for it is given, and what must come out.

The meaning is the traced graph in fp64 (problem.py); the state is the module's own, of a seed. Nothing of the judged file runs
here.
"""

from __future__ import annotations

import torch

from tessera.common.arguments import tensor_arguments
from tessera.common.precision import readable
from tessera.judging.problem import Dataset, Problem, sprinkle
from tessera.judging.verify import compare
from tessera.running import leftover, plan_graph
from tessera.tracing.held import of_masks, redraw

# (kind, which build). A build is the module made from another seed. `given` inputs are the file's own, drawn anew;
# `twin` inputs differ from the `normal` ones before them in their middle alone: what is looked up by a few elements shows.
TRIALS = (
    ("given", 0),
    ("normal", 0),
    ("twin", 0),
    ("positive", 0),
    ("large", 0),
    ("non_finite", 0),
    ("given", 1),
    ("normal", 1),
)
_FEW, _ENDS, _ZEROS = 16, 64, 0.2


class Plain:
    """A tensor in the place of a guarded one."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor

    @property
    def nbytes(self) -> int:
        return self.tensor.nbytes


class Whole:
    """`states`, `given`: of each build the tensors by value name. `seed`: of everything that is drawn."""

    def __init__(self, graph: dict, device: str, precision: str, states: list[dict], given: list[dict], seed: int):
        self.device = torch.device(device)
        pattern = {"id": "module", "rule": "module", "nodes": [n["name"] for n in graph["nodes"]]}
        pattern |= {"inputs": graph["inputs"], "outputs": graph["outputs"]}
        self.graph, self.precision, self._masks = graph, precision, of_masks(graph)
        self.problem = Problem(graph, pattern, device, precision)
        self.states, self.given, self.seed = states, given, seed
        self._twin: dict[str, torch.Tensor] = {}

    @property
    def outputs(self) -> list[dict]:
        return self.problem.outputs

    def aliases(self) -> bool:
        """Whether a result of the reference may be memory of its inputs."""
        producer = {name: node for node in self.graph["nodes"] for name in node["outputs"]}

        def leads_to_input(value: str) -> bool:
            node = producer.get(value)
            if node is None:
                return True
            return plan_graph.may_alias(node["op"]) and any(leads_to_input(t) for t in tensor_arguments(node))

        return any(leads_to_input(v["name"]) for v in self.outputs)

    def draw(self, kind: str, build: int, number: int) -> dict[str, torch.Tensor]:
        """User inputs by name. `number` tells draws of one kind apart."""
        seed = self.seed * 1_000 + number
        made = {}
        for i, (name, given) in enumerate(self.given[build].items()):
            generator = torch.Generator(self.device).manual_seed((seed * 64 + i) % (1 << 62))
            if kind == "given" or not given.is_floating_point() or _special(given):
                made[name] = redraw(given, 0 if name in self._masks else number)
            else:
                made[name] = _alike(_drawn(given, kind, generator), given)
        if kind == "twin":
            for name, before in self._twin.items():
                _keep_ends(made[name], before)
        self._twin = made if kind == "normal" else {}
        if kind == "non_finite":
            made = {n: t.clone() for n, t in made.items()}
            sprinkle([t for t in made.values() if t.is_floating_point() and t.dim()])
        return made

    def dataset(self, kind: str, build: int, number: int, drawn: dict[str, torch.Tensor]) -> Dataset:
        named = {**self.states[build], **drawn}
        inputs = [Plain(named[name].clone()) for name in self.graph["inputs"]]
        return self.problem.dataset_of(kind, number, inputs)

    def compare(self, data: Dataset, results: list[torch.Tensor]) -> tuple[list[dict], dict | None]:
        return compare(self.problem, data, [t.to(self.device) for t in results])

    def peer(self, name: str, build: int):
        """(module of the user inputs in their order, their names), run by PyTorch's ops one by one or as Inductor compiles
        them: the traced graph, so that nothing of a file that was given runs here; or the reason why there is none."""
        if reason := leftover.missing(name, self.device):
            return reason
        plan = {"graph": self.graph, "steps": [{"kind": "aten", "node": n["name"]} for n in self.graph["nodes"]]}
        built = plan_graph.build(plan)
        run = built.completed(leftover.make(name, built.main))
        state = {n: t.clone() for n, t in self.states[build].items()}
        users = list(self.given[build])

        def module(*tensors):
            named = dict(zip(users, tensors, strict=True))
            return run(*[named[n] if n in named else state[n] for n in built.feeds])

        return module, users


def _special(t: torch.Tensor) -> bool:
    """Whether its elements are few values, as those of masks, or not all finite."""
    flat = readable(t).flatten()
    return t.numel() > 1 and (not bool(flat.isfinite().all()) or len(flat[:4096].unique()) <= min(_FEW, t.numel() // 2))


def _drawn(given: torch.Tensor, kind: str, generator: torch.Generator) -> torch.Tensor:
    draw = torch.empty(given.shape, dtype=torch.float32, device=given.device)
    if kind == "positive":
        draw.uniform_(0.0, 1.0, generator=generator)
    else:
        draw.normal_(generator=generator)
    if kind == "large":
        draw.mul_(8.0 if given.dtype == torch.float16 else 64.0)
    return torch.empty_like(given).copy_(draw)


def _alike(draw: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    """With the structure that the file's own input has: its zeros (triangles, bands), its symmetry."""
    zeros = given == 0
    if float(zeros.double().mean()) > _ZEROS:
        draw = torch.where(zeros, 0, draw)
    if given.dim() >= 2 and given.shape[-1] == given.shape[-2] > 1 and torch.equal(given, given.transpose(-1, -2)):
        draw = (draw + draw.transpose(-1, -2)) / 2
    return torch.empty_like(given).copy_(draw)


def _keep_ends(t: torch.Tensor, before: torch.Tensor) -> None:
    if t.numel() < 4 * _ENDS or not t.is_contiguous():
        return
    flat, old = t.view(-1), before.reshape(-1)
    flat[:_ENDS] = old[:_ENDS]
    flat[-_ENDS:] = old[-_ENDS:]
