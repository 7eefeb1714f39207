"""`tessera mcp`: the command table to agents, by the Model Context Protocol's own package. The program starts it with its
arguments as JSON."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from tessera.common import errors

try:
    import anyio
    import jsonschema
    import mcp_types as types
    from mcp.server.lowlevel.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError
except ModuleNotFoundError:
    missing = errors.diagnostic(
        "TS0716",
        "process.no_mcp",
        "`tessera mcp` needs the package mcp, which this Python does not have",
        helps=[f"{sys.executable} -m pip install 'mcp>=2.3,<3'"],
    )
    print(errors.to_text(missing), file=sys.stderr)
    sys.exit(3)

from tessera.serving import resources  # noqa: E402
from tessera.serving.calls import Program, call  # noqa: E402
from tessera.serving.files import Place, Refused  # noqa: E402
from tessera.serving.results import Results, place_of_results  # noqa: E402
from tessera.serving.schemas import description, input_schema, output_schema, tools  # noqa: E402

INVALID = -32602  # JSON-RPC: invalid params
MOST_READ = 64 * 1024  # characters that one call of `files` gives


def skill() -> str:
    return (resources.home() / "docs" / "skill.md").read_text()


FILES = types.Tool(
    name="files",
    description="list what other tools take as paths: the Python and kernel files under the root, and what calls wrote",
    input_schema={
        "type": "object",
        "properties": {
            "read": {"type": "string", "description": "the `uri` of a result or a resource: its text"},
            "from": {"type": "integer", "minimum": 0, "description": "of a long text: the first character to read"},
        },
        "additionalProperties": False,
    },
)
SKILL = types.Tool(
    name="skill",
    description="read first: how to go from a module to a faster kernel with these tools",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
)


def said(text: str, *, wrong: bool = False, data: dict | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=wrong, structured_content=data
    )


def files_under(root: Path) -> str:
    endings = {".py", ".cu", ".cpp", ".cc", ".cxx"}
    found = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.suffix in endings and p.is_file())
    return "\n".join(found[:1000]) + (f"\nand {len(found) - 1000} more" if len(found) > 1000 else "")


class Tools:
    """The handlers of a server."""

    def __init__(self, program: Program, table: dict):
        self.program = program
        self.commands = {c["name"]: c for c in tools(table)}
        self.busy = anyio.Lock()  # two timed runs would disturb each other

    async def list(self, ctx, params) -> types.ListToolsResult:
        made = [
            types.Tool(name=n, description=description(c), input_schema=input_schema(c), output_schema=output_schema(c))
            for n, c in self.commands.items()
        ]
        return types.ListToolsResult(tools=[SKILL, FILES, *made])

    async def call(self, ctx, params) -> types.CallToolResult:
        arguments = params.arguments or {}
        if params.name == SKILL.name:
            return said(skill())
        if params.name == FILES.name:
            return await self.files(arguments)
        command = self.commands.get(params.name)
        if command is None:
            raise MCPError(INVALID, f"there is no tool `{params.name}`; there are: {', '.join(self.commands)}")
        try:
            jsonschema.validate(arguments, input_schema(command))
        except jsonschema.ValidationError as e:
            where = ".".join(map(str, e.absolute_path)) or "the arguments"
            return said(f"{where}: {e.message}", wrong=True)
        count = 0

        async def tell(event: dict) -> None:
            nonlocal count
            count += 1
            message = f"{event.get('stage', '')}: {event.get('message', '')}"
            await ctx.session.report_progress(count, None, message)

        works = any(p["names"] in ("model", "kernel_file") for p in command["parameters"])
        try:
            async with self.busy if works else nullcontext():
                answer, text = await call(self.program, command, arguments, tell)
        except Refused as e:
            return said(str(e), wrong=True)
        for row in answer["files"]:
            text += f"\n--- {row['name']}, {row['bytes']} bytes: {row['uri']}"
            text += f"\n{row['text']}" if "text" in row else ""
        if any("text" not in row for row in answer["files"]):
            text += (
                '\nto read one: `files` with "read", or the resource of that address; it stays while the server runs'
            )
        return said(text, wrong=answer["exit"] >= 3, data=answer)

    async def files(self, arguments: dict) -> types.CallToolResult:
        uri = arguments.get("read")
        if uri is None:
            written = "".join(f"\n{address}" for address in self.program.results.listed())
            return said(files_under(self.program.place.root) + written)
        first = arguments.get("from", 0)
        try:
            text = await self.text_of(str(uri))
        except Refused as e:
            return said(str(e), wrong=True)
        end = first + MOST_READ
        more = f'\n[{len(text)} characters in all; read on with "from": {end}]' if end < len(text) else ""
        return said(text[first:end] + more)

    async def text_of(self, uri: str) -> str:
        found = resources.listed(self.program.place.root, self.program.results)
        if uri not in found:
            raise Refused(f"there is no resource {uri}")
        if (path := found[uri]) is not None:
            return resources.text_of(uri, path)

        async def quiet(event: dict) -> None:
            """A resource has no progress to tell."""

        _, text = await call(self.program, self.commands["registry"], {"action": "list"}, quiet)
        return text

    async def resources(self, ctx, params) -> types.ListResourcesResult:
        found = resources.listed(self.program.place.root, self.program.results)
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=uri.removeprefix("tessera://"), description=resources.about(path) or None)
                for uri, path in found.items()
            ]
        )

    async def read(self, ctx, params) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await self.text_of(uri)
        except Refused as e:
            raise MCPError(INVALID, str(e)) from None
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
        )


def guarded(app, token: str):
    """An ASGI application that answers only who has the token."""
    wanted = f"Bearer {token}".encode()

    async def answer(scope, receive, send):
        if scope["type"] == "http":
            header = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(header, wanted):
                head = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": head})
                await send({"type": "http.response.body", "body": b"the token is missing or wrong\n"})
                return
        await app(scope, receive, send)

    return answer


async def over_http(server: Server, port: int) -> None:
    import uvicorn  # comes with mcp

    token = os.environ.get("TESSERA_MCP_TOKEN") or secrets.token_urlsafe(32)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()  # before the address is told: who reads it connects at once
        told = "" if "TESSERA_MCP_TOKEN" in os.environ else f" token {token}"
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp{told}", file=sys.stderr, flush=True)
        config = uvicorn.Config(guarded(server.streamable_http_app(), token), log_level="warning")
        await uvicorn.Server(config).serve([listening])


async def serve(given: dict, kept: Path) -> None:
    binary = os.environ["TESSERA_BINARY"]
    done = subprocess.run([binary, "commands", "--json"], check=True, capture_output=True, text=True)
    place = Place(Path(given["root"]).resolve(), given.get("unsandboxed", False))
    own = {k: str(Path(given[k]).resolve()) for k in ("registry", "cache") if given.get(k)}
    own["unsandboxed"] = place.unsandboxed  # of commands that have it: no agent chooses it
    handlers = Tools(Program(binary, place, Results(kept), own), json.loads(done.stdout))
    server = Server(
        "tessera",
        instructions="Kernels for PyTorch modules: written, proved, timed. Call the tool `skill` first.",
        on_list_tools=handlers.list,
        on_call_tool=handlers.call,
        on_list_resources=handlers.resources,
        on_read_resource=handlers.read,
    )
    if given.get("http"):
        return await over_http(server, int(given["port"]))
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    with place_of_results() as kept:
        anyio.run(serve, json.loads(sys.argv[1]), kept)
