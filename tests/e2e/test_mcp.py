"""`tessera mcp` as an agent sees it: the SDK's own client, over stdin and stdout and over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from core import BINARY, ROOT, environment

mcp = pytest.importorskip("mcp")
import httpx2  # noqa: E402
from mcp import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

LONG = pytest.mark.skipif("TESSERA_TEST_ALL" not in os.environ, reason="some ten seconds; TESSERA_TEST_ALL=1 runs it")
MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x) * 2 + 1


def get_inputs():
    return [torch.randn(512, 512)]
"""
SLOW = "import time\ntime.sleep(600)\n"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "slow.py").write_text(SLOW)
    (tmp_path / "outside.py").write_text(MODEL)
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    return folder


def stdio(root: Path, *words: str) -> Client:
    env = environment(root.parent / "home")
    return Client(
        StdioServerParameters(command=str(BINARY), args=["mcp", "--root", str(root), *words], env=env, cwd=str(root))
    )


def text_of(result) -> str:
    return "\n".join(c.text for c in result.content)


def table() -> list[dict]:
    done = subprocess.run([BINARY, "commands", "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["commands"]


def test_every_command_is_a_tool(root):
    async def go():
        async with stdio(root) as client:
            tools = {t.name: t for t in (await client.list_tools()).tools}
            assert set(tools) == {c["name"] for c in table() if not c["door"]} | {"skill", "files"}
            assert {"optimize", "try", "check"} <= set(tools) and not {"mcp", "serve"} & set(tools)
            listed = sum(len(t.model_dump_json(exclude_none=True)) for t in tools.values())
            assert listed < 38_000, f"an agent reads {listed} characters before its first call"
            shown = tools["try"].input_schema
            assert shown["required"] == ["model", "pattern"]
            assert "registry" not in shown["properties"] and "cache" not in shown["properties"]
            assert (
                "tessera.verdict/1" in tools["try"].output_schema["properties"]["data"]["properties"]["schema"]["enum"]
            )
            assert "skeleton" in text_of(await client.call_tool("skill", {}))
            assert "model.py" in text_of(await client.call_tool("files", {}))

    anyio.run(go)


def test_each_list_has_its_own_choices():
    from tessera.serving.schemas import input_schema, tools

    shown = tools({"commands": table()})
    assert shown
    for command in shown:
        properties = input_schema(command)["properties"]
        for p in command["parameters"]:
            if p["type"] == "list" and p["names"] == "nothing":
                assert properties[p["name"]]["items"].get("enum", []) == p["choices"], (command["name"], p["name"])


def test_a_file_as_text_and_answers_by_the_schema(root):
    """The client holds what comes to the output schema itself."""

    async def go():
        async with stdio(root) as client:
            done = await client.call_tool("explain", {"code": "TS0202"})
            assert not done.is_error and done.structured_content["data"]["schema"] == "tessera.explained/1"
            kernel = {"name": "rows.py", "text": (ROOT / "kernels" / "rows.py").read_text()}
            done = await client.call_tool("check", {"kernel": kernel})
            assert done.is_error and done.structured_content["data"]["schema"] == "tessera.diagnostic/1"
            assert "rows.py" in text_of(done)  # it has several kernels, and none is named
            gemm = {"name": "g.py:gemm", "text": (ROOT / "kernels" / "gemm.py").read_text()}
            done = await client.call_tool("check", {"kernel": gemm})
            assert done.structured_content["exit"] == 0 and done.structured_content["data"]["kernel"] == "gemm"
            done = await client.call_tool("registry", {"action": "export", "output": True})
            (file,) = done.structured_content["files"]
            assert json.loads(file["text"])["schema"] == "tessera.registry/2"

    anyio.run(go)


def test_what_a_call_wrote_stays(root):
    """Named in the answer, read by its address, given to another tool; its text is in the answer where it was asked for."""
    words = {"effort": "quick", "seconds": 1, "peers": ["eager"], "ablation": "false", "leftover": "eager"}

    async def go():
        async with stdio(root) as client:
            done = await client.call_tool("optimize", {"model": "model.py", **words})
            answer, text = done.structured_content, text_of(done)
            assert answer["exit"] == 0, text
            assert len(text) + len(json.dumps(answer)) < 20_000, text
            folder = answer["data"]["folder"]
            assert folder == "tessera://results/1/out/model" and f"written to {folder}" in text
            report = f"{folder}/report.json"
            assert answer["data"]["report"] == {"uri": report} and report in text
            assert all("text" not in f and f["uri"].startswith(folder) for f in answer["files"])
            full = text_of(await client.call_tool("files", {"read": report}))
            assert json.loads(full)["schema"] == "tessera.report/1"
            assert (await client.read_resource(report)).contents[0].text == full
            assert report in text_of(await client.call_tool("files", {}))
            assert report in {str(r.uri) for r in (await client.list_resources()).resources}
            for given in (folder, report):
                shown = await client.call_tool("report", {"report": given})
                assert shown.structured_content["data"]["schema"] == "tessera.report/1", text_of(shown)
            for wrong in ("tessera://results/2", "tessera://results/1/../../x", "tessera://results/"):
                assert (await client.call_tool("report", {"report": wrong})).is_error
                assert (await client.call_tool("files", {"read": wrong})).is_error
            refused = await client.call_tool("discover", {"model": f"{folder}/plan.json"})
            assert refused.is_error and "under the root, no result" in text_of(refused)
            done = await client.call_tool("optimize", {"model": "model.py", "output": True, **words})
            answer, text = done.structured_content, text_of(done)
            with_text = [f for f in answer["files"] if "text" in f]
            assert with_text and all(f["bytes"] <= 4 * 1024 for f in with_text), "long files of several have addresses"
            why = {f["left_out"] for f in answer["files"] if f not in with_text}
            assert why <= {"too long for this answer", "not text"}
            # Nothing is in an answer twice: `data` names the report's file.
            (report,) = [f for f in answer["files"] if f["name"] == "output/report.json"]
            assert answer["data"]["report"] == {"uri": report["uri"]} and report["uri"] in text
            assert all(f["text"] in text for f in with_text)

    anyio.run(go)


def test_a_long_text_is_read_in_pieces(root):
    async def go():
        async with stdio(root) as client:
            page = "tessera://docs/errors.md"
            full = (await client.read_resource(page)).contents[0].text
            size = 64 * 1024
            assert size < len(full)
            read = []
            for first in range(0, len(full), size):
                piece = text_of(await client.call_tool("files", {"read": page, "from": first}))
                ended = first + size >= len(full)
                assert ended or piece.endswith(f'{len(full)} characters in all; read on with "from": {first + size}]')
                read.append(piece if ended else piece.rpartition("\n[")[0])
            assert "".join(read) == full

    anyio.run(go)


def test_what_a_killed_server_left_is_taken_away(tmp_path, monkeypatch):
    import tempfile

    from tessera.serving.results import place_of_results

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "tessera-results-left"
    (left / "kept" / "1").mkdir(parents=True)
    (left / "lock").touch()
    with place_of_results() as first, place_of_results() as second:
        assert not left.exists()
        assert first.exists() and second.exists(), "those of a server that runs stay"
        assert first != second
    assert not list(tmp_path.iterdir())


def test_texts_name_arguments():
    from tessera.serving.schemas import description, input_schema, tools
    from tessera.serving.words import diagnosed

    shown = {c["name"]: c for c in tools({"commands": table()})}
    for command in shown.values():
        texts = [description(command), *(p["description"] for p in input_schema(command)["properties"].values())]
        own = {p["name"] for p in command["parameters"] if p["names"] != "place"}
        for text in texts:
            assert "Ctrl-C" not in text and "--json" not in text and " -o" not in text, text
            assert not text.startswith("tessera ") and not [n for n in own if f" --{n} " in text], text
    assert "`propose` FILE takes subgraphs" in description(shown["discover"])
    help = "add --size M=NUMBER, not --sizes; `tessera run k.py --size M=1` runs it; nvcc --expt-relaxed-constexpr"
    said = diagnosed(shown["interpret"], {"code": "TS", "help": [help], "data": {"x": "--size"}})
    assert said == {"code": "TS", "help": [help.replace("--size M=N", "`size` M=N")], "data": {"x": "--size"}}


def test_a_given_text_goes_by_its_name():
    from tessera.serving.calls import by_names

    told = json.dumps(
        {"text": "wrong:\n/tmp/tessera-mcp-x1y/given/k.cpp:7: `/tmp/tessera-mcp-z/given/k.cpp`", "at": "/tmp/k.cpp"}
    )
    assert json.loads(by_names(told)) == {"text": "wrong:\nk.cpp:7: `k.cpp`", "at": "/tmp/k.cpp"}


REFUSED = [
    ("discover", {}, "'model' is a required property"),
    ("discover", {"model": "model.py", "efforts": "x"}, "Additional properties"),
    ("discover", {"model": "../outside.py"}, "not under the root"),
    ("discover", {"model": "/etc/passwd"}, "not under the root"),
    ("discover", {"model": "link.py"}, "not under the root"),
    ("discover", {"model": "none.py"}, "there is no `none.py`"),
    ("discover", {"model": {"name": "m.py", "text": MODEL}}, "outside of the sandbox"),
    ("try", {"model": "model.py", "pattern": "p01", "unsandboxed": True}, "Additional properties"),
    ("check", {"kernel": {"name": "../k.py", "text": ""}}, "no plain file name"),
    ("registry", {"action": "import", "what": "/etc/passwd"}, "not under the root"),
    ("explain", {"code": "--output=/tmp/x"}, "TS"),
    ("explain", {"code": "TS0202", "extra": 1}, "Additional properties"),
    ("check", {"kernel": {"name": "k.py", "text": 5}}, "5 is not of type 'string'"),
]


def test_what_is_refused(root):
    """By one server: whatever an argument is, the next call is answered."""

    async def go():
        async with stdio(root) as client:
            for tool, arguments, says in REFUSED:
                done = await client.call_tool(tool, arguments)
                assert done.is_error and says in text_of(done), (arguments, text_of(done))
            with pytest.raises(MCPError, match="there is no tool `nothing`"):
                await client.call_tool("nothing", {})

    anyio.run(go)


def test_resources(root):
    async def go():
        async with stdio(root) as client:
            found = {str(r.uri): r.description for r in (await client.list_resources()).resources}
            assert found["tessera://docs/try.md"] == "One kernel by hand: `tessera try`"
            wanted = {"tessera://docs/language.md", "tessera://kernels/gemm.py", "tessera://registry"}
            assert wanted <= found.keys() and "tessera://knowledge/examples/cutlass_sm_90a.json" in found
            read = await client.read_resource("tessera://kernels/gemm.py")
            assert read.contents[0].text == (ROOT / "kernels" / "gemm.py").read_text()
            with pytest.raises(MCPError, match="no resource"):
                await client.read_resource("tessera://docs/../pyproject.toml")

    anyio.run(go)


def processes_of(home: Path) -> list[str]:
    """Those that have this home in their environment: whatever a server started."""
    wanted = f"TESSERA_HOME={home}".encode()
    out = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                out.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass
    return out


def test_a_cancelled_call_leaves_no_process(root):
    told: list[str] = []
    home = root.parent / "home"

    async def progress(count, total, message):
        told.append(message)

    def traces() -> bool:
        return any("tracer_process" in line for line in processes_of(home))

    async def until(condition) -> None:
        with anyio.fail_after(40):
            while not condition():
                await anyio.sleep(0.1)

    async def go():
        async with stdio(root) as client, anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def long() -> None:
                with scope:
                    await client.call_tool("discover", {"model": "slow.py"}, progress_callback=progress)

            group.start_soon(long)
            await until(lambda: told and traces())
            scope.cancel()
            await until(lambda: not traces())
            # The server goes on, and nothing is locked.
            done = await client.call_tool("explain", {"code": "TS0202"})
            assert not done.is_error

    anyio.run(go)
    assert any("tracing" in line for line in told)


@asynccontextmanager
async def http(root: Path):
    env = environment(root.parent / "home", TESSERA_MCP_TOKEN="of-the-test")
    words = [str(BINARY), "mcp", "--http", "--root", str(root)]
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process.stderr.readline().split()[0]
        finally:
            process.terminate()
            process.wait(20)


def test_http_wants_the_token(root):
    async def go():
        async with http(root) as url:
            assert url.startswith("http://127.0.0.1:")
            for header in ({}, {"Authorization": "Bearer other"}):
                async with httpx2.AsyncClient(headers=header) as web:
                    answer = await web.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
                    assert answer.status_code == 401
            right = httpx2.AsyncClient(headers={"Authorization": "Bearer of-the-test"})
            async with right as web, Client(streamable_http_client(url, http_client=web)) as client:
                done = await client.call_tool("explain", {"code": "TS0202"})
                assert done.structured_content["data"]["schema"] == "tessera.explained/1"

    anyio.run(go)


@LONG
def test_from_a_skeleton_to_a_verdict(root):
    async def go():
        async with stdio(root) as client:
            where = {"model": "model.py", "pattern": "p01"}
            found = await client.call_tool("discover", {"model": "model.py"})
            where["pattern"] = found.structured_content["data"]["patterns"][0]["id"]
            first = (await client.call_tool("try", {**where, "skeleton": True})).structured_content["data"]
            name = "k" + first["ending"]
            broken = first["text"].replace("store(&", "stor(&", 1)
            for text, failure in ((broken, "does_not_compile"), (first["text"], "none")):
                source = {"name": name, "text": text}
                done = await client.call_tool("try", {**where, "source": source, "peers": ["eager"]})
                assert done.structured_content["data"]["failure"] == failure, text_of(done)
            assert done.structured_content["data"]["measured"]["peers"]

    start = time.monotonic()
    anyio.run(go)
    assert time.monotonic() - start < 300
