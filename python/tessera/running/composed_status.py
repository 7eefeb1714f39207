"""What a composed module says of itself: which patterns are active, how its calls were served, and why not by kernels."""

from __future__ import annotations

from tessera.running import extension, fast_guard
from tessera.running.plan_graph import PatternUse

_SERVED = ("alignment", "repack", "apart")  # events in which the kernels ran nevertheless


def why_not_served(composed) -> str:
    """Why the original module ran in place of the kernels in some call; "" where that never happened."""
    return next((e["reason"] for e in composed._events.to_list() if e["kind"] not in _SERVED), "")


def status_of(composed) -> dict:
    """The dictionary of ComposedModule.status()."""
    events = composed._events.to_list()
    away = sum(e["count"] for e in events if e["kind"] not in _SERVED)
    ran = composed._counts.calls - away
    whole = not composed._lost or composed.runner != "kernels"
    patterns = [_pattern_status(composed, p, ran) for p in composed._built.patterns]
    b = extension.backend()
    return {
        "schema": "tessera.status/1",
        "runner": composed.runner,
        "active": [p["id"] for p in patterns if p["active"]],
        "patterns": patterns,
        "calls": composed._counts.calls,
        "served": ran if whole else 0,
        "fallbacks": events,
        "lost": [{"id": p.id, "rule": p.rule, "reason": p.reason} for p in composed._lost],
        "repacks": composed._counts.repacks,
        "leftover": composed._built.leftover,
        "leftover_by": composed._leftover,
        "launch": {"kind": b.kind, "reason": b.reason},
        "guards": fast_guard.status(),
        "strict": composed._strict,
    }


def _pattern_status(composed, p: PatternUse, ran: int) -> dict:
    active = p.active and composed.runner == "kernels"
    reason = p.reason if active or not p.active else f"the module runs by {composed.runner}, which is faster as a whole"
    return {
        "id": p.id,
        "rule": p.rule,
        "realizer": p.realizer,
        "kind": p.kind,
        "label": p.label,
        "active": active,
        "reason": reason,
        "calls": ran if active else 0,
        "operator": f"tessera::{p.operator.name}" if p.operator else "",
    }
