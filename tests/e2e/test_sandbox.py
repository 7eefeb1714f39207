"""What a kernel by hand tries beyond its sandbox: it is refused, and the verdict says what it was. Each beside a control
without the sandbox, by which the same kernel passes (under TESSERA_TEST_ALL=1 where one speaks for all)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from core import tessera

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x * 2)


def get_inputs():
    return [torch.randn(33, 40)]
"""
HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <fcntl.h>\n#include <sys/socket.h>\n#include <unistd.h>\n"
BEGIN = "(void)workspace, (void)stream;"
# What is put before the text, what into the launch, and what the cause must name.
ESCAPES = {
    "constructor": (
        '__attribute__((constructor)) static void at_load() {{ if (FILE* f = fopen("{secret}", "r")) fclose(f); }}\n',
        "",
        "verify",
        "it tried to read {secret}",
    ),
    "include": (
        '#if __has_include("{secret}")\n#include "{secret}"\n#endif\n',
        "",
        "build",
        "it tried to read {secret}",
    ),
    "all_write": ("", 'close(open("{beside}", O_WRONLY | O_CREAT, 0644));', "verify", "it tried to write {beside}"),
    "all_socket": ("", "close(socket(AF_INET, SOCK_STREAM, 0));", "verify", "it tried to use the network (socket)"),
}


@pytest.fixture
def home(tmp_path) -> Path:
    """Of one test: a kernel that won without a sandbox would run again, as the best so far, in the next."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "secret").write_text("int a_secret = 1;\n")
    doctor = json.loads(tessera(folder, "doctor").stdout)
    if not any(m["works"] for m in doctor["sandbox"]["mechanisms"]):
        pytest.skip(f"no sandbox on this machine: {doctor['sandbox']}")
    return folder


@pytest.fixture
def skeleton(home) -> str:
    return json.loads(tessera(home, "try", "model.py", "p01", "--skeleton").stdout)["text"]


def judged(home: Path, text: str, *more: str) -> dict:
    (home / "k.cpp").write_text(text)
    done = tessera(home, "try", "model.py", "p01", "--source", "k.cpp", "--peers", "eager", "--again", *more)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_is_refused_and_named(home, skeleton, name):
    if name.startswith("all_") and not os.environ.get("TESSERA_TEST_ALL"):
        pytest.skip("under TESSERA_TEST_ALL=1")
    before, inside, gate, cause = ESCAPES[name]
    names = {"secret": home / "secret", "beside": home / "beside"}
    text = HEAD + before.format(**names) + skeleton
    at = text.rindex(BEGIN)
    text = text[:at] + inside.format(**names) + text[at:]
    verdict = judged(home, text)
    assert verdict["failure"] == "forbidden", verdict
    assert ("TS0327" in [d["code"] for d in verdict["diagnostics"]]) == (gate == "build"), verdict
    assert verdict["reached"] == gate and verdict["cause"].startswith(cause.format(**names)), verdict
    assert verdict["advice"][0]["symptom"] == "it tried what the sandbox does not allow"
    assert not (home / "beside").exists()
    if name != "constructor" and not os.environ.get("TESSERA_TEST_ALL"):
        return  # the control takes ten seconds
    # The control: nothing else is wrong with it.
    free = judged(home, text, "--unsandboxed")
    assert free["failure"] == "none", free
    assert (home / "beside").exists() == (name == "all_write")
    (home / "beside").unlink(missing_ok=True)


def test_without_a_sandbox_nothing_runs(home, skeleton, monkeypatch):
    monkeypatch.setenv("TESSERA_SANDBOX_LAUNCHER", "/bin/false")
    (home / "k.cpp").write_text(skeleton)
    done = tessera(home, "try", "model.py", "p01", "--source", "k.cpp", "--again")
    assert done.returncode == 3, done.stdout
    assert "TS0717" in done.stdout + done.stderr
