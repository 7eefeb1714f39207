"""Commands on kernel files: what is proved, printed, run and refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from core import BINARY, ROOT, environment

GEMM = ROOT / "kernels/gemm.py"
WAIT = next(line for line in GEMM.read_text().splitlines(keepends=True) if line.strip() == "full[k].wait()")
SMALL = ["--set", "BM=64", "--set", "BN=64", "--set", "BK=16", "--set", "STAGES=2"]
SIZES = ["--size", "M=64", "--size", "N=72", "--size", "K=48"]


def run(home: Path, *words: object, **variables: str) -> subprocess.CompletedProcess:
    command = [BINARY, *map(str, words)]
    return subprocess.run(
        command, env=environment(home, **variables), cwd=home, capture_output=True, text=True, timeout=300
    )


def edited(home: Path, what: str, by: str) -> Path:
    text = GEMM.read_text()
    assert text.count(what) == 1
    file = home / "edited.py"
    file.write_text(text.replace(what, by))
    return file


def test_the_product_is_proved_for_all_sizes(tmp_path):
    done = run(tmp_path, "check", GEMM, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (0, "proved"), done.stdout
    assert {f["verdict"] for f in report["findings"]} == {"proved"}
    assert {"race_shared", "deadlock", "reduction", "placement"} <= {f["kind"] for f in report["findings"]}


def test_the_core_s_text_is_a_kernel_file_too(tmp_path):
    done = run(tmp_path, "lower", GEMM, "--emit", "core")
    assert done.returncode == 0, done.stderr
    (tmp_path / "gemm.py").write_text(done.stdout)
    again = run(tmp_path, "lower", "gemm.py", "--emit", "core")
    assert again.stdout == done.stdout
    assert run(tmp_path, "check", "gemm.py").stdout == run(tmp_path, "check", GEMM).stdout


def test_a_missing_wait_is_refuted_with_its_line(tmp_path):
    file = edited(tmp_path, WAIT, "")
    done = run(tmp_path, "check", file)
    assert done.returncode == 1
    assert "refuted      race_shared" in done.stdout
    load = next(x for x in file.read_text().splitlines() if x.strip().startswith("tma.load(A["))
    line, column = file.read_text().splitlines().index(load) + 1, load.index("tma") + 1
    assert "error[TS0863]" in done.stdout and f"edited.py:{line}:{column}" in done.stdout, done.stdout


def test_a_wrong_meaning_is_refuted(tmp_path):
    file = edited(tmp_path, "C[b, i, j] = sum", "C[b, j, i] = sum")
    done = run(tmp_path, "check", file)
    assert done.returncode == 1 and "refuted      placement" in done.stdout, done.stdout


def test_schedules_agree_and_a_race_shows(tmp_path):
    done = run(tmp_path, "interpret", GEMM, *SMALL, *SIZES, "--schedules", 5)
    assert (done.returncode, done.stdout.split(": ")[-1]) == (0, "nothing found\n"), done.stdout + done.stderr
    file = edited(tmp_path, WAIT, "")
    done = run(tmp_path, "interpret", file, *SMALL, *SIZES, "--schedules", 5)
    assert done.returncode == 1 and "error[TS0842]" in done.stderr and "edited.py" in done.stderr


def test_cuda_is_printed(tmp_path):
    done = run(tmp_path, "lower", GEMM, "--set", "BN=128")
    assert done.returncode == 0
    assert "wgmma.mma_async.sync.aligned.m64n128k16" in done.stdout and "tessera_run" in done.stdout


def nvcc() -> bool:
    """What the engine finds too."""
    return bool(os.environ.get("TESSERA_NVCC") or shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists())


needs_nvcc = pytest.mark.skipif(not nvcc(), reason="no nvcc on this machine")


@needs_nvcc
def test_a_library_is_built_once_with_its_interface(tmp_path):
    done = run(tmp_path, "build", GEMM, *SMALL, "--json", "-o", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    first = json.loads(done.stdout)
    assert (first["schema"], first["verdict"], first["cached"]) == ("tessera.built/1", "proved", False)
    assert {f["verdict"] for f in first["findings"]} == {"proved"} and first["constants"]["BN"] == 64
    assert first["resources"]["spill_bytes"] == 0 and first["resources"]["registers"] > 32
    assert first["shared_bytes"] > 0 and first["seconds"] > 0
    assert [t["extents"] for t in first["interface"]["tensors"]] == [["M", "K"], ["N", "K"], ["M", "N"]]
    assert Path(first["library"]) == tmp_path / "out/gemm.so" and Path(first["library"]).stat().st_size > 1000
    assert "tessera_run" in Path(first["source"]).read_text()
    assert json.loads((tmp_path / "out/gemm.json").read_text()) == first
    again = run(tmp_path, "build", GEMM, *SMALL)
    assert again.returncode == 0 and "proved" in again.stdout and "from the cache" in again.stdout


def test_what_is_left_open_is_run_beside_its_meaning(tmp_path):
    text = (ROOT / "kernels/gemm_slices.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace("P[chunk * AHEAD + u + 1, m, n]", "P[chunk + u + 1, m, n]"))
    done = run(tmp_path, "check", f"{wrong}:reduce")
    assert done.returncode == 1, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "a run shows that the kernel is wrong" in said and re.search(r"found: C\[0, 0\] is -?\d+, not -?\d+", said)


@needs_nvcc
def test_what_is_not_proved_is_built_on_demand_alone(tmp_path):
    rows = f"{ROOT}/kernels/rows.py:rms_norm"
    done = run(tmp_path, "build", rows)
    assert done.returncode == 2 and "error[TS0890]" in done.stderr and "--unproved" in done.stderr
    assert not list(tmp_path.glob("kernels/*/*"))
    done = run(tmp_path, "build", rows, "--unproved", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (0, "unknown")
    assert run(tmp_path, "build", rows).returncode == 2  # although the cache has it


@pytest.mark.parametrize("more", [[], ["--unproved"]])
def test_what_is_refuted_is_never_built(tmp_path, more):
    file = edited(tmp_path, WAIT, "")
    done = run(tmp_path, "build", file, *more, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (1, "refuted") and "library" not in report
    assert "TS0863" in {d["code"] for f in report["findings"] for d in f["diagnostics"]}
    assert not list(tmp_path.glob("kernels/*/*"))


def test_a_missing_compiler_is_told(tmp_path):
    for words in (["build", GEMM], ["lower", GEMM, "--emit", "ptx"], ["lower", GEMM, "--emit", "sass"]):
        done = run(tmp_path, *words, TESSERA_NVCC="/nowhere/nvcc")
        assert done.returncode == 3 and "error[TS0301]" in done.stderr, done.stderr


@needs_nvcc
@pytest.mark.parametrize("command", ["run", "bench"])
def test_what_runs_on_a_gpu_says_that_there_is_none(tmp_path, command):
    done = run(tmp_path, command, GEMM, *SMALL, *SIZES, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 3 and "error[TS0713]" in done.stderr, done.stdout + done.stderr
    done = run(tmp_path, command, GEMM, *SMALL, "--size", "M=many")
    assert done.returncode == 3 and "error[TS0039]" in done.stderr
    done = run(tmp_path, command, f"{ROOT}/kernels/rows.py:rms_norm", "--size", "M=8")
    assert done.returncode == 2 and "error[TS0890]" in done.stderr


@needs_nvcc
def test_ptx_has_the_author_s_lines(tmp_path):
    done = run(tmp_path, "lower", GEMM, *SMALL, "--emit", "ptx")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    product = next(i for i, line in enumerate(lines) if "wgmma.mma_async" in line)
    marks = [line for line in lines[:product] if "kernels/gemm.py:" in line]
    assert "wgmma(a[k, part(h, high)], b[k].T, sums[h], start=begins)" in marks[-1]
    assert ".loc" not in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check", "none.py"], "TS0036"),
        (["check", ROOT / "kernels/rows.py"], "TS0037"),
        (["check", f"{ROOT}/kernels/rows.py:norm"], "TS0037"),
        (["lower", GEMM, "--set", "BM"], "TS0038"),
        (["lower", GEMM, "--set", "BM=100"], "TS0831"),
        (["lower", GEMM, "--set", "BX=64"], "TS0836"),
        (["interpret", GEMM, *SMALL, "--size", "M=64"], "TS0039"),
        (["interpret", GEMM, *SMALL, *SIZES, "--size", "Q=1"], "TS0039"),
        (["interpret", GEMM, *SMALL, "--size", "M=64", "--size", "N=64", "--size", "K=many"], "TS0039"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, words, code):
    done = run(tmp_path, *words)
    assert (done.returncode, f"error[{code}]" in done.stderr) == (3, True), done.stdout + done.stderr
