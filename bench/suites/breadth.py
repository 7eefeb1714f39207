"""Modules that the project was not written for, each after a short search: none may be slower than PyTorch's best.

A case is one process that starts from nothing. It optimizes the module by `tessera.optimize`, then lets torch.compile
compile it plainly, then opens the other door, `torch.compile(backend="tessera")`, which finds what the first search left
(`--second-door empty`: which finds nothing). Then all are timed beside eager. torch's flags are left as they are.
"""

from __future__ import annotations

import contextlib
import math
import statistics

import rows as table
from cases import breadth as cases

CASES = list(cases.CASES)
HOME = "empty"
SECONDS = 30.0
FLOOR, GOAL, GOAL_PRODUCTS, SHARE = 0.98, 1.03, 1.20, 0.6
DOORS = ("optimize", "compile")
MODES = ("synchronized", "back_to_back", "graph_synchronized", "graph_back_to_back")


def precisions(case: str) -> list[str]:
    return ["fp32" if isinstance(cases.CASES[case], cases.Task) else "bf16"]


def products() -> list[str]:
    return [name for name, case in cases.CASES.items() if case.products]


def unit(row: dict) -> tuple:
    return row["case"], row["precision"], row["search_seconds"]


def asked_seconds(options) -> float:
    return options.seconds or SECONDS


def make(case: str, device: str, kernelbench: str | None):
    """The module in eval mode, and what draws its inputs."""
    import torch
    from cases import kernelbench as tasks
    from cases import layers

    torch.manual_seed(0)
    of = cases.CASES[case]
    if isinstance(of, cases.Layer):
        return layers.make(of.name, device)
    return tasks.make(tasks.folder(kernelbench), of.level, of.number, of.digest, device)


def build(case: str, precision: str, device: str):
    """As make(), with one set of inputs; task files are found by $KERNELBENCH."""
    module, draw = make(case, device, None)
    return module, draw()


class Unlisted(Exception):
    """The case is of products and the list says that it is not, or the other way round."""


class FlagsChanged(Exception):
    """Somebody left torch's flags other than they were: the peers were not measured under torch's own."""


def measure(case: str, precision: str, options) -> list[dict]:
    import device as devices

    device = devices.default()
    module, draw = make(case, device, options.kernelbench)
    return measure_module(case, precision, module, draw, cases.CASES[case].products, options, device)


def measure_module(case: str, precision: str, module, draw, products: bool, options, device: str) -> list[dict]:
    """One row a door."""
    import beside
    import device as devices
    import torch

    before = flags()
    sets = devices.draw_sets(draw)
    check_listed(case, module, sets[0], products)
    # A copy for each way: one may move its parameters, and none finds another's in the caches.
    copies = {name: devices.copy_of(module) for name in ("inductor", *options.doors.split(","))}
    memory = beside.Memory(module, sets[0], device)
    opened, failed, seconds = _open_all(module, copies, sets[0], device, options, memory)
    ways = {"eager": module, **{name: o.way for name, o in opened.items()}}
    errors = beside.errors(module, ways, sets[0])
    bytes_of = memory.figures(ways)
    figures = beside.times(ways, sets, device)

    about = table.about(devices.name_of(device), None, torch.__version__)
    about |= {"precision": precision, "products": products, "flags": before, "search_seconds": asked_seconds(options)}
    if flags() != before:
        raise FlagsChanged(f"torch's flags are {flags()} after optimizing, {before} before")
    made = []
    for door in options.doors.split(","):
        row = {"case": case, "door": door, **about, **seconds.get(door, {})}
        if door not in opened:
            made.append(row | {"failed": failed[door]})
            continue
        made.append(row | _row(door, opened[door], figures, errors, bytes_of) | {"absent": _absent(failed, figures)})
    return made


def check_listed(case: str, module, inputs: tuple, listed: bool) -> None:
    import torch
    from torch.overrides import TorchFunctionMode

    class Seen(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if not torch.compiler.is_compiling():  # FlexAttention compiles its call, with this mode in it
                names.add(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    names: set[str] = set()
    with torch.no_grad(), Seen():
        module(*inputs)
    if cases.of_products(names) != listed:
        raise Unlisted(f"{case}: products={listed} in bench/cases, and its forward calls {sorted(names)}")


def flags() -> dict:
    """torch's own, which the suite leaves alone."""
    import torch

    return {
        "matmul": torch.get_float32_matmul_precision(),
        "convolution": "tf32" if torch.backends.cudnn.allow_tf32 else "ieee",
    }


def _open_all(module, copies: dict, inputs: tuple, device: str, options, memory):
    """What opened, why the others did not, and what a row says of each door's time. Ours comes first: what Inductor has
    compiled is kept on disk, and the search must not find it there."""
    import beside
    import homes
    import torch

    import doors
    from suites import tables

    ask = tables.asked(options) | {"seconds": asked_seconds(options)}
    with torch.no_grad():
        module(*inputs)
    memory.made("eager")
    opened, failed, seconds = {}, {}, {}

    def attempt(name: str, open_it) -> None:
        print(f"opening {name}", flush=True)
        try:
            opened[name] = open_it()
            seconds[name] = {"seconds_to_optimize": round(opened[name].seconds, 2)}
        except Exception as e:
            failed[name] = beside.first_line(e)
            print(f"{name} failed: {e}", flush=True)
        memory.made(name)

    wanted = options.doors.split(",")
    if "optimize" in wanted:
        attempt("optimize", lambda: doors.optimize(copies["optimize"], inputs, device, ask))
    attempt("inductor", lambda: doors.inductor(copies["inductor"], inputs, device))
    if "compile" in wanted:
        fresh = options.second_door == "empty" or "optimize" not in wanted
        with homes.second() if fresh else contextlib.nullcontext():
            attempt("compile", lambda: doors.compile(copies["compile"], inputs, device, ask))
        seconds.setdefault("compile", {})["started_from"] = "nothing" if fresh else "what `optimize` left"
    for name in wanted:
        seconds.setdefault(name, {})["inductor_seconds"] = seconds.get("inductor", {}).get("seconds_to_optimize")
    return opened, failed, seconds


def _row(door: str, opened, figures: dict, errors: dict, bytes_of: dict | None) -> dict:
    import beside

    import doors

    row: dict = doors.state_of(opened)
    report = opened.report or {}
    row |= {name: report.get(name) for name in ("kind", "stage_seconds", "settled")}
    row["toolchain"] = {k: v for k, v in report.get("toolchain", {}).items() if k in table.TOOLCHAIN_FACTS}
    row["inactive"] = [
        {"rule": p["rule"], "summary": p.get("summary"), "because": p.get("inactive_because")}
        for p in report.get("patterns", [])
        if not p.get("active")
    ]
    for mode in MODES:
        row[mode] = beside.compared(figures[mode], door) if mode in figures else None
    row["ratio"] = row["synchronized"]["ratio"]
    if "absent" in errors:
        row["errors"] = errors
    else:
        row["errors"] = {"tessera": errors[door], **{n: errors[n] for n in ("eager", "inductor") if n in errors}}
    if bytes_of is not None:
        row["bytes"] = {"tessera": bytes_of[door], **{n: bytes_of[n] for n in ("eager", "inductor") if n in bytes_of}}
        if "inductor" in bytes_of:
            row["memory_ratio"] = bytes_of[door] / bytes_of["inductor"]
    return row


def _absent(failed: dict[str, str], figures: dict) -> dict[str, str]:
    return failed | figures["absent"]


def line(row: dict) -> str:
    head = f"{row['case']:17} {row['precision']:4} {row.get('door', ''):8} {row['search_seconds']:3.0f} s  "
    if "failed" in row:
        return head + "FAILED: " + row["failed"]
    parts = []
    for mode, short in zip(MODES, ("sync", "b2b", "graph sync", "graph b2b"), strict=True):
        part = row[mode]
        if part and part["ratio"]:
            parts.append(f"{short} {part['tessera']['ms']:.4f} ms {part['ratio']:.3f}x of {part['best']}")
    errors = row["errors"].get("tessera", {}).get("rms_error")
    parts += [f"{row['runner']}, rest {row['leftover'] or 'none'}, {row['kernels']}"]
    parts += [f"rms {errors:.2e}" if errors is not None else "rms none"]
    parts += [f"memory {row['memory_ratio']:.2f}"] if "memory_ratio" in row else []
    return head + "; ".join(parts) + f"; {row['seconds_to_optimize']} s"


def geomean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def seconds_beyond(row: dict) -> float | None:
    """What a first call took beside the seconds of search that it was given and what torch.compile would have taken: less
    than nothing where the search ended early. None where it did not start from nothing."""
    if row.get("started_from", "nothing") != "nothing":
        return None
    ways = (row.get("settled") or {}).get("baseline", ())
    plain = next((w["seconds"] for w in ways if w["runner"] == "inductor" and not w["reason"]), 0.0)
    return row["seconds_to_optimize"] - row["search_seconds"] - plain


def summary(rows: list[dict], listed: dict | None = None) -> list[str]:
    """`listed`: the cases of the suite, each of which says whether it is of products."""
    listed = listed or cases.CASES
    out = []
    for seconds in sorted({r["search_seconds"] for r in rows}):
        for door in DOORS:
            # A case that failed before a door was opened failed for both.
            these = [r for r in rows if r["search_seconds"] == seconds and r.get("door", door) == door]
            if these:
                out += _summary_of(these, f"{door}, {seconds:.0f} s", listed)
    return out


def _summary_of(rows: list[dict], what: str, listed: dict) -> list[str]:
    failed = [r["case"] for r in rows if "failed" in r]
    right = [r for r in rows if "failed" not in r]
    out = [f"{what}: {len(right)} of {len(listed)} cases" + (f", failed: {', '.join(failed)}" if failed else "")]
    for mode in MODES:
        found = {r["case"]: r[mode]["ratio"] for r in right if r.get(mode) and r[mode]["ratio"]}
        if not found:
            continue
        below = ", ".join(f"{case} {x:.3f}" for case, x in sorted(found.items(), key=lambda i: i[1]) if x < FLOOR)
        out.append(
            f"  {mode}: geomean {geomean(list(found.values())):.3f} (goal {GOAL}), least {min(found.values()):.3f}, "
            f"below {FLOOR}: {below or 'none'}"
        )
    of_products = [r for r in right if r["products"]]
    if of_products:
        means = ", ".join(
            f"{mode} {geomean([r[mode]['ratio'] for r in of_products if r.get(mode) and r[mode]['ratio']]):.3f}"
            for mode in MODES[:2]
        )
        ours = sum(r["ours"] for r in of_products)
        out.append(
            f"  products ({len(of_products)} of {sum(c.products for c in listed.values())}): geomean {means} (goal {GOAL_PRODUCTS} at 90 s); "
            f"{ours} run kernels of ours ({ours / len(of_products):.0%}, goal {SHARE:.0%})"
        )
    beyond = {r["case"]: seconds for r in right if (seconds := seconds_beyond(r)) is not None}
    if beyond:
        most = max(beyond, key=beyond.get)
        out.append(
            f"  seconds beyond the search and Inductor's own compilation: median {statistics.median(beyond.values()):.1f}, "
            f"most {beyond[most]:.1f} ({most})"
        )
    worst = max((r["memory_ratio"] for r in right if "memory_ratio" in r), default=None)
    return out + ([f"  memory against Inductor: at most {worst:.3f}"] if worst else [])
