"""A program as a script that runs by itself: the module, its arguments, what changes, and eager beside tessera.optimize."""

from __future__ import annotations

import textwrap

from program import Program, arguments_text, module_text
from values import TEXT

_TAIL = '''
def default_dtype(dtype):
    @contextlib.contextmanager
    def under():
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        yield
        torch.set_default_dtype(before)

    return under()


def deterministic():
    return contextlib.nullcontext(torch.use_deterministic_algorithms(True, warn_only=True))


def called(m, f, r, change=None, fill_kind=None, under=torch.no_grad):
    """Results of round r, then what arguments and state hold after it."""
    draw = lambda shape, dtype, kind="normal", seed=0: fill(shape, dtype, fill_kind or kind, seed + 1000 * r)
    with torch.no_grad():
        args = change(m, draw) if change else arguments(m, draw)
    with under():
        torch.manual_seed(r)
        out = f(*args)
    leaves = torch.utils._pytree.tree_leaves([out, args, list(m.state_dict().values())])
    return [t.detach().clone() for t in leaves if isinstance(t, torch.Tensor)]


e, m = M().train(TRAINING), M().train(TRAINING)
with torch.no_grad():
    f = tessera.optimize(m, tuple(arguments(m, fill)), effort="quick", seconds=15, progress=False, place_all=True,
                         leftover="eager", use_registry=False, only="synthesized" if "own" in sys.argv else "library")
wrong = 0
for name, options in ROUNDS.items():
    want, got = called(e, e, **options), called(m, f, **options)
    for i, (a, b) in enumerate(zip(want, got, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape or not torch.allclose(a.double(), b.double(), 1e-3, 1e-5, equal_nan=True):
            wrong += 1
            print("WRONG", name, i, a.dtype, a.flatten()[:4].tolist(), b.dtype, b.flatten()[:4].tolist())
print(wrong, "wrong;", f.status()["fallbacks"])
sys.exit(bool(wrong))
'''


def script(p: Program, why: str = "") -> str:
    head = textwrap.indent(why, "# ") + "\n" if why else ""
    head += "# PYTHONPATH=python python THIS.py [own]: exit code 1 where wrong (own: with kernels)\n"
    head += "import contextlib, sys, warnings\n\nimport tessera\nfrom torch import nn\nfrom torch.nn import functional as F\n"
    head += TEXT + '\nwarnings.simplefilter("ignore")\ninf, nan, draw = float("inf"), float("nan"), fill\n\n'
    parts = [head, module_text(p), "\n", arguments_text(p), f"\n\nTRAINING = {p.training}\n"]
    rounds = ["'first call': dict(r=0)", "'later call': dict(r=1)"]
    for i, c in enumerate(p.changes):
        options = [f"r={i + 2}"]
        if c.get("before") or c.get("after"):
            parts.append(_change(i, c))
            options.append(f"change=change_{i}")
        if c.get("fill"):
            options.append(f"fill_kind={c['fill']!r}")
        if c.get("under"):
            options.append(f"under=lambda: {c['under']}")
        rounds.append(f"{c['kind']!r}: dict({', '.join(options)})")
    body = ",\n".join(f"    {r}" for r in rounds)
    return "".join([*parts, _TAIL.replace("\ne, m =", f"\nROUNDS = {{\n{body},\n}}\ne, m =", 1)])


def _change(i: int, c: dict) -> str:
    lines = [
        *c.get("before", "").splitlines(),
        "args = arguments(m, draw)",
        *c.get("after", "").splitlines(),
        "return args",
    ]
    return f"\n\ndef change_{i}(m, draw):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
