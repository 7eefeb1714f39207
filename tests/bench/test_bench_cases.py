"""What the suites measure: the fixed list against its rule, and the reader of task files."""

import hashlib
import re

import places  # noqa: F401  isort: skip
import pytest
import torch
from cases import anytime, breadth, kernelbench, layers
from suites import anytime as anytime_suite
from suites import mutations

TASK = """
import torch
from torch import nn

WIDTH = {width}

class Model(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.drop = nn.Dropout(0.5)
        self.factor = factor

    def forward(self, x):
        return self.drop(self.linear(x)) * self.factor

def get_inputs():
    return [torch.rand(3, WIDTH)]

def get_init_inputs():
    return [WIDTH, 2.0]
"""


def test_the_tasks_are_every_nth_of_the_clean_set():
    assert sum(len(breadth.clean(level)) for level in (1, 2, 3)) == 223
    assert [len(breadth.clean(level)) for level in (1, 2, 3)] == [87, 91, 45]
    chosen = {level: [t.number for t in breadth.TASKS if t.level == level] for level in (1, 2, 3)}
    assert chosen == {level: breadth.every_nth(level) for level in (1, 2, 3)}
    assert chosen == {
        1: [14, 33, 49, 63, 77, 92],
        2: [8, 17, 26, 34, 44, 52, 60, 70, 78, 88, 97],
        3: [8, 16, 23, 29, 35, 41, 47],
    }


def test_the_list_is_whole():
    assert len(breadth.CASES) == 32 and len(breadth.LAYERS) == 8
    assert sum(c.products for c in breadth.CASES.values()) == 12
    assert all(len(t.digest) == 12 for t in breadth.TASKS)
    assert all(callable(getattr(layers, layer.name.replace("-", "_"))) for layer in breadth.LAYERS)


@pytest.mark.parametrize(
    ("functions", "is_one"),
    [
        ({"linear", "relu"}, True),
        ({"__matmul__"}, True),
        ({"scaled_dot_product_attention"}, True),
        ({"linear", "conv1d"}, False),
        ({"conv_transpose3d", "matmul"}, False),
        ({"gru", "cumsum"}, False),
    ],
)
def test_products(functions, is_one):
    assert breadth.of_products(functions) is is_one


@pytest.fixture
def files(tmp_path):
    for level, number, width in ((1, 4, 8), (2, 40, 16)):
        place = tmp_path / "tasks" / f"level{level}" / f"{number}_Some_task.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(TASK.format(width=width))
    return tmp_path / "tasks"


def test_a_task_is_read(files, monkeypatch):
    monkeypatch.setenv("KERNELBENCH", str(files))
    root = kernelbench.folder(None)
    for level, number, width in ((1, 4, 8), (2, 40, 16)):
        digest = hashlib.sha256(TASK.format(width=width).encode()).hexdigest()[:12]
        module, draw = kernelbench.make(root, level, number, digest, "cpu")
        assert not module.training and module.linear.weight.shape == (width, width)
        (x,) = draw()
        assert x.shape == (3, width) and not torch.equal(x, draw()[0])
        assert torch.equal(module(x), module.linear(x) * 2.0)


def test_what_a_task_creates_is_on_the_device(files):
    module, draw = kernelbench.make(files, 1, 4, None, "meta")
    assert module.linear.weight.is_meta and draw()[0].is_meta


def test_a_clone_is_a_folder_too(files, tmp_path):
    (tmp_path / "clone").mkdir()
    files.rename(tmp_path / "clone" / "KernelBench")
    assert kernelbench.folder(str(tmp_path / "clone")) == tmp_path / "clone" / "KernelBench"


def test_what_is_missing_is_said(files, monkeypatch):
    monkeypatch.delenv("KERNELBENCH", raising=False)
    with pytest.raises(kernelbench.Missing, match="--kernelbench DIR"):
        kernelbench.folder(None)
    with pytest.raises(kernelbench.Missing, match=r"0 files match .*level1/5_\*\.py"):
        kernelbench.make(files, 1, 5, None, "cpu")
    with pytest.raises(kernelbench.Missing, match="another file than the suite's"):
        kernelbench.make(files, 1, 4, "000000000000", "cpu")


def test_perturbed_layers_have_no_neutral_parameters():
    module = layers.perturbed(torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)))
    assert not module.training and module[0].weight.dtype == torch.bfloat16
    assert len(module[0].weight.unique()) > 1 and len(module[0].bias.unique()) > 1


def test_bert_layer_is_an_encoder_layer():
    ours = anytime.BertLayer(32, 4, 64).eval()
    theirs = torch.nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", 1e-12, batch_first=True).eval()
    torch.nn.init.normal_(ours.query.bias)
    with torch.no_grad():
        for name in ("weight", "bias"):
            merged = torch.cat([getattr(part, name) for part in (ours.query, ours.key, ours.value)])
            getattr(theirs.self_attn, f"in_proj_{name}").copy_(merged)
            getattr(theirs.self_attn.out_proj, name).copy_(getattr(ours.projection, name))
            getattr(theirs.linear1, name).copy_(getattr(ours.expand, name))
            getattr(theirs.linear2, name).copy_(getattr(ours.contract, name))
        x = torch.randn(2, 5, 32)
        torch.testing.assert_close(ours(x), theirs(x))


def test_anytime_lists_its_modules():
    assert anytime.CASES == anytime_suite.CASES
    module, draw = anytime.make("bert-layer", "meta")
    assert draw()[0].shape == (32, 512, 768) and draw()[0].dtype == torch.bfloat16 and not module.training
    with pytest.raises(ValueError, match="no such case"):
        anytime.make("bert", "meta")


def test_all_kernels_with_mutants_are_cases():
    subjects = (places.ROOT / "tests/mutations/subjects.cpp").read_text()
    assert [*re.findall(r'\bof_\w+\(\s*"(\w+)"', subjects), "correct"] == mutations.CASES
