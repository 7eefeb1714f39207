"""Parameters moved into one storage: what they keep, who is left alone."""

from __future__ import annotations

import copy
import gc
import io

import pytest
import torch
from tessera.running.neighbours import adopt, span
from torch import nn


@pytest.fixture
def parts():
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(n, 8)) for n in (4, 2, 6)]


def test_what_is_written_into_a_part_is_read_in_the_whole(parts):
    before = [p.detach().clone() for p in parts]
    whole = adopt(parts)
    assert torch.equal(whole, torch.cat(before)) and all(map(torch.equal, parts, before))
    assert all(p.is_leaf and p.requires_grad and p.is_contiguous() for p in parts)
    parts[1].data.mul_(3)
    parts[2].data += 1
    with torch.no_grad():
        parts[0].copy_(torch.zeros(4, 8))
    assert torch.equal(whole, torch.cat([torch.zeros(4, 8), before[1] * 3, before[2] + 1]))
    assert span(parts).data_ptr() == whole.data_ptr() and adopt(parts).data_ptr() == whole.data_ptr()
    assert span(parts[1:]).shape == (8, 8) and span(parts[::-1]) is None and span([parts[0], parts[2]]) is None


def test_gradients_and_optimizers_go_on(parts):
    whole = adopt(parts)
    optimizer = torch.optim.SGD(parts, lr=1.0)
    sum(p.sum() for p in parts).backward()
    before = [p.detach().clone() for p in parts]
    optimizer.step()
    assert all(torch.equal(p, b - 1) for p, b in zip(parts, before, strict=True))
    assert torch.equal(whole, torch.cat([b - 1 for b in before]))


def test_memory_that_others_look_at_stays_where_it_is(parts):
    alias = parts[1].data
    place = parts[1].data_ptr()
    assert adopt(parts) is None and parts[1].data_ptr() == place
    alias.zero_()
    assert not parts[1].any()
    del alias
    assert adopt(parts) is not None


@pytest.mark.parametrize("other", ["dtype", "shared", "strides", "twice", "subclass", "inference"])
def test_what_cannot_be_a_neighbour(parts, other):
    if other == "dtype":
        parts[1] = nn.Parameter(parts[1].detach().double())
    elif other == "shared":
        parts[1].share_memory_()
    elif other == "strides":
        parts[1] = nn.Parameter(torch.randn(8, 2).t())
    elif other == "twice":
        parts[1] = parts[0]
    elif other == "subclass":
        parts[1] = parts[1].detach().as_subclass(type("Own", (torch.Tensor,), {}))
    else:
        with torch.inference_mode():
            parts[1] = torch.randn(2, 8)
    places = [p.data_ptr() for p in parts]
    assert adopt(parts) is None and [p.data_ptr() for p in parts] == places


def test_another_grouping_waits_until_the_first_is_gone(parts):
    whole = adopt(parts)
    some = span(parts[:2])
    assert torch.equal(some, torch.cat(parts[:2])) and some.data_ptr() == whole.data_ptr()
    extra = nn.Parameter(torch.randn(1, 8))
    assert adopt([parts[2], extra]) is None and span(parts) is whole
    del whole
    assert span(parts[:2]).data_ptr() == some.data_ptr() and adopt([parts[0], extra]) is None
    del some
    gc.collect()
    other = adopt([parts[2], extra])
    assert torch.equal(other, torch.cat([parts[2], extra])) and span(parts) is None
    alias = parts[0].data
    assert adopt(parts[:2]) is None, alias.shape


def test_the_parts_keep_the_memory(parts):
    before = [p.detach().clone() for p in parts]
    adopt(parts)
    gc.collect()
    filler = [torch.full((12, 8), 7.0) for _ in range(64)]
    assert all(map(torch.equal, parts, before)), len(filler)


def test_copies_and_files(parts):
    module = nn.ParameterList(parts)
    whole = adopt(parts)
    again = copy.deepcopy(module)
    assert span(list(again)) is None
    other = adopt(list(again))
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file)
    assert all(torch.equal(loaded[k], v) for k, v in module.state_dict().items())
    again.load_state_dict({k: v + 1 for k, v in loaded.items()})
    assert torch.equal(other, whole + 1)


def test_safetensors(parts, tmp_path):
    files = pytest.importorskip("safetensors.torch")
    module = nn.ParameterList(parts)
    whole = adopt(parts)
    files.save_file(module.state_dict(), tmp_path / "m.safetensors")
    files.save_model(module, str(tmp_path / "n.safetensors"))
    loaded = files.load_file(tmp_path / "m.safetensors")
    assert all(torch.equal(loaded[k], v) for k, v in module.state_dict().items())
    with torch.no_grad():
        parts[0].zero_()
    files.load_model(module, str(tmp_path / "n.safetensors"))
    assert torch.equal(parts[0], loaded["0"]) and torch.equal(whole[:4], loaded["0"])


def test_a_tied_parameter_is_one_parameter(parts):
    a, b = nn.Linear(8, 4, bias=False), nn.Linear(8, 4, bias=False)
    b.weight = a.weight
    assert adopt([a.weight, parts[1]]) is not None
    a.weight.data.zero_()
    assert not b.weight.any()
