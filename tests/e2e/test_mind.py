"""`optimize --mind llm` with a scripted model: a pattern that no rule knows, a wrong kernel, its diagnosis, a right one, tuning,
the registry and the composed module; killed and resumed in the middle, and replayed without a model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from core import BINARY, ROOT, environment, hear_signals, tessera

sys.path.append(str(ROOT / "python/tests"))
from fake_models import Turn, serving  # noqa: E402

# Cheap ops, which one pass over the memory does: any kernel of all of them wins. No rule takes `roll`.
MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x * 1.5 + 0.25) * torch.roll(x, 3, 1) - 2.0
        y = torch.abs(y) + x * x
        return (y * 0.5 + x) * y - torch.roll(x, 5, 1) * 3.0


def get_inputs():
    return [torch.randn(512, 1024)]
"""
QUICK = ["--effort", "quick", "--seconds", "5", "--peers", "eager", "--ablation", "false", "--place-all"]
PLAN, WRITE, FIX, TUNE = "You choose which", "You write one kernel", "did not pass", "passed all gates. Make it"
NO_PROPOSALS = ["--mind-proposals", "0"]
PROPOSE = "You look for subgraphs"
LOOP = "#pragma omp parallel for\n"
HOLE = ["roll", "sub_1"]
ALL = [
    *("mul", "add", "relu", "roll", "mul_1", "sub", "abs_1", "mul_2", "add_1", "mul_3", "add_2", "mul_4", "roll_1"),
    *("mul_5", "sub_1"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mind")
    (folder / "model.py").write_text(MODEL)
    return folder


def proposing(name: str, nodes: list[str]) -> str:
    return json.dumps({"proposals": [{"name": name, "nodes": nodes, "rationale": "one pass"}]})


def write_script(home: Path, slow: float) -> None:
    """The model diagnoses by the answers alone: it takes in what is between the nodes, and mends what is `incomplete`."""
    rows = [
        {"when": [PROPOSE, "hole: no pattern, ", "take %mul_4 in"], "text": proposing("all", ALL)},
        {"when": [PROPOSE, "* %roll "], "text": proposing("hole", HOLE)},
        {"when": [PLAN], "text": '{"order": ["p02"], "reasons": {"p02": "one pass over the memory"}}'},
        {"when": [WRITE], "text": "The naive loop.", "file": "wrong.cpp"},
        {"when": [FIX, "\nincomplete: ", "symptom, "], "text": "The loop ended early.", "file": "right.cpp"},
        {"when": [TUNE], "unless": ["you: Chunks."], "text": "Chunks.", "file": "tuned.cpp", "seconds": slow},
        {"text": "DONE: one pass is all"},
    ]
    (home / "replies.json").write_text(json.dumps({"schema": "tessera.script/1", "replies": rows}))


def lines_of(archive: Path) -> list[dict]:
    file = archive / "turns.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def killed_when_tuning(home: Path, command: list, env: dict[str, str]) -> None:
    """SIGKILL while the model is asked for a faster source; a person edits the plan before."""
    process = subprocess.Popen(
        command, env=env, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    process.stdin.write("e\n")
    process.stdin.flush()
    end = time.monotonic() + 300
    while sum(r["kind"] == "request" for r in lines_of(home / "out/mind")) < 6:
        assert process.poll() is None and time.monotonic() < end, process.communicate()[1][-3000:]
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    process.stdin.close()


@pytest.fixture(scope="module")
def finished(home) -> dict:
    """The run after it was killed, as --json told it."""
    scratch = ["--registry", "scratch.sqlite"]  # the run's own registry does not know the pattern
    (home / "all.json").write_text(proposing("all", ALL))
    assert tessera(home, "discover", "model.py", "--propose", "all.json", *scratch).returncode == 0
    right = json.loads(tessera(home, "try", "model.py", "p02", "--skeleton", *scratch).stdout)["text"]
    assert LOOP in right and "item < 524288" in right
    (home / "right.cpp").write_text(right)
    (home / "wrong.cpp").write_text(right.replace("item < 524288", "item < 524000"))
    tuned = right.replace(LOOP, "#pragma omp parallel for schedule(static, CHUNK)\n")
    (home / "tuned.cpp").write_text("// tunable: CHUNK = 65536, 4096\n" + tuned)
    (home / "editor").write_text("#!/bin/sh\ntouch edited\n")
    (home / "editor").chmod(0o755)
    mind = ["--mind", "llm", "--model", "replies.json", "--approve", "plan", "-o", "out"]
    command = [BINARY, "optimize", "model.py", *mind, *QUICK, "--json"]
    env = environment(home, EDITOR=str(home / "editor"))
    env.pop("VISUAL", None)
    write_script(home, slow=600)
    killed_when_tuning(home, command, env)
    write_script(home, slow=0)
    done = subprocess.run(command, env=env, cwd=home, input="a\n", capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_from_a_wrong_kernel_to_the_module(finished, home):
    mind = finished["mind"]
    assert mind["schema"] == "tessera.mind_report/1" and mind["stopped"] == "" and mind["failure"] is None
    assert len(mind["proposals"]) == 2 and mind["proposals"][0].startswith("hole: no pattern, "), mind["proposals"]
    assert mind["proposals"][1] == "all: p02"
    (p,) = mind["patterns"]
    assert p["rule"] == "proposed"
    assert [t["outcome"] for t in p["tried"]] == ["incomplete", "passed", "passed"], p
    assert p["first_passed"] == 2 and p["ended"].endswith("one pass is all") and p["won"], p
    assert 0 < p["best_ms"] < p["eager_ms"]
    m = mind["metrics"]
    assert m["calls"] == 7 and m["tokens_in"] > 1000 and m["tokens_out"] > 1000 and m["money"] is None
    assert (m["pass_at_1"], m["pass_at_3"]) == (0, 1)
    assert m["discovery_success"] == pytest.approx(2 / 3)
    assert m["verification_rate"] == pytest.approx(2 / 3)
    assert (home / "edited").exists()
    assert finished["report"]["verification"]["ok"] is True
    labels = [w["label"] for q in finished["report"]["patterns"] for w in q["winners"]]
    assert any(label.startswith("by_hand p02-") for label in labels), labels
    assert "by the language model replies.json" in (home / "out/report.txt").read_text()
    assert json.loads((home / "out/report.json").read_text())["mind"] == mind


def test_nothing_was_asked_twice_and_all_is_archived(finished, home):
    records = lines_of(home / "out/mind")
    assert records[0]["schema"] == "tessera.mind/1" and records[0]["of"]["model"] == "replies.json"
    asked = [r["about"] for r in records if r["kind"] == "request"]
    assert len(asked) == len(set(asked)) == 7
    assert [r["about"] for r in records if r["kind"] == "reply"] == asked
    assert [r["data"]["failure"] for r in records if r["kind"] == "verdict"] == ["incomplete", "none", "none"]
    assert [r["data"]["decision"] for r in records if r["kind"] == "decision"] == ["edited", "approved"]
    notes = [r["event"] for r in records if r["kind"] == "note"]
    assert notes == ["resumed", "finished"]
    views = [r["data"] for r in records if r["kind"] == "request"]
    assert [v["prompt"].split("/")[0] for v in views] == ["propose"] * 2 + ["plan", "write", "fix", "tune", "tune"]
    assert all(v["estimated_tokens"] <= 8000 for v in views)
    assert "3. passed" in views[-1]["view"] and "(you: Chunks.)" in views[-1]["view"]
    tuned = [r["data"] for r in records if r["kind"] == "verdict"][-1]
    assert [v["tunables"] for v in tuned["variants"]] == [{"CHUNK": 65536}, {"CHUNK": 4096}]
    assert all(v["ms"] > 0 for v in tuned["variants"])
    assert {f.name for f in (home / "out/mind/sources").iterdir()} == {"p02-1.cpp", "p02-2.cpp", "p02-3.cpp"}


def test_a_replay_needs_no_model_and_comes_to_the_same(finished, home):
    for name in ("replies.json", "wrong.cpp", "right.cpp", "tuned.cpp"):
        (home / name).unlink()
    before = (home / "out/mind/turns.jsonl").read_bytes()
    arguments = ["--mind", "replay:out/mind", *QUICK, "--registry", "other.sqlite", "-o", "again"]
    done = tessera(home, "optimize", "model.py", *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    mind = json.loads(done.stdout)["mind"]
    assert mind["patterns"] == finished["mind"]["patterns"]
    figures = ("calls", "tokens_in", "tokens_out", "pass_at_1", "pass_at_3", "verification_rate")
    assert {k: mind["metrics"][k] for k in figures} == {k: finished["mind"]["metrics"][k] for k in figures}
    assert (home / "out/mind/turns.jsonl").read_bytes() == before
    labels = [w["label"] for q in json.loads(done.stdout)["report"]["patterns"] for w in q["winners"]]
    assert any(label.startswith("by_hand p02-") for label in labels), labels


@pytest.mark.skipif("TESSERA_TEST_ALL" not in os.environ, reason="composes once more; TESSERA_TEST_ALL=1 runs it")
def test_ctrl_c_while_the_model_is_asked(finished, home):
    """The reply is not waited for, and the best so far is composed."""
    rows = [{"when": [PLAN], "text": '{"order": ["p02"]}'}, {"text": "slow", "seconds": 600}]
    (home / "slow.json").write_text(json.dumps({"schema": "tessera.script/1", "replies": rows}))
    command = [BINARY, "optimize", "model.py", "--mind", "llm", "--model", "slow.json", "-o", "slow"]
    command += [*NO_PROPOSALS, *QUICK, "--json"]
    process = subprocess.Popen(
        command, env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True, preexec_fn=hear_signals
    )
    while sum(r["kind"] == "request" for r in lines_of(home / "slow/mind")) < 2:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert json.loads(out)["mind"]["stopped"] == "you stopped it"


def test_no_tool_of_an_agent_spends_the_users_money(home):
    from tessera.serving.schemas import input_schema, tools

    table = json.loads(tessera(home, "commands").stdout)
    (optimize,) = [c for c in tools(table) if c["name"] == "optimize"]
    shown = input_schema(optimize)["properties"]
    assert "effort" in shown and not {"mind", "llm", "endpoint", "budget-money", "archive"} & shown.keys()


NO_KEYS = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
REFUSED = {
    "TS0730": ("--model", "claude-x"),
    "TS0731": ("--model", "llama"),
    "TS0737": ("--model", "llama", "--provider", "openai", "--budget-money", "1"),
    "TS0738": ("--model", "llama", "--prices", "model.py"),
    "TS0739": ("--mind", "replay:nowhere"),
    "TS0741": ("--model", "none.json"),
    "TS0742": (),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_begin_is_refused_before_the_module_is_traced(home, code):
    mind = () if "--mind" in REFUSED[code] else ("--mind", "llm")
    done = tessera(home, "optimize", "model.py", *mind, *REFUSED[code], "-o", "none", env=NO_KEYS)
    d = json.loads(done.stdout)
    assert done.returncode == 3 and d["code"] == code, (d, done.stderr)
    assert d.get("help") or d.get("expected"), d
    assert "tracing" not in done.stderr
    if code == "TS0730":
        pytest.importorskip("anthropic")


def test_a_provider_that_has_no_such_model_and_one_that_is_down(home):
    pytest.importorskip("openai")
    words = ["--mind", "llm", "--model", "m", "--provider", "openai", "--mind-retries", "1", "-o", "down"]
    with serving(Turn(status=404, message="no m here")) as server:
        done = tessera(home, "optimize", "model.py", *words, "--endpoint", server.url + "/v1", env=NO_KEYS)
    d = json.loads(done.stdout)
    assert done.returncode == 3 and d["code"] == "TS0733" and "no m here" in d["found"], d
    done = tessera(home, "optimize", "model.py", *words, "--endpoint", server.url + "/v1", env=NO_KEYS)
    d = json.loads(done.stdout)
    assert done.returncode == 3 and d["code"] == "TS0735" and "2 attempts" in d["message"], d


def test_a_real_client_within_a_budget(home):
    """The whole way to a provider's server, over which the budget ends the run with what there is."""
    pytest.importorskip("anthropic")
    key = "sk-ant-of-this-test-alone"
    plan = '{"order": ["p01"]}'
    with serving(Turn(plan)) as server:
        words = ["--mind", "llm", "--model", "claude-x", "--endpoint", server.url, "--budget-calls", "1"]
        env = {**NO_KEYS, "ANTHROPIC_API_KEY": key}
        done = tessera(home, "optimize", "model.py", *words, *NO_PROPOSALS, *QUICK, "-o", "budget", env=env)
    assert done.returncode == 0, done.stderr
    (warning,) = [json.loads(line) for line in done.stderr.splitlines() if '"TS0736"' in line]
    assert "1 of 1 calls are made (--budget-calls)" in warning["message"]
    out = json.loads(done.stdout)
    assert out["mind"]["metrics"]["tokens_in"] == 15 and out["report"]["verification"]["ok"] is True
    headers = server.requests[0]["headers"]
    assert key in headers.get("x-api-key", "") + headers.get("authorization", "")
    said = [f for f in home.rglob("*") if f.is_file() and key.encode() in f.read_bytes()]
    assert said == [] and key not in done.stdout + done.stderr


def test_nobody_at_a_checkpoint(home):
    write_script(home, slow=0)
    words = ["--mind", "llm", "--model", "replies.json", "--approve", "plan", "-o", "nobody", "--json"]
    done = subprocess.run(
        [BINARY, "optimize", "model.py", *words],
        env=environment(home), cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 3 and json.loads(done.stdout)["code"] == "TS0744", done.stdout
    assert os.path.getsize(home / "nobody/mind/turns.jsonl") > 0
