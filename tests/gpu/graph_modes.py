"""Modes of torch.compile on a GPU: Inductor's CUDA graphs around kernels, behind both doors.

    python tests/gpu/graph_modes.py [graphs] [doors] [compile] [--seconds 15]

graphs: weights are read where they lie, kernels are in the graphs; nothing is searched. doors: tessera.optimize; compile: the
backend of torch.compile; both search. Results beside eager after every way to change a parameter, for what was settled on and
for kernels in any case; times beside eager and torch.compile in the same mode. Needs nvcc and the engine. Prints a line a check;
exit code 1 when one fails.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests"), str(ROOT / "tests" / "gpu")]

import tessera  # noqa: E402
import torch  # noqa: E402
from composed import compile_kernel  # noqa: E402
from composing import Mlp, plan_of_trace  # noqa: E402
from host_times import Block  # noqa: E402
from judging import changes, check, compared, describe, failed, medians, note, off, overwrite, right  # noqa: E402
from tessera import backend  # noqa: E402
from tessera.running import modes  # noqa: E402
from tessera.running.compose import ComposedModule  # noqa: E402
from tessera.tracing.held import hold  # noqa: E402
from test_never_silently_wrong import Two, merged_plan  # noqa: E402
from torch import nn  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

MODE = "reduce-overhead"
PROMISED = 0.98  # of the better of eager and torch.compile, in each measure
COPIED = 1.05  # of torch.compile's time, with half a gigabyte of weights
BYTES = 300e6  # held more while a graph with those weights is recorded: less than a copy of them


class Chain(nn.Module):
    """Linears that take the device a microsecond or two."""

    def __init__(self, width: int = 128, length: int = 8):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(width, width) for _ in range(length)])

    def forward(self, x):
        for linear in self.linears:
            x = torch.tanh(linear(x)) + x
        return x


class Wide(nn.Module):
    """Half a gigabyte of weights for one row."""

    def __init__(self, width: int = 16384):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False, device="cuda", dtype=torch.bfloat16)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.linear(x))


class Broken(nn.Module):
    """Two graphs for torch.compile."""

    def __init__(self):
        super().__init__()
        self.one, self.two = Chain(length=3), Chain(length=3)

    def forward(self, x):
        x = self.one(x)
        torch._dynamo.graph_break()
        return self.two(x)


def small(kind) -> tuple[nn.Module, Callable]:
    """A module in bf16, and what draws its inputs."""
    torch.manual_seed(0)
    shape, made = ((1, 64, 128), Block(128, 4)) if kind is Block else ((16, 128), kind())
    return made.to("cuda", torch.bfloat16).eval(), lambda: torch.randn(shape, device="cuda", dtype=torch.bfloat16)


class Recorded:
    """How many inputs the CUDA graphs that are recorded meanwhile copy in every call, and how many graphs are skipped."""

    keys = ("cudagraph_recorded_non_static_inputs", "cudagraph_skips")

    def __enter__(self):
        self.before = [counters["inductor"][key] for key in self.keys]
        return self

    def __exit__(self, *_):
        self.copied, self.skipped = (counters["inductor"][key] - n for key, n in zip(self.keys, self.before))

    def must_be(self, copied: int) -> None:
        text = f"{self.copied} inputs are copied, {copied} should be; {self.skipped} graphs were skipped"
        assert (self.copied, self.skipped) == (copied, 0), text


# --- graphs ----------------------------------------------------------------------------------------------------------


def plain(module: nn.Module, x: torch.Tensor, mode: str | None = MODE) -> ComposedModule:
    """The composed module without kernels: all of its graph is Inductor's."""
    held = hold(module, (x,), {})
    held.options["inductor"] = modes.settings_of(mode)
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    return held.compose({"graph": held.graph, "steps": steps, "leftover": []}, "inductor")


def weights_in_place() -> str:
    module = Wide()

    def draw() -> torch.Tensor:
        return torch.randn(1, 16384, device="cuda", dtype=torch.bfloat16)

    fast, compiled = plain(module, draw()), torch.compile(module, mode=MODE)
    for _ in range(3):
        compiled(draw())
    before = torch.cuda.memory_reserved()
    with Recorded() as seen:
        for _ in range(3):
            fast(draw())
    grown = torch.cuda.memory_reserved() - before
    seen.must_be(1)
    assert grown < BYTES, f"{grown / 1e6:.0f} MB more are held"
    right(fast, module, draw)
    text = compared({"ours": fast, MODE: compiled}, draw, 1 / COPIED)
    with Recorded() as seen:
        module.linear.weight.data = module.linear.weight.data * 0.5
        overwrite(module)
        right(fast, module, draw)
    seen.must_be(1)
    return f"{text} of torch.compile, {grown / 1e6:.0f} MB more held"


def kernel_in_a_graph(folder: Path) -> str:
    """Hand-written kernels with a workspace, and a buffer that changes, in one graph with the rest."""
    torch.manual_seed(0)
    module = Mlp(256, 512).eval().cuda()
    held = hold(module, (torch.randn(512, 256, device="cuda"),), {})
    held.options["inductor"] = modes.settings_of(MODE)
    fast = held.compose(plan_of_trace(held.traced, compile_kernel(folder)), "inductor")
    reference = copy.deepcopy(module)

    def same(calls: int) -> None:
        for _ in range(calls):
            x = torch.randn(512, 256, device="cuda")
            torch.testing.assert_close(fast(x), reference(x), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(module.count, reference.count)

    launches = [p.operator.calls for p in fast._built.patterns]
    with Recorded() as seen:
        same(6)
    seen.must_be(1)
    launched = [p.operator.calls - n for p, n in zip(fast._built.patterns, launches)]
    assert launched == [2, 2], f"launched {launched} times in 6 calls: a replay launches by itself"
    for each in (module, reference):
        each.fc1.weight.data.mul_(1.5)
        each.fc2.weight.data = each.fc2.weight.data * 1.5
    same(3)
    status = fast.status()
    assert status["served"] == status["calls"] == 9 and len(status["active"]) == 2, status
    return status["launch"]["kind"]


def merged_weights(apart: bool) -> str:
    """Two weights read as one; `apart`: one of them may not be moved, so that they are concatenated in every call."""
    torch.manual_seed(0)
    module = Two().eval().cuda()
    mirror = module.a.weight.detach() if apart else None
    plan = merged_plan()
    plan["graph"]["device"] = "cuda"
    fast = ComposedModule(module, plan, leftover="inductor", inductor=modes.settings_of(MODE))
    assert bool(fast._feeds.now[1]) == apart
    reference = copy.deepcopy(module)

    def same() -> None:
        for _ in range(3):
            x = torch.randn(3, 8, device="cuda")
            torch.testing.assert_close(fast(x), reference(x), rtol=1e-4, atol=1e-4)

    same()
    for step in range(3):
        state = {k: v * 2 + 1 for k, v in reference.state_dict().items()}
        for each in (module, reference):
            each.load_state_dict(state)
            each.b.weight.data += step
        with Recorded() as seen:
            same()
        seen.must_be(0)  # what changes in place is not recorded anew
    for each in (module, reference):
        each.b.weight = nn.Parameter(each.b.weight.detach() * 2)
    same()
    del mirror
    return ", ".join(f"{e['count']}x {e['kind']}" for e in fast.status()["fallbacks"])


def swapped() -> None:
    """As a moving average of the weights that is used now and then: each place is recorded once."""
    module, draw = small(Chain)
    fast = plain(module, draw())
    mine = [p.data for p in module.parameters()]
    places = mine, [t * 0.9 for t in mine]
    for turn in range(6):
        for p, t in zip(module.parameters(), places[turn % 2]):
            p.data = t
        with Recorded() as seen:
            right(fast, module, draw)
        seen.must_be(1 if turn < 2 else 0)


def kept_results(fast: Callable, module: nn.Module, draw: Callable) -> None:
    """A clone outlives the next call, whatever the grad mode is."""
    xs = [draw() for _ in range(4)]
    clones = [fast(x).clone() for x in xs]
    with torch.inference_mode():
        clones += [fast(x).clone() for x in xs]
    clones += [fast(x).clone() for x in xs]
    for x, y in zip(xs * 3, clones):
        assert off(y, module(x).float()) < 0.02


def every_mode() -> None:
    module, draw = small(Chain)
    for mode in (None, *modes.MODES):
        right(plain(module, draw(), mode), module, draw)


def one_step() -> None:
    """Within a step that is marked, no call writes over another's results. Steps are the whole process's from then on."""
    module, draw = small(Chain)
    fast = plain(module, draw())
    for _ in range(3):
        torch.compiler.cudagraph_mark_step_begin()
        xs = [draw() for _ in range(3)]
        results = [fast(x) for x in xs]
        assert len({y.data_ptr() for y in results}) == 3
        for x, y in zip(xs, results):
            assert off(y, module(x).float()) < 0.02


# --- doors -----------------------------------------------------------------------------------------------------------


def beside_torch(fast: Callable, module: nn.Module, draw: Callable) -> str:
    return compared({"ours": fast, "eager": module, MODE: torch.compile(module, mode=MODE)}, draw, PROMISED)


def door(kind, seconds: float, way: str, **options) -> None:
    name, found = f"{kind.__name__.lower()}, {way}", []
    module, draw = small(kind)

    def searched() -> None:
        found.append(tessera.optimize(module, draw(), mode=MODE, seconds=seconds, progress=False, **options))
        describe(found[0])

    def copied() -> None:
        other = copy.deepcopy(found[0])
        assert other._inductor == found[0]._inductor
        right(other, other.original, draw)

    check(f"{name}: searched", searched)
    for fast in found:
        if not options:
            check(f"{name}: times", lambda fast=fast: beside_torch(fast, module, draw))
        check(f"{name}: results that are kept", lambda fast=fast: kept_results(fast, module, draw))
        check(f"{name}: changed parameters", lambda fast=fast: changes(fast, module, draw))
        check(f"{name}: a copy", copied)
        for event in fast.status()["fallbacks"]:
            note(f"{event['count']}x {event['kind']}: {event['reason']}")


def behind_torch_compile(kind, seconds: float, judged: bool) -> str:
    module, draw = small(kind)

    def tessera_in_seconds(gm, inputs, **more):
        return backend.tessera(gm, inputs, options={"seconds": seconds, "progress": False}, **more)

    fast, compiled = torch.compile(module, backend=tessera_in_seconds, mode=MODE), torch.compile(module, mode=MODE)
    right(fast, module, draw)
    for graph in backend.status(fast):
        note(f"a graph by {graph['runner']}: {graph['reason']}")
    if judged:
        text = compared({"ours": fast, "eager": module, MODE: compiled}, draw, PROMISED)
    else:
        found = medians({"ours": fast, MODE: compiled}, draw)
        text = "; ".join(f"{name} {call:.1f} / {back:.1f} us" for name, (call, back) in found.items()) + ", not judged"
    changes(fast, module, draw)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="of graphs, doors, compile; all by default")
    parser.add_argument("--seconds", type=float, default=15, help="of every search")
    args = parser.parse_args()
    parts = args.parts or ["graphs", "doors", "compile"]
    warnings.simplefilter("ignore")
    # Graphs that are found in a cache share a number, and a call looks through all CUDA graphs of its number: of two copies of one
    # module the second is slower by a few percent then.
    torch._inductor.config.force_disable_caches = True
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        if "graphs" in parts:
            check("weights in place", weights_in_place)
            check("a kernel in a graph", lambda: kernel_in_a_graph(Path(folder)))
            check("merged weights", lambda: merged_weights(apart=False))
            check("merged weights that lie apart", lambda: merged_weights(apart=True))
            check("two sets of parameters", swapped)
            check("every mode", every_mode)
        for kind in (Block, Chain) if "doors" in parts else ():
            door(kind, args.seconds, "as settled")
            door(kind, args.seconds, "kernels in any case", place_all=True, resizes=False)
        if "compile" in parts:
            check("behind torch.compile", lambda: behind_torch_compile(Block, args.seconds, judged=True))
            check("behind it, two graphs", lambda: behind_torch_compile(Broken, 4 * args.seconds, judged=False))
        if "graphs" in parts:
            check("several calls in a step", one_step)
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
