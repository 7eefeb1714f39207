"""A plugin of pytest: in Transformers' own tests `torch.compile` gets the backend tessera, and what their exporter returns is
`tessera.optimize` of the module. A row for each is appended to TESSERA_TESTS_LOG."""

from __future__ import annotations

import json
import os
from pathlib import Path

import tessera
import torch
from architectures import active_kernels
from placing import OPTIONS
from tessera import backend

_compile, _made = torch.compile, []


class _Exported:
    """As torch.export's program, for what these tests ask of one."""

    def __init__(self, model: torch.nn.Module, inputs: dict):
        with torch.no_grad():
            self.fast = tessera.optimize(model, dict(inputs), seconds=_seconds(), **OPTIONS)

    def module(self) -> torch.nn.Module:
        return self.fast


def _row(status: dict) -> dict:
    return {"runner": status["runner"], "reason": status.get("reason", ""), "status": status}


def _seconds() -> float:
    return float(os.environ["TESSERA_TESTS_SECONDS"])


def _remembered(made, rows_of) -> None:
    _made.append((os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0].split("::", 1)[-1], made, rows_of))


def _with_tessera(model=None, **given):
    if given.get("backend") not in (None, "inductor"):
        return _compile(model, **given)
    if model is None:
        return lambda function: _with_tessera(function, **given)
    options = OPTIONS | {"seconds": _seconds()} | ({"mode": given["mode"]} if given.get("mode") else {})
    others = {k: v for k, v in given.items() if k not in ("mode", "options", "backend")}
    compiled = _compile(model, backend=backend.tessera, options=options, **others)
    _remembered(compiled, tessera.status)
    return compiled


def _exported(_self, model, sample_inputs, *_others, **_options):
    exported = _Exported(model, sample_inputs)
    _remembered(
        exported.fast,
        lambda fast: [_row(fast.status())],
    )
    return exported


def pytest_configure(config) -> None:
    from transformers.exporters.exporter_dynamo import DynamoExporter

    torch.compile = _with_tessera
    DynamoExporter.export = _exported


def pytest_runtest_teardown(item) -> None:
    with Path(os.environ["TESSERA_TESTS_LOG"]).open("a") as log:
        for test, made, rows_of in _made:
            for row in rows_of(made):
                kernels = active_kernels(row["status"]) if row["status"] else 0
                log.write(
                    json.dumps(
                        {
                            "file": str(item.path),
                            "test": test,
                            "runner": row["runner"],
                            "reason": row["reason"],
                            "kernels": kernels,
                        }
                    )
                    + "\n"
                )
    _made.clear()
