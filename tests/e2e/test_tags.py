"""Tags and assertions: what they find in kernel files, and that compiled kernels are the same, byte by byte, without them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from core import BINARY, ROOT, environment

SAYS = {
    "gemm": [
        (
            "    steps = ring(K, BK, STAGES)\n",
            [
                "tag(A, row=lambda batch, i, k: i, k=lambda batch, i, k: k)",
                "tag(B, column=lambda batch, j, k: j, k=lambda batch, j, k: k)",
            ],
        ),
        ("                        begins = k.first\n", ['assert_same(a[k], b[k], "k", axis=1)']),
        (
            "                                x = epilogue(whole[:, c], batch, rows, n[c])\n",
            ["assert_tag(whole[:, c], row=lambda i, j: rows.start + i, column=lambda i, j: n[c].start + j)"],
        ),
    ],
    "attention": [
        (
            "    # All tiles of SECTION heads",
            [
                "tag(Q, query=lambda batch, head, i, d: i, depth=lambda batch, head, i, d: d)",
                "tag(K, key=lambda batch, head, j, d: j, depth=lambda batch, head, j, d: d)",
                "tag(V, key=lambda batch, head, j, e: j, column=lambda batch, head, j, e: e)",
            ],
        ),
        (
            "                wgmma.fence()\n                wgmma(q[work.turn], k[step].T",
            ['assert_same(q[work.turn], k[step], "depth", axis=1)'],
        ),
        (
            "                    wgmma.fence()\n                    wgmma(powers, v[step - 1].T",
            ['assert_same(powers, v[step - 1], "key", axis=1)'],
        ),
        (
            '            sync("warpgroup")  # the products of all four',
            ["assert_tag(result, query=lambda i, e: queries.start + i, column=lambda i, e: e)"],
        ),
        ("    shift = registers(f32, most.shape, like=scores)\n", ['reset_tags(most, "key")']),
    ],
}
SMALL = ["BM=64", "BN=64", "BK=16", "STAGES=2"]
VARIANTS = [
    ("gemm", SMALL),
    ("gemm", ["BM=256", "ROWS=128", "BN=128", "CLUSTER=2", "DIRECT=1", "RESULT=f32"]),
    ("gemm", ["BATCHES=1", "A_BATCHES=1", "A_ORDER=2", "B_ORDER=2", "TURNS=2", "BN=128"]),
    ("attention", ["D=64", "KEYS=64", "GROUPS=1", "TURNS=0"]),
    ("attention", ["CAUSAL=1", "LEFT=256"]),
]
NVCC = os.environ.get("TESSERA_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def run(home: Path, *words: object) -> subprocess.CompletedProcess:
    command = [BINARY, *map(str, words)]
    return subprocess.run(command, env=environment(home), cwd=home, capture_output=True, text=True, timeout=300)


def lowered(home: Path, file: Path, constants: list[str]) -> str:
    done = run(home, "lower", file, *(word for c in constants for word in ("--set", c)))
    assert done.returncode == 0, done.stderr
    return done.stdout


def tagged(home: Path, name: str) -> Path:
    """The kernel of that name, with tags and assertions in front of the lines of SAYS."""
    text = (ROOT / f"kernels/{name}.py").read_text()
    for before, said in SAYS[name]:
        assert text.count(before) == 1, before
        indent = before[: len(before) - len(before.lstrip())]
        text = text.replace(before, "".join(f"{indent}{line}\n" for line in said) + before)
    file = home / f"tagged_{name}.py"
    file.write_text(text)
    return file


def code(cuda: str) -> str:
    """Without the author's lines, which have other numbers."""
    return re.sub(r"^ *//.*\n", "", cuda, flags=re.MULTILINE)


@pytest.mark.parametrize(("name", "constants"), VARIANTS)
def test_lowering_writes_nothing_for_them(tmp_path, name, constants):
    said = lowered(tmp_path, tagged(tmp_path, name), constants)
    plain = lowered(tmp_path, ROOT / f"kernels/{name}.py", constants)
    assert "wgmma" in code(plain) and code(said) == code(plain)


@pytest.mark.skipif(not Path(NVCC).exists(), reason="no nvcc on this machine")
@pytest.mark.parametrize(("name", "constants"), [VARIANTS[0], VARIANTS[3]])
def test_machine_code_is_the_same_byte_by_byte(tmp_path, name, constants):
    cubins = []
    for file in (ROOT / f"kernels/{name}.py", tagged(tmp_path, name)):
        source = tmp_path / "kernel.cu"
        source.write_text(lowered(tmp_path, file, constants))
        cubin = tmp_path / "kernel.cubin"
        command = [NVCC, "-cubin", "-arch=sm_90a", "-std=c++17", "-O3", "-DTESSERA_DEVICE_SIDE=1", f"-I{ROOT}/include"]
        done = subprocess.run([*command, source, "-o", cubin], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        cubins.append(cubin.read_bytes())
    assert len(cubins[0]) > 4096 and cubins[0] == cubins[1]


def edited(home: Path, *edits: tuple[str, str]) -> Path:
    text = tagged(home, "gemm").read_text()
    for what, by in edits:
        assert text.count(what) == 1, what
        text = text.replace(what, by)
    file = home / "edited.py"
    file.write_text(text)
    return file


def finding(home: Path, file: Path) -> dict:
    done = run(home, "check", file, *(word for c in SMALL for word in ("--set", c)), "--json")
    report = json.loads(done.stdout)
    assert report["coverage"]["assertions"]["all"] == 3
    return next(f for f in report["findings"] if f["kind"] == "tags")


def test_what_is_asserted_of_the_product_is_proved_and_counted(tmp_path):
    done = run(tmp_path, "check", tagged(tmp_path, "gemm"), "--json")
    report = json.loads(done.stdout)
    assert report["verdict"] == "proved", done.stdout
    assert report["coverage"] == {
        "stores": {"all": 1, "proved": 1},
        "loads": {"all": 2, "untagged": 0},
        "assertions": {"all": 3, "proved": 3},
    }
    done = run(tmp_path, "check", ROOT / "kernels/gemm.py")
    assert "0 of 0 assertions" in done.stdout


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="under TESSERA_TEST_ALL=1")
def test_operands_of_different_k_are_refuted_and_replayed(tmp_path):
    load = "tma.load(B[batch.index, n, k], b[k]"
    found = finding(tmp_path, edited(tmp_path, (load, "tma.load(B[batch.index, n, k + 1], b[k]")))
    assert found["verdict"] == "refuted", found
    d = found["diagnostics"][0]
    assert d["code"] == "TS0886" and d["data"]["replayed"] == "same" and d["data"]["seen"] == "TS0887", d
    labels = " ".join(label["text"] for label in d["labels"])
    assert "`B` is loaded here" in labels and "`k` of `B` is said here" in labels, labels


def test_an_assertion_of_another_element_names_it(tmp_path):
    found = finding(tmp_path, edited(tmp_path, ("i, j: rows.start + i", "i, j: rows.start + i + 1")))
    d = found["diagnostics"][0]
    assert (found["verdict"], d["data"]["replayed"]) == ("refuted", "same"), d
    assert d["message"] == "an element carries another `row` than is asserted" and "[0, 0]" in d["expected"]
    assert any("lane 0" in note for note in d["notes"])
