"""What the registry is trusted with: imported files, searches that were less thorough, libraries of other versions."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import warnings

import pytest
import tessera as package
import torch
from core import BINARY, environment, tessera

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(256), nn.Linear(256, 64)

    def forward(self, x):
        return self.linear(self.norm(x))


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(512, 256)]
"""

PLANTED = """
#include <cstdio>
__attribute__((constructor)) static void planted() { std::fclose(std::fopen("MARKER", "w")); }
"""


def command(home, *arguments):
    done = tessera(home, *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout), done.stderr


def tune(home, effort: str = "quick", *more: str):
    """The patterns of the report, and what was said meanwhile."""
    (home / "model.py").write_text(MODEL)
    said, progress = command(home, "tune", home / "model.py", "--effort", effort, *more)
    return said, {p["id"]: p for p in said["patterns"]}, progress


def entries(home, effort: str = "quick") -> list[dict]:
    return command(home, "registry", "list", "--effort", effort)[0]["entries"]


def winners(patterns: dict) -> dict:
    return {i: {(w["realizer"], json.dumps(w["config"])) for w in p["winners"]} for i, p in patterns.items()}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A machine whose registry is exported: its home, its patterns, and the file."""
    assert BINARY.exists(), f"{BINARY} is not built; run ./dev build, or name it in TESSERA_BINARY"
    home = tmp_path_factory.mktemp("theirs")
    patterns = tune(home)[1]
    kinds = [{w["kind"] for w in p["winners"]} for p in patterns.values()]
    assert sorted(map(len, kinds)) == [1, 2], patterns  # a kernel of ours for the norm, none for the product
    command(home, "registry", "export", "-o", home / "theirs.json")
    return home, patterns, json.loads((home / "theirs.json").read_text())


def imported(home, exported: dict) -> dict:
    (home / "given.json").write_text(json.dumps(exported))
    return command(home, "registry", "import", home / "given.json")[0]


def test_import_is_tried_here_and_becomes_our_own(theirs, tmp_path):
    _, known, exported = theirs
    assert not any(word in json.dumps(exported) for word in ('"source"', '"call"', '"ints"'))
    assert imported(tmp_path, exported)["taken"] == len(exported["entries"])
    assert {e["here"]["what"] for e in entries(tmp_path)} == {"imported"}
    _, patterns, progress = tune(tmp_path)
    assert " recheck " in progress and " tune " not in progress, progress
    synthesized = {i: {w for w in ws if w[0].startswith("tile_")} for i, ws in winners(known).items()}
    assert any(synthesized.values()) and all(ws <= winners(patterns)[i] for i, ws in synthesized.items()), patterns
    after = entries(tmp_path)
    assert len(after) == len(exported["entries"])
    assert {(e["provenance"]["origin"], e["provenance"]["file"]) for e in after} == {("own", "given.json")}
    assert all(e["here"]["reuse"] for e in after), after
    shown = [BINARY, "registry", "show", after[0]["hash"]]
    text = subprocess.run(shown, env=environment(tmp_path), capture_output=True, text=True, check=True).stdout
    assert "begun with what given.json had" in text and f"torch {torch.__version__}" in text, text
    assert "complete at quick" in text and "not reused: its search was" in text, text  # asked for by default: more
    progress = tune(tmp_path)[2]
    assert " reuse " in progress and " recheck " not in progress and " tune " not in progress, progress


def with_sources(theirs, marker) -> dict:
    """As version 1 exported, with what an enemy would plant."""
    _, _, exported = theirs
    out = {"schema": "tessera.registry/1", "entries": []}
    for e in copy.deepcopy(exported["entries"]):
        candidates = []
        for w in e.pop("winners"):
            source = {
                "name": "planted",
                "language": "cxx",
                "text": PLANTED.replace("MARKER", str(marker)),
                "arch": "host",
                "flags": [f"-Wl,-rpath,{marker}"],
                "links": [],
                "cutlass": False,
            }
            c = {"realizer": w["realizer"], "kind": w["kind"], "config": w["config"]}
            c |= (
                {"source": source} if w["kind"] == "synthesized" else {"call": {"function": "planted", "arguments": {}}}
            )
            launch = {"knobs": w["knobs"], "ints": [1 << 60]}
            candidates.append({"candidate": c, "launch": launch, "evidence": w["evidence"]})
        e |= {"candidate": {"winners": candidates, "eager_ms": 1.0}, "realizer": "x", "kind": "synthesized"}
        out["entries"].append(e)
    return out


def test_planted_code_is_neither_built_nor_run(theirs, tmp_path):
    marker = tmp_path / "marker"
    said = imported(tmp_path, with_sources(theirs, marker))
    assert said["taken"] == len(theirs[2]["entries"]) and said["sources_left_out"] >= said["taken"]
    _, patterns, progress = tune(tmp_path)
    assert " recheck " in progress, progress
    assert all(w["realizer"] != "planted" for p in patterns.values() for w in p["winners"])
    assert not marker.exists()
    built = [f.read_text() for f in tmp_path.rglob("source.c*")]
    assert built and not any("planted" in text for text in built)
    for place in tmp_path.glob("registry.sqlite*"):
        assert b"planted()" not in place.read_bytes(), place


def test_configurations_that_nobody_offers_are_left_aside(theirs, tmp_path):
    exported = copy.deepcopy(theirs[2])
    for e in exported["entries"]:
        for w in e["winners"]:
            w["config"] = {"tile": [3, 5, 7]}
    imported(tmp_path, exported)
    (tmp_path / "model.py").write_text(MODEL)
    done = tessera(tmp_path, "tune", tmp_path / "model.py", "--effort", "quick")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "TS0640" in done.stdout + done.stderr
    assert " tune " in done.stderr and " recheck " not in done.stderr, done.stderr
    assert {e["provenance"]["origin"] for e in entries(tmp_path)} == {"own"}


@pytest.mark.parametrize(
    "text, code",
    [
        ("[" * 100000, "TS0045"),
        ('{"schema": "tessera.registry/2", "entries": ' + "[" * 5000 + "]" * 5000 + "}", "TS0045"),
        ('{"schema": 7}', "TS0637"),
        ('{"schema": "tessera.registry/2", "entries": [{"key": 1e999}]}', "TS0045"),
        ('{"schema": "tessera.registry/2", "entries": [{}]}', "TS0639"),
        ("rm -rf /", "TS0045"),
        ("", "TS0045"),
    ],
    ids=["unclosed", "deep", "wrong type", "huge number", "empty entry", "no json", "empty"],
)
def test_malformed_files_are_refused(tmp_path, text, code):
    (tmp_path / "given.json").write_text(text)
    done = tessera(tmp_path, "registry", "import", tmp_path / "given.json")
    assert done.returncode == 3, (done.returncode, done.stdout, done.stderr)
    assert json.loads(done.stdout or done.stderr)["code"] == code
    assert not entries(tmp_path)


def test_an_action_that_needs_to_know_what_says_so(tmp_path):
    done = tessera(tmp_path, "registry", "show")
    assert done.returncode == 3 and json.loads(done.stdout or done.stderr)["code"] == "TS0044"


def test_a_damaged_registry_is_mended_and_kept(tmp_path):
    assert tessera(tmp_path, "registry", "list").returncode == 0
    (tmp_path / "registry.sqlite").write_bytes(b"z" * 8192)
    done = tessera(tmp_path, "registry", "list")
    assert done.returncode == 0 and '"TS0638"' in done.stderr, done.stderr
    (damaged,) = tmp_path.glob("registry.sqlite.damaged-*")
    assert damaged.read_bytes() == b"z" * 8192
    assert "TS0638" not in tessera(tmp_path, "registry", "list").stderr


def test_quotes_are_refused(theirs, tmp_path):
    exported = copy.deepcopy(theirs[2])
    exported["entries"][-1]["winners"][0]["config"]["schedule"] = f"'; touch {tmp_path}/marker; '"
    (tmp_path / "given.json").write_text(json.dumps(exported))
    done = tessera(tmp_path, "registry", "import", tmp_path / "given.json")
    assert done.returncode == 3 and "`config`" in done.stdout + done.stderr, done.stdout + done.stderr
    assert not entries(tmp_path) and not (tmp_path / "marker").exists()


def test_a_more_thorough_search_goes_on_from_the_trials(tmp_path):
    first = tune(tmp_path)[1]
    assert all(e["here"]["what"] == "shallow" for e in entries(tmp_path, "max"))
    _, more, progress = tune(tmp_path, "default")
    for i, p in more.items():
        assert p["reuse"]["strategy"] == "ADAPT" and "complete at quick" in p["reuse"]["detail"], p["reuse"]
        assert p["trial_count"] >= first[i]["trial_count"] > 2
    assert progress.count("tile_row measured") == 1, progress  # in the finals; the space is small enough for `quick`
    progress = tune(tmp_path, "default")[2]
    assert " tune " not in progress and " reuse " in progress
    progress = tune(tmp_path)[2]  # less is answered as well
    assert " tune " not in progress and " reuse " in progress
    again = tune(tmp_path, "quick", "--retune")[2]
    assert " tune " in again and again.count("tile_row measured") == 2, again


@pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="under TESSERA_TEST_ALL=1")
def test_libraries_of_other_versions_are_timed_again(tmp_path, monkeypatch):
    for name, value in {"TESSERA_HOME": tmp_path, "TESSERA_BINARY": BINARY, "OMP_WAIT_POLICY": "passive"}.items():
        monkeypatch.setenv(name, str(value))
    module, x = torch.nn.Sequential(torch.nn.LayerNorm(256), torch.nn.Linear(256, 64)), torch.randn(512, 256)

    def run() -> dict:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"effort": "quick", "leftover": "eager", "progress": False, "measure": False}
            return {p["id"]: p for p in package.optimize(module.eval(), x, **options).report["patterns"]}

    first = run()
    assert {p["reuse"]["strategy"] for p in run().values()} == {"REUSE"}
    monkeypatch.setattr("tessera.tracing.library_versions.library_versions", lambda device: {"torch": "99.0"})
    other = run()
    for i, p in other.items():
        assert p["reuse"]["strategy"] == "ADAPT" and "here 99.0" in p["reuse"]["detail"], p["reuse"]
        assert p["trial_count"] > 0 and "library" in {w["kind"] for w in p["winners"]}
        assert {w for w in winners(first)[i] if w[0].startswith("tile_")} <= winners(other)[i]
    assert {p["reuse"]["strategy"] for p in run().values()} == {"REUSE"}


def strategies(said: dict) -> dict[str, str]:
    return {p["id"]: p["reuse"]["strategy"] for p in said["patterns"]}


def test_discover_says_of_every_pattern_what_tune_would(theirs, tmp_path):
    home = theirs[0]
    (tmp_path / "model.py").write_text(MODEL)
    nothing = command(tmp_path, "discover", tmp_path / "model.py")[0]
    assert set(strategies(nothing).values()) == {"NEW"} and not list(tmp_path.glob("registry.sqlite*"))
    quick = command(home, "discover", home / "model.py", "--effort", "quick")[0]
    assert set(strategies(quick).values()) == {"REUSE"}
    dumped = home / "dumped"
    assert strategies(tune(home, "quick", "--dump", dumped)[0]) == strategies(quick)
    assert strategies(json.loads((dumped / "3-discovery.json").read_text())) == strategies(quick)
    more = [BINARY, "discover", home / "model.py"]
    text = subprocess.run(more, env=environment(home), capture_output=True, text=True, check=True).stdout
    assert "ADAPT of p01, p02: " in text or ("ADAPT of p01: " in text and "ADAPT of p02: " in text), text
    assert "its search was complete at quick" in text and "asked for now: default" in text, text
    elsewhere = command(home, "discover", home / "model.py", "--arch", "sm_90a")[0]
    assert set(strategies(elsewhere).values()) == {"NEW"}
    assert any("the registry was not asked" in note for note in elsewhere["notes"]), elsewhere["notes"]


def test_entries_are_found_by_several_words(theirs):
    home, _, exported = theirs
    listed = command(home, "registry", "list", "rule=row_norm", "status=accepted")[0]["entries"]
    assert listed and {e["rule"] for e in listed} == {"row_norm"} and len(listed) < len(exported["entries"])
    assert not command(home, "registry", "list", "rule=row_norm", "rule=gemm")[0]["entries"]


def test_built_kernels_are_pruned_and_built_again(tmp_path):
    tune(tmp_path)
    built = [f for f in (tmp_path / "kernels").rglob("*") if f.is_file()]
    said = command(tmp_path, "registry", "prune", "kernels")[0]
    assert built and said["removed"] >= len(built) and said["bytes"] > 1000 and entries(tmp_path)
    assert not (tmp_path / "kernels").exists()
    progress = tune(tmp_path)[2]
    assert " reuse " in progress and any(f.is_file() for f in (tmp_path / "kernels").rglob("*"))
