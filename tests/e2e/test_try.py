"""One kernel by hand for one pattern: a skeleton passes as it is, and what is wrong with a wrong one is said."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from core import ROOT, tessera

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(48, 40)
        self.norm = nn.LayerNorm(40)

    def forward(self, x):
        return self.norm(torch.nn.functional.gelu(self.linear(x)))


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(67, 48)]
"""

# What is replaced in the skeleton of gelu(x W^T + b), the class of the failure, the symptom that must be named, and what
# else the verdict says. Those that are marked `all` run under TESSERA_TEST_ALL=1: each takes some ten seconds.
EPILOGUE = "store(&t3[i1 * 40 + i2], e3)"
STORES = {  # a skeleton has those of its own tensors
    "double* t3": "FN void store(double* to, float v) { *to = v; }\n",
    "f16* t3": "using f16 = _Float16;\nFN void store(f16* to, float v) { *to = f16(v); }\n",
}
BEGIN = "(void)workspace, (void)stream;"
WRONG = {
    "off_by_one": ("Index k = 0", "Index k = 1", "wrong_result", "everything is wrong by different amounts", {}),
    "crash": (BEGIN, "*(volatile int*)8 = 1;", "crash", "the process died", {}),
    "does_not_compile": (EPILOGUE, "stor(e3)", "does_not_compile", "the compiler does not know a name", {}),
    "all_hang": (BEGIN, "for (volatile int go = 1; go;) {}", "hang", "the kernel does not end", {}),
    "all_missing_rows": (
        "item < 2680",
        "item < 2640",
        "incomplete",
        "part of the end is missing or wrong",
        {"lies": "tail of rows"},
    ),
    "all_missing_columns": (
        EPILOGUE,
        "if (i2 < 32) " + EPILOGUE,
        "incomplete",
        "elements were never written",
        {"lies": "tail of columns"},
    ),
    "all_wrong_columns": (
        EPILOGUE,
        EPILOGUE.replace("e3", "i2 < 32 ? e3 : e2"),
        "wrong_result",
        "part of the end is missing or wrong",
        {},
    ),
    "all_transposed": (
        EPILOGUE,
        EPILOGUE.replace("i1 * 40 + i2", "i2 * 67 + i1"),
        "wrong_result",
        "the result is transposed",
        {},
    ),
    "all_shifted": (
        EPILOGUE,
        EPILOGUE.replace("i1 * 40 + i2", "(i1 * 40 + i2 + 1) % 2680"),
        "wrong_result",
        "the result is shifted",
        {},
    ),
    "all_scaled": (
        EPILOGUE,
        EPILOGUE.replace("e3", "2 * e3"),
        "wrong_result",
        "the result is a multiple of what it must be",
        {},
    ),
    "all_zero": (EPILOGUE, EPILOGUE.replace("e3", "0 * e3"), "wrong_result", "the result is zero", {}),
    "all_other_row": (
        EPILOGUE,
        EPILOGUE.replace("e3", "i1 % 8 == 3 ? e2 : e3"),
        "wrong_result",
        "whole rows are wrong",
        {"lies": "every n-th"},
    ),
    "all_coarse": (
        EPILOGUE,
        EPILOGUE.replace("e3", "tsr_as_float(tsr_as_uint(e3) & 0xffff0000u)"),
        "wrong_result",
        "the errors are those of a coarser type",
        {},
    ),
    "all_double": ("float* t3", "double* t3", "out_of_bounds", "the output holds another element type", {}),
    "all_half": ("float* t3", "f16* t3", "incomplete", "the output holds another element type", {}),
    "all_beside": (BEGIN, "t3[2680] = 1;", "out_of_bounds", "bytes beside a tensor were written", {}),
    "all_nan_lost": (
        EPILOGUE,
        EPILOGUE.replace("e3", "e3 == e3 ? e3 : 0"),
        "non_finite",
        "infinities or NaN differ from PyTorch's",
        {},
    ),
    "all_input": (BEGIN, "const_cast<float*>(t0)[0] += 1;", "input_modified", "an input was modified", {}),
    # Cheats: the same for all inputs, and nothing at all.
    "all_constant": (
        EPILOGUE,
        EPILOGUE.replace("e3", "0.25f"),
        "wrong_result",
        "every element of the result is the same",
        {},
    ),
    "all_nothing": ("item < 2680", "item < 0", "incomplete", "elements were never written", {}),
    "all_no_contract": (
        "int tessera_run(",
        "int tessera_walk(",
        "not_loadable",
        "the library has not the contract's functions",
        {},
    ),
    "all_reads_beside": (
        BEGIN,
        "volatile float x = t0[67 * 48 + 4]; (void)x;",
        "invalid_access",
        "the sanitizer names an invalid access",
        {},
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("try")
    (folder / "model.py").write_text(MODEL)
    return folder


@pytest.fixture(scope="module")
def skeleton(home) -> str:
    done = tessera(home, "try", "model.py", "p01", "--skeleton")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert written["schema"] == "tessera.skeleton/1" and written["ending"] == ".cpp"
    return written["text"]


def judged(home: Path, name: str, text: str, *more: str, pattern: str = "p01", code: int | None = None) -> dict:
    (home / name).write_text(text)
    done = tessera(home, "try", "model.py", pattern, "--source", name, "--peers", "eager", *more)
    verdict = json.loads(done.stdout)
    assert verdict["schema"] == "tessera.verdict/1", verdict
    assert done.returncode == (code if code is not None else 0 if verdict["passed"] else 1), done.stderr
    return verdict


def test_a_skeleton_passes_as_it_is_and_is_known_the_second_time(home, skeleton):
    first = judged(home, "same.cpp", skeleton)
    assert first["passed"] and first["reached"] == "measure" and not first["known"]
    passages = {g["gate"]: g["passage"] for g in first["gates"]}
    assert passages["verify"] == "passed" and passages["check"] == "skipped"
    assert first["measured"]["ms"] > 0 and [p["name"] for p in first["measured"]["peers"]] == ["eager"]
    if first["reliable"]:
        again = judged(home, "copy.cpp", skeleton)
        assert again["known"] and again["source"] == "copy.cpp"
        assert again["measured"] == first["measured"]


def test_what_wins_is_stored_with_its_file_and_tunables_are_swept(home):
    text = json.loads(tessera(home, "try", "model.py", "p02", "--skeleton").stdout)["text"]
    loop = "#pragma omp parallel for\n"
    text = text.replace(loop, "#pragma omp parallel for schedule(static, ROWS)\n")
    verdict = judged(home, "rows.cpp", "// tunable: ROWS = 67, 8\n" + text, pattern="p02")
    assert [v["tunables"] for v in verdict["variants"]] == [{"ROWS": 67}, {"ROWS": 8}]
    assert all(v["ms"] > 0 for v in verdict["variants"])
    if not verdict["won"]:
        pytest.skip("the machine is too busy for a small kernel to win: " + verdict["standing"])
    listed = json.loads(tessera(home, "registry", "list", "realizer=by_hand rule=row_norm").stdout)
    assert len(listed["entries"]) == 1
    shown = json.loads(tessera(home, "registry", "show", listed["entries"][0]["hash"]).stdout)
    assert "rows.cpp" in json.dumps(shown)
    done = tessera(
        home, "optimize", "model.py", "--effort", "quick", "--seconds", "5", "--peers", "eager", "--place-all"
    )
    assert done.returncode == 0, done.stderr
    assert "by_hand rows.cpp" in done.stdout


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_classified(home, skeleton, name):
    if name.startswith("all_") and not os.environ.get("TESSERA_TEST_ALL"):
        pytest.skip("under TESSERA_TEST_ALL=1")
    old, new, failure, symptom, more = WRONG[name]
    assert old in skeleton
    # The contract and the head stay; only the last place is the loop or the store.
    at = (
        skeleton.rindex(old)
        if name not in ("off_by_one", "all_no_contract")
        else skeleton.index(old, skeleton.index("FN void elements"))
    )
    text = skeleton[:at] + new + skeleton[at + len(old) :]
    if "* t3" in old:
        text = skeleton.replace("float* t3", new).replace(
            "static_cast<float*>(launch->tensors[3])", f"static_cast<{new.split('*')[0]}*>(launch->tensors[3])"
        )
        text = text.replace("FN void elements", STORES[new] + "FN void elements", 1)
    if name == "all_double":  # no further than the guard reaches
        text = text.replace(EPILOGUE, "if (i1 < 40) " + EPILOGUE)
    verdict = judged(home, f"{name}.cpp", text, "--limit", "8")
    assert verdict["failure"] == failure, verdict
    assert symptom in [a["symptom"] for a in verdict["advice"]], verdict
    for key, value in more.items():
        assert verdict["wrong"][key] == value, verdict["wrong"]
    if failure in ("crash", "does_not_compile", "invalid_access"):
        assert text.splitlines()[verdict["place"]["line"] - 1].find(new.split("(")[0].split(";")[0]) >= 0
    if failure == "wrong_result":
        wrong = verdict["wrong"]
        assert wrong["count"] > 0 and wrong["expected"] != wrong["found"] and len(wrong["index"]) == 2


def test_what_cannot_be_judged_is_refused_with_what_to_do(home, skeleton):
    (home / "k.cpp").write_text("// tunable: TILE\n" + skeleton)
    (home / "k.cu").write_text(skeleton)
    (home / "k.txt").write_text(skeleton)
    cases = {
        "TS0001": ("--source", "none.cpp"),
        "TS0049": ("--source", "k.cpp"),
        "TS0050": ("--source", "k.txt"),
        "TS0052": ("--source", "k.cu"),
        "TS0055": (),
    }
    for code, arguments in cases.items():
        done = tessera(home, "try", "model.py", "p01", *arguments)
        assert done.returncode == 3, (code, done.stdout)
        refused = json.loads(done.stdout)
        assert refused["code"] == code and (refused.get("help") or refused.get("expected"))
    done = tessera(home, "try", "model.py", "p99", "--skeleton")
    assert done.returncode == 3 and json.loads(done.stdout)["code"] == "TS0051"


BLOCK = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(64)
        self.qkv = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64, bias=False)
        self.gate = nn.Linear(64, 96, bias=False)
        self.up = nn.Linear(64, 96, bias=False)
        self.down = nn.Linear(96, 64, bias=False)

    def forward(self, x):
        q, k, v = (t.view(2, 33, 4, 16).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(x.shape))
        x = x + self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))
        return torch.tanh(torch.sin(x) * torch.exp(x)).softmax(-1), (x * x).sum(-1)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 33, 64)]
"""


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="under TESSERA_TEST_ALL=1")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_rule_has_a_skeleton_that_is_right(tmp_path, precision):
    (tmp_path / "block.py").write_text(BLOCK)
    options = ("--precision", precision)
    found = json.loads(tessera(tmp_path, "discover", "block.py", *options).stdout)["patterns"]
    first = {p["rule"]: p["id"] for p in reversed(found)}
    assert {"gemm", "row_norm", "attention", "gated_mlp"} <= set(first)
    for rule, pattern in first.items():
        text = json.loads(tessera(tmp_path, "try", "block.py", pattern, "--skeleton", *options).stdout)["text"]
        (tmp_path / f"{rule}.cpp").write_text(text)
        done = tessera(tmp_path, "try", "block.py", pattern, "--source", f"{rule}.cpp", "--peers", "eager", *options)
        verdict = json.loads(done.stdout)
        assert verdict["passed"], (rule, verdict)
        assert not verdict["warnings"], (rule, verdict["warnings"])


CAPPED = """
import torch


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        i = torch.arange(40)
        far = (i[None, :] > i[:, None]) | (i[None, :] < i[:, None] - 8)
        scores = torch.tanh((q @ k.transpose(-1, -2)) * 0.25 / 3.0) * 3.0
        return torch.softmax(scores.masked_fill(far, float("-inf")), -1) @ v


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(1, 4, 40, 16) for _ in range(3)]
"""


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="under TESSERA_TEST_ALL=1")
def test_the_skeleton_of_capped_scores_in_a_window_is_right(tmp_path):
    (tmp_path / "capped.py").write_text(CAPPED)
    patterns = json.loads(tessera(tmp_path, "discover", "capped.py").stdout)["patterns"]
    (found,) = [p for p in patterns if p["rule"] == "attention"]
    assert found["summary"].endswith("band -8..0, capped at 3")
    text = json.loads(tessera(tmp_path, "try", "capped.py", found["id"], "--skeleton").stdout)["text"]
    (tmp_path / "k.cpp").write_text(text)
    done = tessera(tmp_path, "try", "capped.py", found["id"], "--source", "k.cpp", "--peers", "eager")
    verdict = json.loads(done.stdout)
    assert verdict["passed"], verdict


ON_A_GPU = ("attention",) if not os.environ.get("TESSERA_TEST_ALL") else ("gemm", "row_norm", "attention", "gated_mlp")


@pytest.mark.parametrize("rule", ON_A_GPU)
def test_skeletons_for_a_gpu_compile(tmp_path, rule):
    (tmp_path / "block.py").write_text(BLOCK)
    options = ("--precision", "bf16", "--arch", "sm_90a")
    found = json.loads(tessera(tmp_path, "discover", "block.py", *options).stdout)["patterns"]
    pattern = next(p["id"] for p in found if p["rule"] == rule)
    text = json.loads(tessera(tmp_path, "try", "block.py", pattern, "--skeleton", *options).stdout)["text"]
    (tmp_path / "k.cu").write_text(text)
    verdict = json.loads(tessera(tmp_path, "try", "block.py", pattern, "--source", "k.cu", *options).stdout)
    assert next(g for g in verdict["gates"] if g["gate"] == "build")["passage"] == "passed", verdict
    assert verdict["failure"] == "unsupported" and not verdict["warnings"], verdict


ROWS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(1024, eps=1e-6)

    def forward(self, x):
        return self.norm(x)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(4, 50, 1024)]
"""


def test_a_kernel_file_is_checked_and_bound_without_a_gpu(tmp_path):
    """No further than the build: the module is on the CPU."""
    (tmp_path / "rows.py").write_text(ROWS)
    text = (ROOT / "kernels/rows.py").read_text()
    options = ("--arch", "sm_90a", "--precision", "bf16")

    def of(name: str, text: str, kernel: str) -> dict:
        (tmp_path / name).write_text(text)
        done = tessera(tmp_path, "try", "rows.py", "p01", "--source", f"{name}:{kernel}", *options)
        verdict = json.loads(done.stdout)
        assert done.returncode == (2 if verdict["failure"] == "unsupported" else 1), done.stderr
        return verdict

    right = of("right.py", text, "rms_norm")
    check = next(g for g in right["gates"] if g["gate"] == "check")
    assert check["passage"] == "skipped" and "meaning is not stated" in check["note"], right
    assert right["failure"] == "unsupported" and right["reached"] in ("build", "verify"), right
    other = of("other.py", text, "scaled_sum")
    assert other["failure"] == "not_the_pattern" and other["diagnostics"][0]["code"] == "TS0054", other
    broken = of("broken.py", text.replace("* scale", "* scales"), "rms_norm")
    assert broken["failure"] == "bad_source" and broken["reached"] == "parse" and broken["place"]["line"] > 0, broken
    bug = (ROOT / "tests/kernels/bugs/fuser_3561_no_wait_before_release.py").read_text()
    name = re.search(r"^def (\w+)\(", bug[bug.index("@kernel") :], re.MULTILINE)[1]
    wrong = of("wrong.py", bug, name)
    assert wrong["failure"] == "refuted" and wrong["reached"] == "check" and wrong["place"]["line"] > 0, wrong
    assert wrong["counterexample"] and wrong["advice"][0]["symptom"] == "the checker shows a wrong schedule", wrong
