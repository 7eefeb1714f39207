"""Code that a call does not run is not read: it neither sends a module to parts nor is watched, until what does run asks for it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tessera
import torch
from tessera.running.code_reads import CodeReads, key_of
from tessera.tracing.asked import look
from torch import nn

OPTIONS = dict(seconds=5, effort="quick", progress=False, leftover="eager", place_all=True, resizes=False)
FACTOR, SLOPE = 2.0, 3.0
X = torch.arange(8.0).reshape(2, 4)


def measured(y):
    print(time.time(), file=sys.stderr)
    return y + FACTOR


class Verbose(nn.Module):
    def __init__(self):
        super().__init__()
        self.verbose = False

    def forward(self, x):
        y = torch.softmax(x * 2, -1)
        return measured(y) if self.verbose else y

    def told(self):
        return open(__file__).read()


class Stepped(nn.Module):
    @staticmethod
    def step(x):
        return x * SLOPE

    def forward(self, x):
        return self.step(x)


class Steep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * SLOPE


class OfSteep(nn.Module):
    def forward(self, x):
        return Steep.apply(x)


def test_what_does_not_run_does_not_count(capfd):
    module = Verbose()
    made = tessera.optimize(module, (X,), **OPTIONS)
    assert made.runner == "kernels" and not made._state.code.unseen
    torch.testing.assert_close(made(X), module(X))
    capfd.readouterr()
    module.verbose = True
    assert torch.equal(made(X), module(X)) and made.status()["fallbacks"]
    assert capfd.readouterr().err.count(".") >= 2


def test_without_a_call_all_is_read():
    assert CodeReads(Verbose()).unseen
    assert CodeReads(Verbose(), ran=frozenset()).unseen == []


def test_what_runs_is_known():
    questions, ran = look(Verbose(), (X,), {})
    assert not questions and key_of(Verbose.forward.__code__) in ran and key_of(measured.__code__) not in ran


def test_a_profiler_is_told_and_stays():
    seen = []
    before = sys.getprofile()
    sys.setprofile(profiler := lambda frame, event, argument: seen.append(frame.f_code))
    try:
        look(Verbose(), (X,), {})
        kept = sys.getprofile()
    finally:
        sys.setprofile(before)
    assert kept is profiler and Verbose.forward.__code__ in seen


def test_of_compiled_code_nothing_is_known():
    module = nn.Sequential(Verbose())
    module[0].forward = torch.compile(module[0].forward, backend="eager")
    assert look(module, (X,), {})[1] is None


@pytest.mark.parametrize("kind", [OfSteep, Stepped])
def test_what_gradients_run_and_static_methods_are_read(kind):
    module = kind()
    ran = look(module, (X,), {})[1]
    found = CodeReads(module, ran=ran)
    assert found.changed() is None
    globals()["SLOPE"] = 4.0
    try:
        assert "SLOPE" in found.changed()
    finally:
        globals()["SLOPE"] = 3.0


def test_a_hook_of_a_library_reads_the_mode():
    torch.manual_seed(0)
    module, like = (nn.utils.spectral_norm(nn.Linear(8, 8)) for _ in range(2))
    like.load_state_dict(module.state_dict())
    x = torch.randn(4, 8)
    made = tessera.optimize(module, (x,), **OPTIONS)
    for mode in (True, False, True, False):
        module.train(mode), like.train(mode)
        torch.testing.assert_close(made(x), like(x))
        torch.testing.assert_close(module.weight_u, like.weight_u)


def test_a_sentinel_is_what_it_is():
    module = nn.Identity()
    module.nothing = object()
    module.forward = lambda x: x if getattr(module, "nothing", None) is None else x * 2
    assert not [what for what in CodeReads(module).unseen if "nothing" in what]


class Asking(nn.Module):
    def forward(self, x):
        return x.softmax(-1) * self.__dict__.get("late", 1.0)


class Answering(nn.Module):
    def __getattribute__(self, name):
        return (
            object.__getattribute__(self, "__dict__").get("late", 1.0)
            if name == "scale"
            else super().__getattribute__(name)
        )

    def forward(self, x):
        return x.softmax(-1) * self.scale


@pytest.mark.parametrize("kind", [Asking, Answering])
def test_what_a_dictionary_has_not_is_asked(kind):
    module = kind()
    made = tessera.optimize(module, (X,), **OPTIONS)
    torch.testing.assert_close(made(X), module(X))
    module.late = 3.0
    torch.testing.assert_close(made(X), X.softmax(-1) * 3)


def test_what_hooks_hold_is_watched():
    torch.manual_seed(0)
    module = nn.utils.spectral_norm(nn.Linear(8, 8))
    made = tessera.optimize(module, (torch.randn(4, 8),), **OPTIONS)
    (hook,) = module._forward_pre_hooks.values()
    assert made._state.code.changed() is None
    hook.n_power_iterations = 5
    assert "n_power_iterations" in made._state.code.changed()


def test_parameters_can_be_swapped():
    module, x = nn.Linear(8, 8), torch.randn(2, 8)
    with torch.no_grad():
        made = tessera.optimize(module, (x,), **OPTIONS)
        made(x)
        torch.utils.swap_tensors(module.weight, nn.Parameter(torch.ones(8, 8)))
        torch.testing.assert_close(made(x), module(x))


def test_leaves_that_forward_makes_are_no_graphs():
    class Made(nn.Module):
        def forward(self, x):
            return nn.Parameter(x * 2), x.detach().clone().requires_grad_()

    with torch.no_grad():
        made = tessera.optimize(Made(), (X,), **OPTIONS)
        parameter, leaf = made(X)
    assert type(parameter) is nn.Parameter and parameter.requires_grad and leaf.requires_grad


_FROM_SOURCE = """
import torch
from tessera.running.code_reads import of_library
from tessera.tracing.asked import refuse_unseen
from transformers.models.gpt2.modeling_gpt2 import GPT2Block, GPT2Config
from transformers.models.roberta.modeling_roberta import RobertaConfig, RobertaLayer

small = dict(hidden_size=32, num_attention_heads=4)
gpt2 = GPT2Block(GPT2Config(n_embd=32, n_head=4), layer_idx=0).eval()
roberta = RobertaLayer(RobertaConfig(intermediate_size=64, **small)).eval()
for module in (gpt2, roberta):
    assert not of_library(type(module).__module__)
    with torch.no_grad():
        refuse_unseen(module, (torch.randn(2, 8, 32),), {})
"""


def test_a_library_in_a_source_folder_is_one_graph(tmp_path):
    """As an editable install or a monorepo has it: its code is the user's, with all that it reads."""
    found = importlib.util.find_spec("transformers")
    if found is None:
        pytest.skip("transformers is not installed")
    (tmp_path / "transformers").symlink_to(Path(found.origin).parent)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", _FROM_SOURCE],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
