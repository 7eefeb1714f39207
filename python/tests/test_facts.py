"""What is known of the content of buffers and constants (tessera/common/facts.py)."""

import pytest
import torch
from tessera.common.facts import facts_of, mask_of

ADDITIVE_BAND = {"additive_band": True, "lower": -2, "upper": 0, "masked": -1e9}


@pytest.mark.parametrize(
    ("tensor", "facts"),
    [
        (torch.full((3, 4), 0.5), {"scalar": 0.5}),
        (torch.full((2,), float("-inf")), {"scalar": "-inf"}),
        (torch.ones(5, 5).tril(), {"lower_triangular": True, "diagonal": 0}),
        (torch.ones(1, 1, 4, 6).tril(2), {"lower_triangular": True, "diagonal": 2}),
        (torch.ones(5, 5, dtype=torch.bool).tril(-1), {"lower_triangular": True, "diagonal": -1}),
        (torch.ones(5, 5).triu(1), {"upper_triangular": True, "diagonal": 1}),
        (
            torch.full((4, 4), float("-inf")).triu(1),
            {"additive_lower_triangular": True, "diagonal": 0, "masked": "-inf"},
        ),
        (torch.full((4, 4), -1e9).triu(2), {"additive_lower_triangular": True, "diagonal": 1, "masked": -1e9}),
        (torch.arange(6), {"min": 0, "max": 5}),
        (torch.arange(3.0).repeat(4, 2), {"halves_equal": True}),
        (torch.arange(3.0).repeat(2), {"halves_equal": True}),
        (torch.arange(3.0).repeat(2, 3), {}),
        (torch.tensor([[1.0, 2, 1, 2], [1, 2, 2, 1]]), {}),
        (torch.ones(2, 4, 4).tril(), {"lower_triangular": True, "diagonal": 0}),
        (torch.stack((torch.ones(4, 4).tril(), torch.ones(4, 4))), {}),
        (torch.ones(2, 3, 6, 8).tril(3).triu(-1), {"band": True, "lower": -1, "upper": 3}),
        (torch.ones(5, 5).tril().triu(-2) == 0, {"outside_band": True, "lower": -2, "upper": 0}),
        (torch.eye(4), {"band": True, "lower": 0, "upper": 0}),
        (torch.full((6, 6), -1e9).masked_fill(torch.ones(6, 6).tril().triu(-2) > 0, 0), ADDITIVE_BAND),
        (torch.ones(5, 5).tril().triu(-2) * torch.tensor([1.0, 1, 1, 0, 1]), {}),
        (torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 0, 1]]), {}),
    ],
)
def test_facts(tensor, facts):
    found = facts_of(tensor)
    assert found.get("masked", 0) == pytest.approx(facts.get("masked", 0)) if "masked" in facts else found == facts
    assert set(found) == set(facts)
    mask = mask_of(found, *tensor.shape[-2:], torch.device("cpu")) if tensor.dim() > 1 else None
    assert mask is None or torch.equal(mask.expand(tensor.shape).to(tensor.dtype), tensor)


def test_what_is_too_large_is_not_looked_at_whatever_its_type(monkeypatch):
    from tessera.common import facts

    mask = torch.ones(6, 6).tril()
    for most, found in ((36, {"lower_triangular": True, "diagonal": 0}), (35, {})):
        monkeypatch.setattr(facts, "LARGEST", most)
        assert facts_of(mask) == found and facts_of(mask.bool()) == found
