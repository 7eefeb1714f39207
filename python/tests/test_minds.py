"""The providers of language models by their own packages, against a local server that does what servers do."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_models import Turn, serving
from tessera.common.errors import Error
from tessera.minds import patience
from tessera.minds.keys import Secrets, key_of
from tessera.minds.patience import Patience
from tessera.minds.provider import Again, Asked, Said, all_providers, check_package, provider_of

PYTHON = Path(__file__).resolve().parents[1]
ASKED = Asked("be brief", "the view", 100)
KEY = "sk-very-secret-0123456789"
TEXT = "a reply of some forty characters, streamed"
both = pytest.mark.parametrize("name", ["anthropic", "openai"])


def call_of(name: str, url: str):
    pytest.importorskip(name)
    return all_providers()[name].connect("some-model", KEY, url + ("/v1" if name == "openai" else ""))


def ask(name: str, url: str, **more):
    waits = []
    quick = Patience(first=0.001, told=waits.append, **more)
    return patience.ask(call_of(name, url), ASKED, quick), waits


@both
def test_a_reply_streams_in(name):
    heard = []
    with serving(Turn(TEXT)) as server:
        said = call_of(name, server.url)(ASKED, heard.append)
    assert said == Said(TEXT, "whole", 15, 22)
    assert len(heard) > 3 and "".join(heard) == TEXT
    (request,) = server.requests
    body = request["body"]
    assert body["model"] == "some-model" and body["stream"] is True and body["max_tokens"] == 100
    assert "be brief" in json.dumps(body) and body["messages"][-1] == {"role": "user", "content": "the view"}
    assert KEY in request["headers"].get("x-api-key", "") + request["headers"].get("authorization", "")


@both
def test_a_busy_server_is_asked_again_when_it_says(name):
    busy = Turn(status=429, message="slow down", headers={"retry-after": "0.05"})
    with serving(busy, Turn(status=503, message="overloaded"), Turn(TEXT)) as server:
        answer, waits = ask(name, server.url)
    assert answer.said.text == TEXT and answer.attempts == 3 and len(server.requests) == 3
    assert "429" in waits[0] and "in 0.1 s" in waits[0] and "503" in waits[1] and "in 0.0 s" in waits[1]


@both
@pytest.mark.parametrize("breaks", ["connection", "early"])
def test_a_reply_that_breaks_off_is_asked_for_again(name, breaks):
    with serving(Turn("half of it", breaks=breaks), Turn(TEXT)) as server:
        answer, _ = ask(name, server.url)
    assert answer.said.text == TEXT and answer.attempts == 2
    assert answer.broken == ["half of it"]


@both
def test_a_reply_that_was_cut_off_says_so(name):
    with serving(Turn(TEXT, stop="length")) as server:
        assert call_of(name, server.url)(ASKED, lambda text: None).ending == "length"


def test_a_server_that_tells_no_usage():
    with serving(Turn(TEXT, usage=False)) as server:
        assert call_of("openai", server.url)(ASKED, lambda text: None) == Said(TEXT, "whole", None, None)


@both
@pytest.mark.parametrize(
    "turn, code",
    [
        (Turn(status=401, message="bad key"), "TS0734"),
        (Turn(status=404, message="no such model"), "TS0733"),
        (Turn(status=400, message="prompt is too long"), "TS0734"),
        (Turn(status=429, message="insufficient_quota"), "TS0734"),
    ],
)
def test_what_no_attempt_mends_is_an_error_at_once(name, turn, code):
    with serving(turn, Turn(TEXT)) as server, pytest.raises(Error) as raised:
        ask(name, server.url)
    assert raised.value.diagnostic["code"] == code and turn.message in raised.value.diagnostic["found"]
    assert len(server.requests) == 1


@both
def test_a_server_that_is_down_is_given_up(name):
    with serving() as server:
        pass
    with pytest.raises(Error) as raised:
        ask(name, server.url, retries=2)
    d = raised.value.diagnostic
    assert d["code"] == "TS0735" and "3 attempts" in d["message"] and "reached" in d["found"]


def test_a_server_that_asks_for_an_hour_is_given_up_at_once():
    later = Turn(status=429, message="later", headers={"retry-after": "3600"})
    with serving(later) as server, pytest.raises(Error) as raised:
        ask("openai", server.url)
    assert raised.value.diagnostic["code"] == "TS0735" and "3600 s" in raised.value.diagnostic["found"]


def test_waits_double_within_bounds_and_differ():
    p = Patience(first=1, longest=8, random=random.Random(1))
    for attempt, most in enumerate([1, 2, 4, 8, 8, 8]):
        waits = {p.wait_for(attempt, None) for _ in range(50)}
        assert len(waits) == 50 and most / 2 <= min(waits) and max(waits) <= most
    assert p.wait_for(0, 5.0) == 5.0


def test_a_run_that_is_stopped_waits_no_longer():
    def busy(asked, heard):
        raise Again("busy", 60.0)

    with pytest.raises(patience.Unwanted):
        patience.ask(busy, ASKED, Patience(wanted=lambda: False))


def test_providers_by_the_name_of_a_model():
    assert provider_of("auto", "claude-x").NAME == "anthropic"
    assert provider_of("auto", "gpt-x").NAME == "openai"
    assert provider_of("auto", "replies.json").NAME == "scripted"
    assert provider_of("openai", "llama").NAME == "openai"
    for wrong in (("auto", "llama"), ("antropic", "claude-x")):
        with pytest.raises(Error) as raised:
            provider_of(*wrong)
        assert raised.value.diagnostic["code"] == "TS0731" and "scripted" in raised.value.diagnostic["expected"]


def test_a_provider_without_its_package():
    provider = SimpleNamespace(NAME="far", PACKAGE="no_such_package_of_models")
    with pytest.raises(Error, match="TS0732"):
        check_package(provider)
    check_package(SimpleNamespace(NAME="near", PACKAGE="json"))
    check_package(SimpleNamespace(NAME="own", PACKAGE=""))


def test_keys(monkeypatch):
    provider = all_providers()["openai"]
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert key_of(provider, "") == (KEY, "$OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr("tessera.minds.keys.of_keyring", lambda name: KEY if name == "OPENAI_API_KEY" else None)
    assert key_of(provider, "")[0] == KEY
    monkeypatch.setattr("tessera.minds.keys.of_keyring", lambda name: None)
    assert key_of(provider, "http://127.0.0.1:8000/v1")[1].startswith("none")
    with pytest.raises(Error) as raised:
        key_of(provider, "https://models.example/v1")
    assert raised.value.diagnostic["code"] == "TS0730" and "OPENAI_API_KEY" in raised.value.diagnostic["expected"]


def test_a_key_of_a_keyring(monkeypatch):
    keyring = pytest.importorskip("keyring")
    from keyring.backend import KeyringBackend
    from keyring.errors import KeyringLocked

    class One(KeyringBackend):
        priority = 1
        locked = False

        def get_password(self, service, name):
            if self.locked:
                raise KeyringLocked
            return KEY if (service, name) == ("tessera", "OPENAI_API_KEY") else None

        set_password = delete_password = None

    before = keyring.get_keyring()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    try:
        keyring.set_keyring(One())
        assert key_of(all_providers()["openai"], "")[0] == KEY
        One.locked = True
        with pytest.raises(Error):
            key_of(all_providers()["openai"], "")
    finally:
        keyring.set_keyring(before)


def test_a_key_is_taken_out_of_all_that_is_said():
    said = {"text": f"x{KEY}y", "list": [KEY, 3], "none": None}
    assert Secrets(KEY).hide(said) == {"text": "x***y", "list": ["***", 3], "none": None}
    assert Secrets("").hide(said) == said


def test_a_provider_is_one_file(tmp_path, monkeypatch):
    from tessera.minds import providers

    text = """
from tessera.minds.provider import Said
NAME, PACKAGE, KEYS = "echo", "", ()
def claims(model): return model == "echo"
def connect(model, key, endpoint): return lambda asked, heard: Said(asked.view)
"""
    (tmp_path / "echo_of_test.py").write_text(text)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(tmp_path)])
    found = provider_of("auto", "echo")
    assert found.NAME == "echo" and found.connect("echo", "", "")(ASKED, print).text == ASKED.view


class Process:
    """`tessera.mind_process` as the engine talks to it."""

    def __init__(self, **env: str):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tessera.mind_process"],
            env={**os.environ, "PYTHONPATH": str(PYTHON), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []

    def call(self, method: str, wanted: bool = True, **params) -> dict:
        self.write({"id": 1, "method": method, "params": params})
        while True:
            self.lines.append(self.process.stdout.readline())
            message = json.loads(self.lines[-1])
            if message.get("method") == "wanted":
                self.write({"id": message["id"], "result": {"wanted": wanted}})
            elif message.get("id") == 1 and "method" not in message:
                return message

    def write(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def all_said(self) -> str:
        rest, errors = self.process.communicate(timeout=60)
        return "".join(self.lines) + rest + errors


@both
def test_the_process_tells_a_key_to_nobody(name):
    """Not where the server repeats it in a reply, an error or a busy answer, nor in its log, debug logs asked for."""
    pytest.importorskip(name)
    turns = [
        Turn(status=429, message=f"busy, {KEY}", headers={"retry-after": "0.01"}),
        Turn(f"half {KEY}", breaks="connection"),
        Turn(f"your key is {KEY}"),
        Turn(status=401, message=f"{KEY} is wrong"),
    ]
    key = all_providers()[name].KEYS[0]
    with serving(*turns) as server:
        p = Process(**{key: KEY, "OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug"})
        endpoint = server.url + ("/v1" if name == "openai" else "")
        opened = p.call("open", provider=name, model="some-model", endpoint=endpoint, retries=3)
        assert opened["result"] == {"provider": name, "key": f"${key}"}
        said = p.call("ask", system="s", view="v", max_tokens=10)["result"]
        refused = p.call("ask", system="s", view="v", max_tokens=10)["error"]
    assert said["text"] == "your key is ***" and said["attempts"] == 3 and said["exact"] is False
    assert said["input"] == 15 + 2 and said["output"] > 22
    assert refused["code"] == "TS0734" and "***" in refused["found"]
    assert KEY not in p.all_said()


def test_the_process_stops_when_the_reply_is_not_wanted():
    busy = Turn(status=429, message="busy", headers={"retry-after": "60"})
    pytest.importorskip("openai")
    with serving(busy) as server:
        p = Process()
        p.call("open", provider="openai", model="m", endpoint=server.url + "/v1", retries=3)
        assert p.call("ask", wanted=False, system="", view="", max_tokens=1)["error"]["code"] == "TS0743"
        p.all_said()


def test_a_script_says_what_fits(tmp_path):
    script = tmp_path / "replies.json"
    rows = [{"when": ["p01", "fix"], "text": "mend"}, {"unless": ["p01"], "text": "see", "file": "k.cpp"}]
    script.write_text(json.dumps({"schema": "tessera.script/1", "replies": rows}))
    (tmp_path / "k.cpp").write_text("int x;\n")
    call = all_providers()["scripted"].connect(str(script), "", "")
    assert call(Asked("fix", "p01", 1), print).text == "mend"
    assert call(Asked("write", "p02", 1), print).text == "see\n```\nint x;\n```\n"
    with pytest.raises(Error) as raised:
        call(Asked("write", "p01", 1), print)
    assert raised.value.diagnostic["code"] == "TS0741"
    for text in ("no json", '{"schema": "other"}', '{"schema": "tessera.script/1", "replies": [{"wen": []}]}'):
        script.write_text(text)
        with pytest.raises(Error) as raised:
            all_providers()["scripted"].connect(str(script), "", "")
        assert raised.value.diagnostic["code"] == "TS0741"
