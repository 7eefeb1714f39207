"""What CONTRIBUTING.md promises: a rule with a library's call, a pointwise function with the ATen op that it is, and a
realizer are one new file and its test each, an ATen op is a line.

The folders beside this file hold such files at the places that the recipes name. A copy of the tree gets them and nothing
else, is built as the program under test was (the compiler's cache has all that did not change), and each addition is
found, matched, realized and verified.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

if not os.environ.get("TESSERA_TEST_ALL"):
    pytest.skip("builds the program again, a minute or two: under TESSERA_TEST_ALL=1", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BINARY = Path(os.environ.get("TESSERA_BINARY", ROOT / "build/bin/tessera"))
PARTS = ("CMakeLists.txt", "cmake", "src", "include", "kernels", "python", "knowledge", "tools/units.py")
ADDED = {
    "rule": [
        "src/rules/log_cumsum_exp.cpp",
        "src/rules/log_cumsum_exp_reference.py",
        "src/rules/log_cumsum_exp_test.cpp",
    ],
    "function": ["src/pointwise/functions/xlogy.cpp", "src/pointwise/xlogy_test.cpp"],
    "realizer": ["src/realize/plain_product.cpp", "src/realize/plain_product_test.cpp"],
}
FAMILY, LINE = "src/graph/ops/gather.cpp", '    {"aten.bucketize", OpKind::gather},\n'

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(24, 48) / 7)
        self.register_buffer("edges", torch.linspace(0, 1, 5))

    def forward(self, x, y):
        sums = torch.xlogy(x, y).exp().cumsum(1).log()
        return sums @ self.weight.t(), torch.bucketize(y, self.edges)

def get_inputs():
    return [torch.rand(256, 48), torch.rand(256, 48) + 0.1]
"""


@dataclass
class Tree:
    root: Path

    @property
    def build(self) -> Path:
        return self.root / "build"

    def environment(self, home: Path) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{self.root / 'python'}:{self.root / 'python/tests'}",
            "TESSERA_PYTHONPATH": str(self.root / "python"),
            "TESSERA_RULES_TOOL": str(self.build / "src/rules/tools/rules_tool"),
            "TESSERA_PYTHON": sys.executable,
            "TESSERA_HOME": str(home),
            "OMP_WAIT_POLICY": "passive",
        }


def run(*command, **options) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=900, **options)
    if done.returncode != 0:
        pytest.fail(
            f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}", pytrace=False
        )
    return done.stdout


def build_of_the_program() -> Path:
    build = next((p for p in BINARY.resolve().parents if (p / "CMakeCache.txt").exists()), None)
    if build is None or not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("the program is of no build folder, or there is no cmake")
    return build


def options_of_the_build() -> list[str]:
    """What the program under test was configured with, so that the compiler's cache knows the objects."""
    build = build_of_the_program()
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
    kept = (
        "CMAKE_BUILD_TYPE",
        "CMAKE_CXX_FLAGS",
        "CMAKE_CXX_COMPILER",
        "TESSERA_SANITIZE",
        "TESSERA_UNITY",
        "TESSERA_WERROR",
    )
    return [f"-D{name}={cache[name]}" for name in kept if name in cache]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Tree:
    root = tmp_path_factory.mktemp("recipes") / "tree"
    root.mkdir()
    skip = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        source = ROOT / part
        (root / part).parent.mkdir(exist_ok=True)
        shutil.copytree(source, root / part, ignore=skip) if source.is_dir() else shutil.copy(source, root / part)
    for recipe, files in ADDED.items():
        assert sorted(str(p.relative_to(HERE / recipe)) for p in (HERE / recipe).rglob("*.*")) == files
        for file in files:
            assert not (root / file).exists()
            shutil.copy(HERE / recipe / file, root / file)
    text = (root / FAMILY).read_text()
    assert "bucketize" not in text
    (root / FAMILY).write_text(text.replace("records[] = {\n", "records[] = {\n" + LINE))

    made = Tree(root)
    env = {**os.environ, "CCACHE_DEPEND": "1"}
    # The units of the others stay as they are, so that the compiler's cache knows them.
    if (build_of_the_program() / "units").exists():
        shutil.copytree(build_of_the_program() / "units", made.build / "units")
    options = options_of_the_build()
    run("cmake", "-S", root, "-B", made.build, "-G", "Ninja", *options, env=env)
    run("ninja", "-C", made.build, "bin/tessera", "rules_tool", "rules_test", "pointwise_test", "realize_test", env=env)
    return made


@pytest.fixture(scope="module")
def report(tree, tmp_path_factory) -> dict:
    """One module that has a place for each of them, optimized on the host."""
    home = tmp_path_factory.mktemp("home")
    (home / "model.py").write_text(MODEL)
    options = ["--effort", "quick", "--peers", "eager", "--ablation", "false", "--dump", home / "stages"]
    env = tree.environment(home)
    out = run(
        tree.build / "bin/tessera",
        "optimize",
        home / "model.py",
        *options,
        "-o",
        home / "out",
        "--json",
        env=env,
        cwd=home,
    )
    found = json.loads(out)["report"]
    assert found["verification"]["ok"] is True, found["verification"]
    return found | {"stages": home / "stages"}


def unit_tests(tree: Tree, program: str, added: str, home: Path, others: str = "*") -> None:
    """The tests that came along pass, and the others still do."""
    out = run(tree.build / "src" / program, f"--gtest_filter={added}:{others}", env=tree.environment(home))
    assert f"[ RUN      ] {added.rstrip('*')}" in out, out[-3000:]


def timed(patterns: list[dict]) -> set[str]:
    """The realizers whose candidates were timed, which they are after they were verified against fp64."""
    trials = [t for p in patterns for t in p.get("tuning", {}).get("trials", [])]
    return {t["label"].split()[0] for t in trials if t["outcome"] == "measured" and t["ms"] > 0}


def test_a_rule_with_a_librarys_call(tree, report, tmp_path):
    unit_tests(tree, "rules_test", "LogCumsumExp.*", tmp_path)
    (pattern,) = (p for p in report["patterns"] if p["rule"] == "log_cumsum_exp")
    assert timed([pattern]) == {"library_aten", "library_op"}
    # Its body, as every rule's, is held to the nodes that it covers.
    script = """
import torch
from bodies import check
class Module(torch.nn.Module):
    def forward(self, x):
        return x.t().exp().cumsum(0).log() + 1
assert len(check(Module(), torch.randn(5, 7))["log_cumsum_exp"]) == 1
"""
    run(sys.executable, "-c", script, env=tree.environment(tmp_path))


def test_a_pointwise_function_with_its_import(tree, report, tmp_path):
    unit_tests(tree, "pointwise_test", "Xlogy.*", tmp_path)
    assert "tile_pointwise" in timed([p for p in report["patterns"] if "xlogy" in p["summary"]])
    script = """
import torch
from bodies import check
class Module(torch.nn.Module):
    def forward(self, x, y):
        return torch.xlogy(x, y) * 2
found = check(Module(), torch.tensor([0.0, 0.5, 2.0]), torch.tensor([0.0, 3.0, float("nan")]))
assert "xlogy(%0, %1)" in found["pointwise"][0]["body"]["groups"][0]["dag"]
"""
    run(sys.executable, "-c", script, env=tree.environment(tmp_path))


def test_a_realizer(tree, report, tmp_path):
    # The tests that compile kernels take a minute.
    unit_tests(tree, "realize_test", "PlainProduct.*", tmp_path, others="*-*Compile*:Tile*:*RunsOnHost*")
    assert "plain_product" in timed([p for p in report["patterns"] if p["rule"] == "gemm"])


def test_an_op(report):
    discovery = json.loads(next(report["stages"].glob("*discovery.json")).read_text())
    assert {u["op"]: u["kind"] for u in discovery["uncovered"]} == {"aten.bucketize.Tensor": "gather"}
