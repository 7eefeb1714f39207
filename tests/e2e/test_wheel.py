"""What the wheel installs works away from the source tree: binary, Python files, headers, examples.

The layout is made as the wheel's is (the install component `wheel` of the build beside the package), without compiling
anything again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
from core import BINARY, ROOT, SMALL

SCRIPT = """
import tessera, torch
from tessera import api
from tessera.common import places
assert places.source_tree() is None, places.package
assert api.find_binary() == places.package / "bin" / "tessera", api.find_binary()
m = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.GELU()).eval()
c = tessera.optimize(m, torch.randn(64, 64), effort="quick", progress=False)
assert c.report["verification"]["ok"] and c.status()["launch"]["kind"] == "stable-abi", c.status()
print(c.report["toolchain"]["own_include"])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder like site-packages."""
    folder = tmp_path_factory.mktemp("site")
    build = next((p for p in BINARY.resolve().parents if (p / "cmake_install.cmake").exists()), None)
    if build is None or not shutil.which("cmake"):
        pytest.skip("the binary is of no build folder")
    subprocess.run(
        ["cmake", "--install", build, "--component", "wheel", "--prefix", folder, "--strip"],
        check=True,
        capture_output=True,
    )
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/tessera", folder / "tessera", dirs_exist_ok=True, ignore=skip)
    return folder


def run(site: Path, *command, home: Path) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("TESSERA_")}
    env |= {"PYTHONPATH": str(site), "TESSERA_HOME": str(home), "TESSERA_PYTHON": sys.executable}
    env |= {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(list(map(str, command)), env=env, cwd=home, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_header_and_example_is_there(site):
    def headers(root):
        return {f.relative_to(root) for f in (root / "include").rglob("*") if f.is_file()}

    assert headers(site / "tessera") == headers(ROOT)
    assert {f.parent.name for f in headers(ROOT)} >= {"tessera", "tessera_cutlass", "tessera_wgmma"}
    assert (site / "tessera/knowledge/examples").is_dir()
    assert (site / "tessera/knowledge/prompts/write.md").is_file()
    assert (site / "tessera/docs/glossary.md").is_file()


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="a search: under TESSERA_TEST_ALL=1")
def test_doctor_and_optimize(site, tmp_path):
    binary = site / "tessera/bin/tessera"
    checks = json.loads(run(site, binary, "doctor", "--json", home=tmp_path))
    headers = next(c for c in checks["checks"] if c["name"] == "headers")
    assert checks["ready"] and headers["found"] == str(site / "tessera/include")
    (tmp_path / "model.py").write_text(SMALL)
    out = run(
        site,
        binary,
        "optimize",
        tmp_path / "model.py",
        "--effort",
        "quick",
        "--peers",
        "eager",
        "--ablation",
        "false",
        "--json",
        home=tmp_path,
    )
    report = json.loads(out)["report"]
    assert report["verification"]["ok"]
    assert any(w["kind"] == "synthesized" for p in report["patterns"] for w in p.get("winners", []))


def test_command(site, tmp_path):
    """What the script `tessera` of the wheel runs: the package's binary, with this interpreter; a lost binary is told."""
    script = "import sys; from tessera.launch import main; sys.argv[0] = 'tessera'; sys.exit(main())"
    checks = json.loads(run(site, sys.executable, "-c", script, "doctor", "--json", home=tmp_path))
    assert sys.executable in next(c for c in checks["checks"] if c["name"] == "python")["found"]
    env = {**os.environ, "PYTHONPATH": str(site), "TESSERA_BINARY": str(tmp_path / "none")}
    lost = subprocess.run([sys.executable, "-c", script, "doctor"], env=env, capture_output=True, text=True)
    assert lost.returncode == 3 and "TS0715" in lost.stderr and "help:" in lost.stderr
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"tessera": "tessera.launch:main"}


def test_python(site, tmp_path):
    assert run(site, sys.executable, "-c", SCRIPT, home=tmp_path).strip() == str(site / "tessera/include")


def packages(text: str) -> set[str]:
    """Debian packages of libraries in a text."""
    return set(re.findall(r"\b(?:lib[a-z0-9]+|nlohmann-json3)-dev\b", text))


def test_missing_libraries_are_named_with_their_packages(tmp_path):
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("no cmake or no ninja")
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "SQLite3")]
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DTESSERA_TESTS=OFF", *absent]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and "apt install libfmt-dev libsqlite3-dev\n" in done.stderr, done.stderr


def test_readme_and_dev_name_what_the_build_looks_for():
    looked_for = packages((ROOT / "cmake/Dependencies.cmake").read_text())
    for_tests = {"libgtest-dev", "libgmock-dev"}
    assert packages((ROOT / "README.md").read_text()) == looked_for - for_tests
    assert packages((ROOT / "dev").read_text()) == looked_for
