"""Fourier transforms and what stands around them: traced to ops on real and imaginary parts."""

from __future__ import annotations

import pytest
import torch
from tessera.common import transforms
from tessera.common.errors import Error
from tessera.common.reference import Executor
from tessera.tracing.tracer import trace_module
from torch import nn


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: low modes times complex weights, written into zeros."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 3, 3, 2))

    def forward(self, x):
        modes = torch.fft.rfft2(x)
        out = torch.zeros(x.shape[0], 4, 8, 5, dtype=torch.cfloat)
        weight = torch.view_as_complex(self.weight)
        out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", modes[:, :, :3, :3], weight)
        out[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", modes[:, :, -3:, :3], weight.conj())
        return torch.fft.irfft2(out, s=(8, 8))


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def long_convolution(u, k):
    n = 2 * u.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(k, n=n) / n * torch.fft.rfft(u, n=n), n=n, norm="forward")[..., : u.shape[-1]]


def spectrogram(x):
    return torch.log1p(torch.stft(x, 16, 4, window=torch.ones(16), return_complex=True).abs())


def correlation(q, k):
    q, k = (torch.fft.rfft(t.transpose(1, 2), dim=-1) for t in (q, k))
    return torch.fft.irfft(q * torch.conj(k), dim=-1)


def shifted(x):
    z = torch.fft.fftshift(torch.fft.fftn(x, dim=(-2, -1)), dim=(-2, -1))
    return z.sum(0).mean(-1, keepdim=True).angle() + z[0].flip(0).real


CASES = {
    "mixing": (Of(lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real), [(2, 8, 6)]),
    "ortho": (Of(lambda x: torch.fft.fft2(x, norm="ortho").imag), [(2, 8, 6)]),
    "spectral": (Spectral(), [(2, 3, 8, 8)]),
    "convolution": (Of(long_convolution), [(2, 3, 8), (3, 8)]),
    "spectrogram": (Of(spectrogram), [(2, 64)]),
    "correlation": (Of(correlation), [(2, 10, 4), (2, 10, 4)]),
    "shifted": (Of(shifted), [(3, 6, 6)]),
    "product": (Of(lambda x, y: (torch.fft.fft(x) @ torch.fft.fft(y).mT).abs()), [(3, 4), (5, 4)]),
    "real factor": (Of(lambda x, y: torch.bmm(torch.fft.fft(x), y.to(torch.cfloat)).real), [(2, 3, 4), (2, 4, 5)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_module_with_transforms_is_traced(name):
    module, shapes = CASES[name]
    x = tuple(torch.randn(s) for s in shapes)
    traced = trace_module(module, x)
    assert not any("complex" in v["dtype"] for v in traced.graph["values"])
    for given in (x, tuple(2 - t.flip(0) for t in x)):
        values = Executor(traced.graph).run_all({**traced.flatten(given), **traced.state()})
        torch.testing.assert_close(values[traced.graph["outputs"][0]], module(*given))


@pytest.mark.parametrize("dims", [[1], [0, 1], [2, 0], [0, 1, 2]])
def test_results_lie_as_compilers_are_told(dims):
    """torch's own rule says otherwise for some of these, and compiled code reads what it was told."""
    x = torch.randn(4, 6, 8)

    def there_and_back(x):
        z = transforms.fft_r2c(x, dims, 0, True)
        z = transforms.fft_c2c(z * 2, dims[:1], 1, True)
        return z.relu(), transforms.fft_c2r(z, dims, 2, x.shape[dims[-1]]) + 1

    with torch._subclasses.FakeTensorMode() as mode:
        told = there_and_back(mode.from_tensor(x))
    made = there_and_back(x)
    compiled = torch.compile(there_and_back)(x)
    for fake, real, run in zip(told, made, compiled, strict=True):
        assert (fake.shape, fake.stride()) == (real.shape, real.stride())
        torch.testing.assert_close(run, real)


def test_parts_that_do_not_lie_in_pairs_are_copied():
    pairs = torch.randn(2, 4, 3)
    want = torch.view_as_real(torch.fft.fft(torch.complex(pairs[0], pairs[1]), dim=0))
    torch.testing.assert_close(transforms.fft_c2c(pairs.permute(1, 2, 0), [0], 0, True), want)


def test_what_no_parts_express_is_refused_by_its_place():
    with pytest.raises(Error) as raised:
        trace_module(Of(lambda x: torch.fft.fft(x).tanh().real), (torch.randn(4),))
    d = raised.value.diagnostic
    assert d["code"] == "TS0202" and "`tanh`" in d["message"] and "test_transforms.py" in d["message"]
