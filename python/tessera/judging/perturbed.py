"""A module's state and inputs, drawn anew so that nothing in them is special.

At initialization norm weights are ones, biases zeros, gates and second matrices of adapters zeros: a rewrite or a kernel
that ignores them is right there, and wrong after training. Here they are near what they were, and no longer special.
What the composed module guards (facts.py), integers, booleans and masks stay as they are. What is changed is a copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch

from tessera.common.facts import MASKS
from tessera.common.laid import cloned, in_storage, overlaps_itself, storage_of
from tessera.common.precision import readable

AMPLITUDE = 0.2
_least_scale = 0.02  # of s: factors of 1e-6 get a size that shows in a sum
_masks_from = 1e4  # larger magnitudes stand for minus infinity
_few, _sample, _small = 16, 4096, 1 << 20


class Perturbed(Mapping):
    """`tensors` by value name, each made anew where it is read. `graph`: theirs, for what it says of them. Tensors that are one in
    memory (tied weights) stay equal."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], graph: dict, seed: int, amplitude: float = AMPLITUDE):
        self._tensors, self._seed, self._amplitude = tensors, seed, amplitude
        self._facts = {v["name"]: v.get("facts") or {} for v in graph["values"]}
        self._in_storage = in_storage(graph)
        first: dict[tuple, int] = {}
        self._number = {
            name: first.setdefault((t.data_ptr(), t.dtype, tuple(t.shape), t.stride()), i)
            for i, (name, t) in enumerate(tensors.items())
        }

    def __getitem__(self, name: str) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + self._number[name])
        made = perturb(self._tensors[name], self._facts.get(name, {}), generator, self._amplitude)
        return _placed(made, self._tensors[name]) if name in self._in_storage else made

    def __contains__(self, name) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def perturb(t: torch.Tensor, facts: dict, generator: torch.Generator, amplitude: float = AMPLITUDE) -> torch.Tensor:
    """A floating tensor with other elements, in memory of its own: x (1 + a u) + a s u for u in (-1, 1), where s is the root mean
    square; u > 0 where all elements are of one sign, which they keep. Zeros become uniform in [0, 1/2), as a bias that shows
    in 16 bits, matrices of zeros as they are initialized elsewhere. Large tensors of many values are random enough as
    they are: the tensor itself, like all that is kept."""
    t = t.detach()
    if _kept(t, facts) or (t.numel() > _small and not _special(t)):
        return t
    x = readable(t).to(torch.promote_types(readable(t).dtype, torch.float32))
    low, high = float(x.min()), float(x.max())
    if not (-_masks_from < low and high < _masks_from):
        return t
    u = torch.rand(x.shape, generator=generator, device="cpu").to(x.device, x.dtype)
    if low == high == 0:
        u = u / 2 if t.dim() < 2 else (2 * u - 1) / math.sqrt(t.shape[-1])
        return torch.empty_like(t).copy_(u * (amplitude / AMPLITUDE))
    scale = max(float(x.square().mean().sqrt()), _least_scale)
    if low >= 0:
        x = x * (1 + amplitude * (2 * u - 1)) + amplitude * scale * u
    elif high <= 0:
        x = x * (1 + amplitude * (2 * u - 1)) - amplitude * scale * u
    else:
        x = x * (1 + amplitude * (2 * u - 1)) + amplitude * scale * (2 * u - 1)
    if facts.get("halves_equal"):
        x = torch.cat((half := x.chunk(2, dim=-1)[0], half), dim=-1)
    largest = torch.finfo(t.dtype).max
    return torch.empty_like(t).copy_(x.clamp(-largest, largest))  # 8-bit types end where weights may lie


def _placed(values: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The values at the place that `t` has in its storage, in a copy of it; of those that share an element, one."""
    if values is t:
        return t
    made = cloned(t, storage=True)
    if not overlaps_itself(t.shape, t.stride()):
        return made.copy_(values)
    storage = storage_of(made)
    places = torch.arange(storage.numel(), device=t.device).as_strided(t.shape, t.stride(), t.storage_offset())
    storage[places.flatten()] = values.flatten()
    return made


def perturbed_inputs(given: dict[str, torch.Tensor], graph: dict, seed: int) -> dict[str, torch.Tensor]:
    """User inputs as held.py redraws them; floating ones that it leaves as they are, because they hold few values,
    get others: a state of zeros must not hide what is done with it."""
    placed = in_storage(graph)
    out = {}
    for i, (name, t) in enumerate(given.items()):
        if t.is_floating_point() and _special(t):
            made = perturb(t, {}, torch.Generator().manual_seed(seed * 1_000_003 - i - 1))
            t = _placed(made, t) if name in placed else made
        out[name] = t
    return out


def _kept(t: torch.Tensor, facts: dict) -> bool:
    guarded = any(facts.get(k) for k in MASKS)
    return not t.is_floating_point() or t.numel() == 0 or "scalar" in facts or guarded


def _special(t: torch.Tensor) -> bool:
    """Whether a sample of the elements has few values."""
    flat = readable(t.detach()).flatten()
    return len(flat[:: max(1, flat.numel() // _sample)].unique()) <= _few
