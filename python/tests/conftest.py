from __future__ import annotations

import copy
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from composing import Mlp, compile_kernel, mlp_plan  # noqa: E402
from tessera.running.compose import ComposedModule  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory):
    """A cache of the tests' own, so that they neither read nor fill the user's."""
    if "TESSERA_HOME" not in os.environ:
        os.environ["TESSERA_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def _arithmetic():
    """torch's flags as a test found them: the older ones first, because setting them sets the newer ones too."""
    matmul, convolution = torch.backends.cuda.matmul, (torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    older = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    newer = [place.fp32_precision for place in (matmul, *convolution)]
    yield
    torch.set_float32_matmul_precision(older[0])
    torch.backends.cudnn.allow_tf32 = older[1]
    for place, mode in zip((matmul, *convolution), newer, strict=True):
        if place.fp32_precision != mode:
            place.fp32_precision = mode


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The kernels of composing.py, for Mlp."""
    return compile_kernel(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def pair(library):
    """A composed module and a separate copy of the original to compare with."""
    torch.manual_seed(0)
    m = Mlp().eval()
    return ComposedModule(m, mlp_plan(library)), copy.deepcopy(m)
