"""Modules of kinds that no other suite has, measured as those of `breadth` are: 30 s of search each, from nothing, by both
doors, beside eager and plain torch.compile."""

from __future__ import annotations

from cases import kinds as cases

from suites import breadth

CASES = list(cases.CASES)
HOME = breadth.HOME

unit = breadth.unit
asked_seconds = breadth.asked_seconds
line = breadth.line


def precisions(case: str) -> list[str]:
    return [cases.CASES[case].precision]


def make(case: str, device: str):
    """The module in eval mode, and what draws its inputs."""
    import torch

    torch.manual_seed(0)
    return cases.make(case, device)


def build(case: str, precision: str, device: str):
    """As make(), with one set of inputs."""
    module, draw = make(case, device)
    return module, draw()


def measure(case: str, precision: str, options) -> list[dict]:
    import device as devices

    device = devices.default()
    module, draw = make(case, device)
    return breadth.measure_module(case, precision, module, draw, cases.CASES[case].products, options, device)


def summary(rows: list[dict]) -> list[str]:
    return breadth.summary(rows, cases.CASES)
