"""Matrix products at five precisions. What our own kernels reach; the library's time stands beside as the peer."""

from __future__ import annotations

from suites import tables
from suites.tables import asked_seconds, line, unit

__all__ = ["CASES", "HOME", "asked_seconds", "build", "line", "measure", "precisions", "summary", "unit"]

CASES = ["L1-1", "L1-3", "L1-6"]
HOME = "shared"
PEERS = ["cublas"]
MORE = {"only": "synthesized", "place_all": True}


def precisions(case: str) -> list[str]:
    return ["tf32", "bf16", "fp32", "fp16"] + ([] if case == "L1-3" else ["fp8"])


def build(case: str, precision: str, device: str):
    import torch
    from cases import gemm

    torch.manual_seed(0)
    return gemm.make(case, device, tables.dtype_of(precision))


def measure(case: str, precision: str, options) -> list[dict]:
    return tables.measure("gemm", case, precision, options, build, PEERS, MORE)


def summary(rows: list[dict]) -> list[str]:
    return []
