"""What the suites `gemm` and `blocks` share: the product measures its own module beside peers, at equal precision, and
reports; rows, one a peer, are made of its report."""

from __future__ import annotations

import json
import time

import rows


def set_flags(precision: str) -> None:
    import torch

    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def dtype_of(precision: str):
    """The precision's storage type."""
    import torch

    storage = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}
    return storage.get(precision, torch.float32)


def module_class(precision: str) -> str | None:
    """What optimize() is asked for; at fp8 the case's operands are of 8 bits already, and nothing is to be converted."""
    return None if precision == "fp8" else precision


def asked(options) -> dict:
    """What optimize() is asked for beside the case: only what the user gave, so that the product's defaults are measured."""
    given = {"effort": options.effort, "leftover": options.leftover, "jobs": options.jobs, "seconds": options.seconds}
    return {name: value for name, value in given.items() if value}


def measure(suite: str, case: str, precision: str, options, build, peers: list[str], more: dict) -> list[dict]:
    """`build(case, precision, device)`; `more`: of the suite, for optimize()."""
    import device as devices
    import tessera
    import torch

    device = devices.default()
    set_flags(precision)
    module, inputs = build(case, precision, device)
    measured = options.peers.split(",") if options.peers else ["eager" if p == "cublas" else p for p in peers]
    begin = time.monotonic()
    fast = tessera.optimize(
        module,
        inputs,
        precision=module_class(precision),
        measure=measured,
        ablation=False,
        resizes=not options.no_resizes,
        **asked(options),
        **more,
    )
    seconds = time.monotonic() - begin
    out = rows.root / "bench" / "out" / f"{suite}-{case}-{precision}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.json").write_text(json.dumps(fast.report, indent=1))
    about = rows.about(devices.name_of(device), fast.report, torch.__version__)
    about |= {"search_seconds": search_seconds(fast.report, options.seconds), "seconds_to_optimize": round(seconds, 1)}
    return [row | about for row in of_report(case, precision, fast.report, peers, more.get("only", ""))]


def search_seconds(report: dict, given: float) -> float | None:
    """The seconds of search that were asked for; where none were, those that it took."""
    took = report.get("stage_seconds", {}).get("evaluate")
    return given or (None if took is None else round(took, 1))


def of_report(case: str, precision: str, report: dict, peers: list[str], only: str) -> list[dict]:
    """One row a peer. `only`: the kind of kernel that the suite asks for."""
    times = report.get("module", {}).get("times", {})
    absent = report.get("module", {}).get("absent", {})
    check = report.get("verification", {})
    ours = times.get("tessera", {})
    why = why_none(report, only)
    made = []
    for peer in peers:
        row = {"case": case, "precision": precision, "impl": "tessera", "kind": report.get("kind", "none")}
        row |= {"ms": ours.get("ms"), "ci95": ours.get("ci95"), "peer": peer}
        # The library behind eager's matmul on CUDA is cuBLAS.
        measured = times.get("eager" if peer == "cublas" else peer)
        if measured:
            row |= {"peer_ms": measured["ms"], "peer_ci95": measured.get("ci95")}
            row["ratio"] = measured["ms"] / ours["ms"] if ours.get("ms") else None
        else:
            row |= {"peer_ms": None, "ratio": None, "absent": absent.get(peer, "not measured")}
        row |= {
            "max_error": check.get("max_error"),
            "rms_error": check.get("rms_error"),
            "peer_rms_error": check.get("baseline_rms_error"),
        }
        row["kernels"] = kernels_of(report, only)
        made.append(row | ({"why": why} if why else {}))
    return made


def why_none(report: dict, only: str) -> str:
    """Why no kernel of the kind asked for is active: each pattern's reason, the same ones once; "" where one is."""
    if kernels_of(report, only):
        return ""
    found = report.get("patterns", [])
    if not found:
        return "no pattern was found"
    places: dict[str, list[str]] = {}
    for p in found:
        reason = p.get("inactive_because") or f"its kernel is not {only}"
        places.setdefault(reason, []).append(" ".join(p[key] for key in ("id", "rule") if p.get(key)))
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in places.items())


def kernels_of(report: dict, only: str = "") -> list[dict]:
    placed = [
        (p, next((w for w in p["winners"] if only in ("", w["kind"])), None))
        for p in report.get("patterns", [])
        if p.get("active")
    ]
    return [
        {
            "rule": p["rule"],
            "summary": p.get("summary"),
            "label": w["label"],
            "kind": w["kind"],
            "ms": w["evidence"]["ms"],
            "knobs": w.get("knobs"),
        }
        for p, w in placed
        if w is not None
    ]


def unit(row: dict) -> tuple:
    return row["case"], row["precision"]


def asked_seconds(options) -> float | None:
    return options.seconds or None


def line(row: dict) -> str:
    if "failed" in row:
        return f"{row['case']:22} {row['precision']:5} FAILED: {row['failed']}"
    ratio = f"{row['ratio']:.3f}x" if row["ratio"] else row.get("absent", "")[:60]
    return (
        f"{row['case']:22} {row['precision']:5} {row['kind']:12} {row['ms'] or float('nan'):9.4f} ms  "
        f"{row['peer']:22} {row['peer_ms'] or float('nan'):9.4f} ms  {ratio}  "
        f"rms {row['rms_error']} (peer {row['peer_rms_error']})  {row['seconds_to_optimize']} s"
    )
