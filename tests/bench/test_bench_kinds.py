"""Every module of the `kinds` suite, small and on the CPU: it runs, depends on its inputs and its parameters, and is listed as
what it is."""

import places  # noqa: F401  isort: skip
import pytest
import run
import torch
from cases import kinds
from suites import breadth
from suites import kinds as suite


def numbers(results) -> torch.Tensor:
    parts = results if isinstance(results, tuple) else (results,)
    return torch.cat([part.flatten().float() for part in parts])


def answers(module, inputs) -> torch.Tensor:
    torch.manual_seed(0)  # of a module that drew
    with torch.no_grad():
        return numbers(module(*inputs))


@pytest.mark.parametrize("case", kinds.CASES)
def test_a_module(case):
    torch.manual_seed(0)
    module, draw = kinds.make(case, "cpu", small=True)
    first, second = draw(), draw()
    found = answers(module, first)
    assert not module.training and found.isfinite().all() and found.std() > 0
    assert torch.equal(found, answers(module, first))
    for i, other in enumerate(second):
        assert not torch.equal(found, answers(module, (*first[:i], other, *first[i + 1 :]))), f"input {i} is not used"
    for name, p in module.named_parameters():
        kept = p.detach().clone()
        with torch.no_grad():
            p.add_(torch.randn_like(p))
        assert not torch.equal(found, answers(module, first)), f"{name} is not used"
        with torch.no_grad():
            p.copy_(kept)
    breadth.check_listed(case, module, first, kinds.CASES[case].products)
    precision = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
    assert suite.precisions(case) == [precision[next(x for x in first if x.is_floating_point()).dtype]]


def test_the_suite_is_chosen_by_its_name():
    args = run.parse(["kinds", "dlrm,nerf"])
    assert args.units == [("dlrm", "fp32"), ("nerf", "fp16")]
    row = {"case": "dlrm", "precision": "fp32", "door": "optimize", "search_seconds": 30.0, "failed": "no device"}
    assert suite.summary([row]) == [f"optimize, 30 s: 0 of {len(kinds.KINDS)} cases, failed: dlrm"]
