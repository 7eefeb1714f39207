"""One call of the program: its words, its progress, its answer; when it is cancelled, its end."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from tessera.serving.files import Place, Refused, given, produced
from tessera.serving.results import SCHEME, Results, said_once
from tessera.serving.schemas import GIVEN
from tessera.serving.words import diagnosed, for_tools

MEANINGS = (
    "done",
    "something computed is wrong",
    "undecided or unsupported here",
    "the input or the environment is at fault",
    "a fault of tessera",
)
SECONDS_TO_STOP = 20  # for the best so far to be kept
Tell = Callable[[dict], Awaitable[None]]


@dataclass(frozen=True)
class Program:
    binary: str
    place: Place
    results: Results
    own: dict = field(default_factory=dict)  # values of parameters that name the user's state


def read_by(program: Program, p: dict, value: str | dict, folder: Path) -> str:
    """The path of what a parameter names: of the root, of an earlier call, or given as text."""
    if not isinstance(value, str) or not value.startswith(SCHEME):
        return given(program.place, p, value, folder)
    if p["names"] == "model":  # it would run outside of the sandbox, and an agent may have written it
        raise Refused(f"{p['name']} is a file under the root, no result")
    return str(program.results.path(value))


def words_of(program: Program, command: dict, arguments: dict, folder: Path) -> list[str]:
    """The command line. Positional ones stand behind `--`: no text of an agent is taken for an option."""
    options, positional = ["--wire"], []
    first = arguments.get(command["parameters"][0]["name"]) if command["parameters"] else None
    for p in command["parameters"]:
        value = program.own.get(p["name"]) if p["names"] == "place" else arguments.get(p["name"])
        if value is None or value is False:
            continue
        if p["names"] == "output":
            value = str(folder / "written" / p["name"])
        elif p["names"] in GIVEN and (not p["only_when"] or p["only_when"] == first):
            value = read_by(program, p, value, folder / "given")
        elif isinstance(value, dict):
            raise Refused(f"{p['name']} is a text here, no file")
        several = value if isinstance(value, list) else [value]
        if p["positional"]:
            positional += [w for v in several for w in (str(v).split(" ") if p["words"] else [str(v)])]
        elif value is True and p["type"] == "flag":
            options.append(f"--{p['name']}")
        else:
            options += [f"--{p['name']}={v}" for v in several]
    words = [command["name"], *options, *(["--", *positional] if positional else [])]
    if any("\0" in w for w in words):
        raise Refused("an argument has no zero byte")
    return words


def session_of(process: int) -> list[int]:
    """The processes of a session that lives still."""
    out = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[3]) == process and fields[0] != "Z":
            out.append(int(entry.name))
    return out


async def end(process: anyio.abc.Process, keeps: bool) -> None:
    """First asked, where the best so far is kept; then whatever is left of its session is killed."""
    if keeps and process.returncode is None:
        process.send_signal(signal.SIGTERM)
        with anyio.move_on_after(SECONDS_TO_STOP):
            await process.wait()
    for one in session_of(process.pid):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass


# Where a text that was given lies while a call runs, and lay in earlier ones: the agent knows it by its name.
_GIVEN_AT = re.compile(r"""(?:/[^\s"'`()\\/]+)*/tessera-mcp-[^\s"'\\/]+/given/""")


def by_names(line: str) -> str:
    """A line of the program, with the files that were given as text under the names that they were given."""
    return _GIVEN_AT.sub("", line)


async def lines_of(stream: anyio.abc.ByteReceiveStream):
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


async def outcome_of(process: anyio.abc.Process, tell: Tell) -> dict:
    said, outcome = [], None

    async def errors() -> None:
        async for line in lines_of(process.stderr):
            said.append(by_names(line.decode(errors="replace")))
            del said[:-40]

    async with anyio.create_task_group() as group:
        group.start_soon(errors)
        async for line in lines_of(process.stdout):
            try:
                event = json.loads(by_names(line.decode()))
            except ValueError:
                said.append(line.decode(errors="replace"))
                continue
            if "progress" in event:
                await tell(event["progress"])
            outcome = event.get("outcome", outcome)
    await process.wait()
    if outcome is None:
        raise Refused(f"the program ended (exit {process.returncode}) without an answer:\n" + "\n".join(said))
    return outcome


async def call(program: Program, command: dict, arguments: dict, tell: Tell) -> tuple[dict, str]:
    """The answer by the tool's output schema, and its text for people."""
    with tempfile.TemporaryDirectory(prefix="tessera-mcp-") as name:
        folder = Path(name)
        for part in ("work", "written"):
            (folder / part).mkdir()
        words = words_of(program, command, arguments, folder)
        process = await anyio.open_process(
            [program.binary, *words], cwd=folder / "work", stdin=-3, start_new_session=True
        )
        try:
            outcome = await outcome_of(process, tell)
        finally:
            with anyio.CancelScope(shield=True):
                await end(process, command["keeps"])
                await process.aclose()
        folders = [folder / "written", folder / "work"]
        return answered(program, command, arguments, outcome, folders)


def answered(program: Program, command: dict, arguments: dict, outcome: dict, folders: list[Path]) -> tuple[dict, str]:
    results, data, text, rows = program.results, outcome["data"], outcome["text"], []
    diagnostics = [diagnosed(command, d) for d in outcome["diagnostics"]]
    if not isinstance(data.get("text"), str):  # else it is a source
        text = for_tools(command, text)
    if kept := results.keep(folders):
        with_text = any(arguments.get(p["name"]) for p in command["parameters"] if p["names"] == "output")
        files = {uri: p for uri, p in results.listed().items() if p.is_relative_to(kept)}
        rows = produced(files, kept, with_text)
        data = said_once(data, rows, files)
        data = json.loads(results.named(json.dumps(data), kept, folders))
        text = results.named(text, kept, folders)
    answer = {
        "exit": outcome["exit"],
        "meaning": MEANINGS[outcome["exit"]],
        "data": data,
        "diagnostics": diagnostics,
        "files": rows,
    }
    return answer, text
