"""What a call costs the host, in microseconds, and the memory that it allocates: the composed module with either runner for
the rest, its guards and its graph by themselves, eager and torch.compile. Nothing is searched.

    python tests/gpu/host_times.py [--plan FILE ...] [--cpu] [--guards]

First what guards cost a module of 1, 10 and 200 parameters, beside Dynamo's, and what the wrapper of PyTorch's own plan adds: with
nothing to run behind them, less the call of an empty module. `--guards`: these alone. Without a plan then: blocks of a vision transformer and of cross attention at a size where the device is idle, so that what is
printed is the host's alone, first by library kernels and then by what a short search found; then the first at its real size,
where the memory shows. FILE is what torch.save((module, inputs, plan)) wrote. The last lines say what must hold, and the exit
code is 1 where it does not.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "python"))

import tessera  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from tessera.running import fast_guard  # noqa: E402
from tessera.tracing.held import hold  # noqa: E402
from torch import nn  # noqa: E402

OWN_US = {1: 3.0, 10: 3.0, 200: 8.0}  # guards, by parameters
WRAPPER_US = 3.0
GUARDS_US = 10.0  # a block's call with nothing to run
SLACK_US = 15.0
BYTES = 1.05


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, other: int = 0):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (
            nn.Linear(width, width),
            nn.Linear(other or width, width),
            nn.Linear(other or width, width),
        )
        self.out = nn.Linear(width, width)

    def forward(self, x, other=None):
        other = x if other is None else other
        q, k, v = (
            p(t).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for p, t in ((self.q, x), (self.k, other), (self.v, other))
        )
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """x + attention(norm(x)), + mlp(norm(x)); with cross attention between the two where `other` is its width."""

    def __init__(self, width: int, heads: int, other: int = 0):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.one = Attention(width, heads)
        self.two = Attention(width, heads, other) if other else None
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, other=None):
        x = x + self.one(self.norms[0](x))
        if self.two is not None:
            x = x + self.two(self.norms[1](x), other)
        return x + self.down(F.gelu(self.up(self.norms[2](x))))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.scale


class Nothing(nn.Module):
    def forward(self, x):
        return x


def with_parameters(count: int) -> nn.Module:
    return Scaled() if count == 1 else nn.Sequential(*[nn.Linear(8, 8) for _ in range(count // 2)])


def measure_guards(device: str) -> list[str]:
    """Prints; what does not hold. Graphs run op by op, and neither they nor Dynamo's are run at all."""
    wrong = []
    print("microseconds a call beyond that of an empty module:")
    for count, most in OWN_US.items():
        with torch.device(device):
            module, x, nothing = with_parameters(count).eval(), torch.randn(4, 8), Nothing()
        held = hold(module, (x,), {})
        plan = {"graph": held.graph, "steps": [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]}
        composed = held.compose(plan, "eager")
        composed(x)
        if fast_guard.wait(120):
            wrong.append("the guards' extension was not compiled in two minutes")
        composed(x)
        composed.__dict__["_runner"] = lambda *feeds: feeds
        wrapper = held.compose(plan, "eager", runner="eager", compiled=nothing.forward)
        torch._dynamo.reset()
        dynamo = torch.compile(module, backend=lambda graph, given: lambda *feeds: feeds)
        runs = (composed, composed._guard, composed._guard.closely, dynamo, wrapper, nothing)
        calls = [(x,), ((x,), {}), ((x,), {}), (x,), (x,), (x,)]
        for _ in range(3):
            for run, given in zip(runs, calls):
                run(*given)
        found = microseconds([(run, [given]) for run, given in zip(runs, calls)], rounds=60)
        ours, guards, closely, theirs, wrapped, empty = found
        print(
            f"  {count:4} parameters: composed {ours - empty:6.2f}, of it guards {guards:5.2f}; Dynamo {theirs - empty:6.2f}, wrapper of PyTorch's plan "
            f"{wrapped - empty:5.2f}; a close look at the guards {closely:7.1f}",
            flush=True,
        )
        if guards > most:
            wrong.append(f"{count} parameters: guards take {guards:.1f} us, {most:.0f} expected")
        if wrapped - empty > WRAPPER_US:
            wrong.append(f"{count} parameters: the wrapper of PyTorch's plan takes {wrapped - empty:.1f} us")
    return wrong


def microseconds(runs: list[tuple], calls: int = 200, rounds: int = 8) -> list[float]:
    """Of the host, until a call returns, for each (way to run, input sets), in turns; the device is waited for between turns and
    not within them."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for k, (run, sets) in enumerate(runs):
            sync()
            begin = time.perf_counter()
            for i in range(calls):
                run(*sets[i % len(sets)])
            best[k] = min(best[k], (time.perf_counter() - begin) / calls * 1e6)
    sync()
    return best


def sync() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak(run, inputs: tuple) -> int:
    if not inputs[0].is_cuda:
        return 0
    sync()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = run(*inputs)
    sync()
    del result
    return torch.cuda.max_memory_allocated() - before


def lines(runs: dict[str, tuple]) -> list[tuple[float, int]]:
    """A line for each (way to run, input sets); microseconds a call and the bytes that it allocates at most."""
    for run, sets in runs.values():
        for s in sets * 3:
            run(*s)
    found = [(us, peak(run, sets[0])) for us, (run, sets) in zip(microseconds(list(runs.values())), runs.values())]
    for name, (us, bytes_) in zip(runs, found):
        print(f"  {name:34} {us:8.1f} us a call {bytes_ / 1e6:9.2f} MB", flush=True)
    return found


def measure(title: str, module: nn.Module, inputs: tuple, plan: dict, small: bool) -> list[str]:
    """Prints; what does not hold."""
    print(
        f"{title}: {sum(s['kind'] == 'kernel' for s in plan['steps'])} kernels, "
        f"{sum(s['kind'] == 'call' for s in plan['steps'])} library calls, {len(plan.get('leftover', ()))} other ops"
    )
    sets = [tuple(t.clone() for t in inputs) for _ in range(4)]
    held, wrong = hold(module, inputs, {}), []
    compiled = torch.compile(module)
    for runner in ("eager", "inductor"):
        composed = held.compose(plan, runner)
        feeds = composed._feeds.now[0]
        (_, (torch_us, torch_bytes), (us, bytes_), (same, _), _) = lines(
            {
                "eager": (module, sets),
                "torch.compile": (compiled, sets),
                f"composed, rest by {runner}": (composed, sets),
                "  with the same inputs again": (composed, sets[:1]),
                "  its graph alone": (lambda *a, r=composed._runner, f=feeds: r(*a, *f), sets),
            }
        )
        composed.__dict__["_runner"] = lambda *a: (a[0],)
        ((guards, _),) = lines({"  its guards alone": (composed, sets)})
        if small and us > torch_us + SLACK_US:
            wrong.append(f"{title}: {us:.0f} us by {runner}, torch.compile {torch_us:.0f} us")
        if small and guards > GUARDS_US:
            wrong.append(f"{title}: guards take {guards:.0f} us")
        if small and abs(us - same) > SLACK_US:
            wrong.append(f"{title}: other inputs take {us:.0f} us, the same {same:.0f} us")
        if not small and bytes_ > BYTES * torch_bytes:
            wrong.append(f"{title}: {bytes_ / 1e6:.1f} MB by {runner}, torch.compile {torch_bytes / 1e6:.1f} MB")
        del composed
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", nargs="*", default=[], help="files of torch.save((module, inputs, plan))")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--guards", action="store_true")
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    device = "cpu" if args.cpu or not torch.cuda.is_available() else "cuda"
    wrong: list[str] = []
    with torch.no_grad():
        own = measure_guards(device)
        if args.plan:
            for file in args.plan:
                module, inputs, plan = torch.load(file, map_location=device, weights_only=False)
                wrong += measure(file, module, inputs, plan, small=False)
        for title, block, shapes, small in () if args.plan or args.guards else cases(device):
            torch.manual_seed(0)
            with torch.device(device):
                module, inputs = block().to(torch.bfloat16).eval(), tuple(torch.randn(s).bfloat16() for s in shapes)
            for only in ("library", "both"):
                found = tessera.optimize(
                    module,
                    inputs,
                    leftover="eager",
                    only=only,
                    place_all=True,
                    seconds=args.seconds,
                    progress=False,
                    resizes=False,
                )
                wrong += measure(f"{title}, {only}", module, inputs, found.plan, small)
    if device == "cpu":  # where the host does the module's work as well
        wrong = []
    wrong = [*own, *wrong]
    print("\n".join([*wrong, "FAILED" if wrong else "ok"]))
    return bool(wrong)


def cases(device: str):
    yield "vision, tiny", lambda: Block(128, 4), [(1, 64, 128)], True
    yield "cross attention, tiny", lambda: Block(128, 4, 96), [(1, 64, 128), (1, 32, 96)], True
    if device == "cuda":
        yield "vision, 64x197x1024", lambda: Block(1024, 16), [(64, 197, 1024)], False


if __name__ == "__main__":
    sys.exit(main())
