"""Transformer blocks, and how soon one is there again: `second run` is the same block in a fresh process on the same
machine, with the registry and the cache that the first run left."""

from __future__ import annotations

import os

from suites import tables
from suites.tables import asked_seconds, unit

__all__ = ["CASES", "HOME", "asked_seconds", "build", "line", "measure", "precisions", "summary", "unit"]

CASES = [
    "minigpt",
    "llama-1x2048",
    "llama-1x2048-written",
    "llama-4x2048",
    "llama-4x2048-written",
    "llama-16x2048",
    "llama-16x2048-written",
]
HOME = "shared"
PEERS = ["eager", "inductor", "inductor-max-autotune", "tensorrt"]
MORE: dict = {}
SECOND = "second run"
# A Llama block is what is asked for; one with attention written out and one of another kind stand beside it.
RUN_AGAIN = ("minigpt", "llama-1x2048", "llama-1x2048-written")


def precisions(case: str) -> list[str]:
    return ["bf16", "tf32", "fp32"] if case == "minigpt" else ["bf16"]


def build(case: str, precision: str, device: str):
    import torch
    from cases import blocks

    torch.manual_seed(0)
    dtype = tables.dtype_of(precision)
    module, inputs = blocks.make(case, device)
    return module.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


def measure(case: str, precision: str, options) -> list[dict]:
    made = tables.measure("blocks", case, precision, options, build, PEERS, MORE)
    if case in RUN_AGAIN and not options.no_second_run:
        made.append(second_run(case, precision, options, made[0]))
    return made


def second_run(case: str, precision: str, options, first: dict) -> dict:
    """Its own row; `first`: a row of the run before."""
    import fresh

    ask = {"precision": tables.module_class(precision), "resizes": not options.no_resizes, **tables.asked(options)}
    row = {k: v for k, v in first.items() if k in ("device", "toolchain", "torch", "commit", "date", "search_seconds")}
    row |= {"case": case, "precision": precision, "impl": "tessera", "peer": SECOND, "ratio": None}
    row |= {"first_seconds_to_optimize": first["seconds_to_optimize"]}
    try:
        again = fresh.run({"suite": "blocks", "case": case, "precision": precision, "optimize": ask}, dict(os.environ))
    except fresh.Failed as e:
        return row | {"seconds_to_optimize": None, "absent": str(e)}
    return row | {
        "kind": again["report"].get("kind", "none"),
        "seconds_to_optimize": round(again["seconds_to_optimize"], 2),
        "seconds_to_first_result": round(again["seconds_to_first_result"], 2),
        "stage_seconds": again["report"].get("stage_seconds"),
        "built": len(again["built"]),
        "built_files": again["built"][:20],
    }


def line(row: dict) -> str:
    if row.get("peer") != SECOND:
        return tables.line(row)
    head = f"{row['case']:22} {row['precision']:5} {SECOND}: "
    if row["seconds_to_optimize"] is None:
        return head + row["absent"]
    return head + f"callable in {row['seconds_to_optimize']} s, {row['built']} files compiled"


def summary(rows: list[dict]) -> list[str]:
    again = [r for r in rows if r.get("peer") == SECOND and r.get("seconds_to_optimize") is not None]
    return [f"slowest second run: {max(r['seconds_to_optimize'] for r in again):.1f} s"] if again else []
