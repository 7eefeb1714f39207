import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tessera.common.errors import Error
from tessera.running import extension
from tessera.tracer_process import Tracer


def test_a_tracer_begins_to_build_the_extension(monkeypatch):
    found = threading.Event()
    niceness = []

    def backend():
        niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        found.set()

    monkeypatch.setattr(extension, "backend", backend)
    Tracer()
    assert found.wait(10)
    # It gives way to what is measured; this thread does not.
    assert niceness[0] > os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) or niceness[0] == 19


def test_threads_share_one_backend():
    found = []
    threads = [threading.Thread(target=lambda: found.append(extension.backend())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({id(b) for b in found}) == 1


COMPILE = """
import pathlib, sys
from tessera.running import extension
print(extension.compiled(pathlib.Path(sys.argv[1]), [], [], b"", "nothing"), flush=True)
"""


def test_a_compiler_ends_whoever_began_it_and_runs_once(tmp_path, monkeypatch):
    compiler, source = tmp_path / "slow", tmp_path / "x.cpp"
    source.write_text("")
    compiler.write_text(
        f'#!/bin/sh\necho run >>{tmp_path}/runs\nsleep 2\nwhile [ "$1" != -o ]; do shift; done\necho made >"$2"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("TESSERA_EXTENSIONS", str(tmp_path / "made"))
    begin = [sys.executable, "-c", COMPILE, str(source)]
    first = subprocess.Popen(begin)
    while not (tmp_path / "runs").exists():
        assert first.poll() is None
        time.sleep(0.02)
    first.kill()
    second = subprocess.run(begin, capture_output=True, text=True, check=True, timeout=60)
    assert Path(second.stdout.strip()).read_text() == "made\n"
    assert (tmp_path / "runs").read_text() == "run\n"


@pytest.mark.parametrize("compiler, code", [("absent", "TS0320"), ("/bin/false", "TS0321")])
def test_a_compiler_that_is_none_is_named(tmp_path, monkeypatch, compiler, code):
    (tmp_path / "x.cpp").write_text("")
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv("PATH", "/nowhere" if compiler == "absent" else os.environ["PATH"])
    monkeypatch.setenv("TESSERA_EXTENSIONS", str(tmp_path / "made"))
    with pytest.raises(Error, match=code):
        extension.compiled(tmp_path / "x.cpp", [], [], b"", "nothing")


def test_what_cannot_be_registered_says_so_each_time(tmp_path, monkeypatch):
    """A schema that was defined before it fails could not be defined again."""
    library = tmp_path / "kernel.so"
    library.write_bytes(b"")
    refuses = SimpleNamespace(tessera_ops_register=lambda *given: -1, tessera_ops_error=lambda: b"no inputs")
    monkeypatch.setattr(extension, "backend", lambda: extension.Backend("stable-abi", handle=refuses))
    monkeypatch.setattr(extension, "PythonKernel", lambda spec: None)
    made = extension.TensorType(torch.float32, (4,), (1,))
    for _ in range(2):
        with pytest.raises(Error, match="TS0322"):
            extension.operator(extension.KernelSpec("numbers", str(library), "0" * 64, (), (), (made,)))
