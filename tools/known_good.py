#!/usr/bin/env python3
"""knowledge/configurations/: the configurations that won in bench/results, as `tessera examples` compares others with them.

    tools/known_good.py --update     writes the files
    tools/known_good.py              says whether they are what bench/results give; exit code 1 where not

A row names a kernel's configuration by its label ("wgmma_gemm 128x256x64 2x1 pingpong"): its tile, its cluster and its
schedule are read from there; what a label leaves out is left out here, and not compared.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("gemm", "blocks", "breadth", "anytime")
LABEL = re.compile(r"(\w+) (\d+)x(\d+)x(\d+) (\d+)x(\d+) (cooperative|pingpong)\b")
PRODUCT = re.compile(r"(?:(\d+) of )?(\d+)x(\d+)x(\d+) (fp32|tf32|bf16|fp16|fp8)\b")
ARCHS = {"NVIDIA H200": "sm_90a", "NVIDIA H100 80GB HBM3": "sm_90a"}


def extents(rule: str, product: re.Match) -> dict[str, int]:
    batch, m, n, k = (int(x or 1) for x in product.groups()[:4])
    return ({"batch": batch} if rule == "gemm" else {}) | {"m": m, "n": n, "k": k}


def known(suite: str, row: dict, kernel: dict) -> dict | None:
    label, product = LABEL.match(kernel.get("label", "")), PRODUCT.match(kernel.get("summary", ""))
    if kernel.get("kind") != "synthesized" or label is None or product is None or row["device"] not in ARCHS:
        return None
    numbers = [int(x) for x in label.groups()[1:6]]
    return {
        "rule": kernel["rule"],
        "precision": product[5],
        "arch": ARCHS[row["device"]],
        "device": row["device"],
        "summary": kernel["summary"],
        "extents": extents(kernel["rule"], product),
        "realizer": label[1],
        "config": {"tile": numbers[:3], "cluster": numbers[3:], "schedule": label[7]},
        "knobs": kernel.get("knobs", {}),
        "ms": round(kernel["ms"], 5),
        "origin": f"bench/results/{suite}.json, {row['case']}, commit {row['commit']}",
    }


def collected() -> list[dict]:
    """The fastest of each pattern, precision and device; sorted, so that a new row changes few lines."""
    best: dict[tuple, dict] = {}
    for suite in SUITES:
        for row in json.loads((ROOT / f"bench/results/{suite}.json").read_text()):
            for kernel in row.get("kernels") or []:
                found = known(suite, row, kernel) if isinstance(kernel, dict) else None
                if found is None:
                    continue
                key = (found["device"], found["rule"], found["precision"], found["summary"])
                if key not in best or found["ms"] < best[key]["ms"]:
                    best[key] = found
    return [best[key] for key in sorted(best)]


def text() -> str:
    lines = ",\n  ".join(json.dumps(c) for c in collected())
    return f'{{"schema": "tessera.configurations/1",\n "configurations": [\n  {lines}\n ]}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the file")
    place = ROOT / "knowledge/configurations/measured.json"
    made = text()
    if parser.parse_args().update:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(made)
        return 0
    if place.is_file() and place.read_text() == made:
        return 0
    print(
        f"{place.relative_to(ROOT)} is not what bench/results give: run tools/known_good.py --update", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
