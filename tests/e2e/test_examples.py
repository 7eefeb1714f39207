"""Kernels to learn from and configurations that are known to be good, found, shown and compared."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = {
    "rule": "gemm",
    "precision": "bf16",
    "arch": "sm_90a",
    "realizer": "wgmma_gemm",
    "config": {"tile": [128, 256, 64], "cluster": [2, 1], "schedule": "cooperative"},
    "extents": {"m": 4096, "n": 4096, "k": 4096},
}


def tessera(home, *arguments, code=0, **environment):
    command = [os.environ["TESSERA_BINARY"], "examples", *arguments, "--json", "-q"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=home, env=os.environ | {"TESSERA_HOME": str(home)} | environment
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_nearest_shapes_come_first(tmp_path):
    shape = ("--shape", "m=300", "--shape", "n=300", "--shape", "k=400000")
    found = tessera(tmp_path, "search", "--rule", "gemm", "--precision", "bf16", *shape)
    assert found["configurations"][0]["extents"] == {"batch": 1, "m": 256, "n": 256, "k": 524288}
    assert found["sources"][0]["path"] == "kernels/gemm.py"
    assert "gemm fp8 on host" not in found["gaps"] and "gemm bf16 on host" in found["gaps"]
    words = tessera(tmp_path, "search", "collective", "swizzle")["sources"]
    assert words and all("collective" in e["shows"] and "swizzle" in e["path"] for e in words)
    assert not (tmp_path / "registry.sqlite").exists()


def test_every_example_can_be_shown(tmp_path):
    installed = importlib.util.find_spec("cutlass_library") is not None
    sources = tessera(tmp_path, "search")["sources"]
    assert {s["root"] for s in sources} == {"cutlass", "tessera"}
    some = sources if os.environ.get("TESSERA_TEST_ALL") else sources[:: len(sources) // 8]
    for source in some:
        shown = tessera(tmp_path, "show", source["path"])
        assert source in shown["sources"]
        # CUTLASS's package has no unit tests, and not what a later version brings.
        packaged = installed and not source["path"].startswith("test/") and "from CUTLASS" not in source["shows"]
        if source["root"] == "tessera":
            assert "@kernel" in shown["text"]
        elif packaged:
            assert shown["text"] == Path(shown["file"]).read_text()
        else:
            assert shown["absent"] and not shown["text"]


def test_a_configuration_is_shown_by_its_name(tmp_path):
    (first, *_) = tessera(tmp_path, "search", "--rule", "gemm")["configurations"]
    assert tessera(tmp_path, "show", first["name"])["configuration"] == first


@pytest.mark.parametrize(
    "changed, verdict, code, fields",
    [
        ({}, "known", 0, []),
        ({"config": GOOD["config"] | {"cluster": [1, 2]}}, "mixed", 0, ["cluster"]),
        ({"config": GOOD["config"] | {"tile": [128, 240, 64]}}, "unseen", 2, ["tile"]),
        ({"realizer": "cutlass_gemm"}, "gap", 2, None),
    ],
)
def test_a_configuration_is_compared_field_by_field(tmp_path, changed, verdict, code, fields):
    other = GOOD | {"config": {"tile": [128, 128, 64], "cluster": [1, 2], "schedule": "pingpong"}}
    known = [c | {"device": "a GPU", "summary": "", "knobs": {}, "ms": 1.0, "origin": ""} for c in (GOOD, other)]
    folder = tmp_path / "knowledge" / "configurations"
    folder.mkdir(parents=True)
    (folder / "known.json").write_text(json.dumps({"schema": "tessera.configurations/1", "configurations": known}))
    (tmp_path / "c.json").write_text(json.dumps(GOOD | changed))
    checked = tessera(tmp_path, "check", "c.json", code=code, TESSERA_KNOWLEDGE=str(folder.parent))
    assert checked["verdict"] == verdict
    assert fields is None or [d["field"] for d in checked["differences"]] == fields


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("show",), "TS0057"),
        (("search", "--shape", "m=0"), "TS0057"),
        (("show", "kernels/gem.py"), "TS0058"),
        (("search", "--rule", "gem"), "TS0059"),
        (("check", "none.json"), "TS0059"),
        (("check", "bad.json"), "TS0059"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path, arguments, expected):
    (tmp_path / "bad.json").write_text(json.dumps(GOOD | {"extents": {"m": -1}}))
    assert tessera(tmp_path, *arguments, code=3)["code"] == expected
