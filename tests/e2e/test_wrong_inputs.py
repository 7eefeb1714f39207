"""Every wrong input ends with exit code 3 and a diagnostic that says what was expected or found, and what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from core import BINARY, ROOT, SMALL, environment, refused, tessera

MODULE = """
import torch
from torch import nn
{before}
class Model(nn.Module):
    def forward(self, {arguments}):
        {body}

def get_inputs():
    return {inputs}
"""


def model(folder: Path, body="return x + 1", before="", arguments="x", inputs="[torch.randn(4, 4)]") -> Path:
    path = folder / "model.py"
    path.write_text(MODULE.format(body=body, before=before, arguments=arguments, inputs=inputs))
    return path


@pytest.fixture
def home(tmp_path):
    return tmp_path


def said(diagnostic: dict) -> str:
    return " ".join(
        [diagnostic.get(k, "") for k in ("message", "expected", "found")]
        + diagnostic.get("help", [])
        + diagnostic.get("notes", [])
    )


def check(answer: tuple[int, dict], code: str, *words: str) -> dict:
    status, d = answer
    assert (status, d["code"]) == (3, code), d
    assert d["level"] == "error" and d["message"] and d.get("help"), d
    for word in words:
        assert word in said(d), (word, d)
    return d


def test_no_such_file(home):
    check(refused(home, home / "absent.py"), "TS0001", "absent.py", "MODEL.py")


def test_no_such_class(home):
    check(refused(home, f"{model(home)}:Modell"), "TS0003", "Modell", "Model")


def test_file_that_raises(home):
    d = check(refused(home, model(home, before="import absent_package")), "TS0002", "pip install absent_package")
    assert d["place"]["line"] == 4 and d["place"]["file"].endswith("model.py")


def test_module_that_fails(home):
    check(refused(home, model(home, "return x @ torch.ones(5, 5)")), "TS0007", "eager PyTorch")


def test_untraceable_module(home):
    before = "import numpy as np\n"
    check(
        refused(home, model(home, "return torch.from_numpy(np.sort(x.numpy()))", before)),
        "TS0202",
        "submodules",
        'backend="tessera"',
    )


def test_control_flow_on_values(home):
    check(refused(home, model(home, "return x if float(x.sum()) > 0 else -x")), "TS0203", "torch.where")


def test_unsupported_dtype(home):
    check(
        refused(home, model(home, "return torch.view_as_complex(x) * 2", inputs="[torch.randn(4, 2)]")),
        "TS0205",
        "complex",
        "submodules",
    )


def test_no_gpu(home):
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU")
    d = check(refused(home, model(home), "--arch", "sm_90a"), "TS0025", "cpu", "NVIDIA GPU", "discover --arch sm_90a")
    assert d["expected"] and d["found"]
    check(refused(home, model(home), "--device", "cuda"), "TS0021", "--device cpu")
    found = tessera(home, "discover", model(home), "--arch", "sm_90a")
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--arch", "sm_90"), "sm_90a"),
        (("--precision", "bf61"), "bf16"),
        (("--effort", "maximum"), "max"),
        (("--seconds", "soon"), "number"),
    ],
)
def test_wrong_arguments(home, arguments, words):
    status, d = refused(home, model(home), *arguments)
    assert status == 3 and words in said(d) and arguments[1] in said(d), d


def test_no_compiler(home):
    tools = home / "bin"
    tools.mkdir()
    for name in ("env", "sh"):
        (tools / name).symlink_to(shutil.which(name))
    path = home / "model.py"
    path.write_text(SMALL)
    env = {"PATH": str(tools), "CXX": "", "TESSERA_CXX": ""}
    d = check(refused(home, path, env=env), "TS0301", "apt install g++")
    assert d["expected"] and d["found"]
    doctor = tessera(home, "doctor", env=env)
    assert doctor.returncode == 3
    row = next(c for c in json.loads(doctor.stdout)["checks"] if c["name"] == "c++ compiler")
    assert row["state"] == "MISSING" and "g++" in row["how"]


def test_no_python_with_torch(home):
    bare = home / "python3"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    check(refused(home, model(home), env={"TESSERA_PYTHON": str(bare)}), "TS0702", "torch", "tessera doctor")
    check(refused(home, model(home), env={"TESSERA_PYTHON": str(home / "none")}), "TS0701", "TESSERA_PYTHON")


def test_unwritable_output(home):
    (home / "file").write_text("")
    check(refused(home, model(home), "-o", home / "file/out"), "TS0033", "file/out", "-o DIR")


def test_unwritable_home(home):
    (home / "file").write_text("")
    check(refused(home, model(home), env={"TESSERA_HOME": str(home / "file/home")}), "TS0305", "TESSERA_HOME")


def test_full_disk(home):
    disk = home / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        d = check(refused(home, model(home), env={"TESSERA_HOME": str(disk)}), "TS0309", "TESSERA_HOME")
        assert "MiB" in d["expected"] and "MiB" in d["found"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_doctor(home):
    done = tessera(home, "doctor")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["ready"] is True and report["schema"] == "tessera.doctor/1"
    names = {c["name"]: c for c in report["checks"]}
    assert {"c++ compiler", "headers", "python", "torch", "gpu", "nvcc", "cutlass", "plotly"} <= set(names)
    for c in report["checks"]:
        assert c["state"] in ("ok", "absent") and c["found"] and c["needed_for"]
        assert c["how"] or c["state"] == "ok"
    assert str(home) in names["cache"]["found"]


def test_a_report_that_is_none(home):
    (home / "report.json").write_text("{}")
    for arguments, code in ((("absent.json",), "TS0031"), ((home / "report.json",), "TS0032")):
        done = tessera(home, "report", *arguments)
        assert done.returncode == 3 and json.loads(done.stdout)["code"] == code


def test_codes_do_not_depend_on_the_folder(home):
    """A path with blanks and quotes, relative to the working folder, is a path like any other."""
    odd = home / "it's a folder"
    odd.mkdir()
    model(odd, "return x.relu() * 2")
    done = tessera(home, "trace", os.path.join("it's a folder", "model.py"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("option", "near"), [("--precison", "precision"), ("--efort=max", "effort"), ("--second", "seconds")]
)
def test_an_unknown_option_names_the_nearest(home, option, near):
    status, d = refused(home, model(home), option, "bf16")
    assert status == 3 and d["code"] == "TS0041" and f"did you mean `{near}`?" in d["help"], d
    plain = subprocess.run([BINARY, "optimize", "x.py", option, "bf16"], capture_output=True, text=True, check=False)
    assert plain.returncode == 3 and f"did you mean `{near}`" in plain.stderr


def test_a_folder_for_tools_that_is_none(home):
    done = tessera(home, "mcp", "--root", home / "absent")
    assert done.returncode == 3 and json.loads(done.stdout or done.stderr)["code"] == "TS0056"


def test_tools_without_their_package(home):
    without = (
        "import runpy, sys\nsys.modules['mcp'] = None\nrunpy.run_module('tessera.mcp_server', run_name='__main__')"
    )
    env = environment(home, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run([sys.executable, "-c", without, "{}"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and done.stderr.startswith("error[TS0716]: ") and "-m pip install" in done.stderr


def served(home, method: str, params: dict) -> dict:
    """The error that the engine answers to the package."""
    done = subprocess.run(
        [BINARY, "serve"],
        input=json.dumps({"id": 1, "method": method, "params": params}) + "\n",
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return json.loads(done.stdout.splitlines()[-1])["error"]


def test_a_method_that_nobody_answers(home):
    assert served(home, "no_such", {})["code"] == "TS0720"


def test_a_gpu_that_is_too_old(home):
    of_pascal = {"device": "cuda:0", "meta": {"capability": [6, 1]}}
    graph = {"schema": "tessera.graph/1", "name": "old", "precision": "fp32", "values": [], "inputs": [], "nodes": []}
    d = served(home, "optimize", {"graph": graph | of_pascal | {"outputs": []}})
    assert d["code"] == "TS0024" and "6.1" in d["message"] and "--arch host" in d["help"][0], d


def test_an_answer_that_cannot_be_written(home):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BINARY, "explain", "TS0202"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 3 and done.stderr.startswith("error[TS0030]: "), done.stderr
