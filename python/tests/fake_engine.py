"""Stands in for `tessera serve` in tests of the Python side: answers `optimize` with a plan of hand-written kernels,
after asking for the verification as the engine does. Misbehaves as $FAKE_ENGINE says."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from tessera.common.errors import fail  # noqa: E402
from tessera.common.protocol import over_stdio  # noqa: E402

mood = os.environ.get("FAKE_ENGINE", "")
stopped = []


def optimize(params: dict) -> dict:
    connection.notify("progress", {"stage": "tune", "message": "working", "done": 1, "total": 2})
    if mood == "die":
        print("a last word", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if mood == "refuse":
        raise fail("TS0301", "build.no_nvcc", "nvcc is not found", helps=["install it"])
    if mood == "wait":
        while not stopped:
            time.sleep(0.01)
    if mood == "plain":
        plan = {
            "schema": "tessera.plan/1",
            "graph": params["graph"],
            "steps": [{"kind": "aten", "node": n["name"]} for n in params["graph"]["nodes"]],
            "leftover": [],
        }
    else:
        from composing import plan_of_trace  # with torch, whose import takes seconds

        plan = plan_of_trace(SimpleNamespace(graph=params["graph"]), os.environ["FAKE_KERNEL"])
    check = connection.call("verify_module", {"plan": plan, "seeds": 1, "leftover": "eager"})
    report = {"verification": check, "options": params["options"], "stopped": bool(stopped)}
    report["pythonpath"] = os.environ.get("TESSERA_PYTHONPATH")
    if params["options"].get("measure"):
        report["module"] = connection.call("measure_module", {"plan": plan, "peers": ["eager"], "seconds": 0.1})
    return {
        "plan": plan,
        "report": report,
        "diagnostics": [{"code": "TS0600", "level": "warning", "message": "a warning", "help": ["read it"]}],
    }


def check_options(params: dict) -> dict:
    assert set(params["own"]).isdisjoint(params["options"]), params
    if "efort" in params["options"]:
        raise fail("TS0041", "input.unknown_argument", "no argument `efort`", helps=["did you mean `effort`?"])
    return {}


signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
assert sys.argv[1:] == ["serve"]
connection = over_stdio({"optimize": optimize, "check_options": check_options})
connection.serve()
