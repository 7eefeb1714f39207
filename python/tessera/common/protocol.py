"""The protocol between the engine and PyTorch (docs/protocol.md): JSON lines, symmetric, nested requests."""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from tessera.common.errors import Error, fail

Handler = Callable[[dict], dict]


class Closed(Exception):
    """The other side is gone."""


def on_the_wire(diagnostic: dict) -> dict:
    """A diagnostic as the engine reads it: empty fields left out, help under `help`."""
    out = {key: value for key, value in diagnostic.items() if value and key != "helps"}
    if diagnostic.get("helps"):
        out["help"] = list(diagnostic["helps"])
    return out


def from_the_wire(diagnostic: dict) -> dict:
    return {**diagnostic, "helps": diagnostic.get("help", [])}


def diagnostic_of(error: BaseException) -> dict:
    """An Error's own diagnostic; any other exception is a fault of ours, with the end of its traceback as notes."""
    if isinstance(error, Error):
        return error.diagnostic
    lines = traceback.format_exception(error)
    return fail(
        "TS0901",
        "internal.exception",
        f"{type(error).__name__}: {error}".strip()[:2000],
        notes=[line.rstrip() for line in lines[-4:-1]],
    ).diagnostic


class Connection:
    """One end of the protocol. `handlers` answer requests, also those that arrive while a call of ours waits;
    `notified` hears notifications."""

    def __init__(
        self,
        reader: BinaryIO,
        writer: BinaryIO,
        handlers: dict[str, Handler] | None = None,
        notified: Callable[[str, dict], None] | None = None,
    ):
        self._reader, self._writer = reader, writer
        self.handlers = dict(handlers or {})
        self.notified = notified
        self.after_reply: Callable[[dict, BaseException | None], None] | None = None
        self._next_id = 1

    def _write(self, message: dict) -> None:
        try:
            self._writer.write(json.dumps(_plain(message), allow_nan=False).encode() + b"\n")
            self._writer.flush()
        except (BrokenPipeError, ValueError) as error:
            if isinstance(error, BrokenPipeError):
                raise Closed from error
            raise

    def _read(self) -> dict:
        line = self._reader.readline()
        if not line:
            raise Closed
        return json.loads(line)

    def notify(self, method: str, params: dict | None = None) -> None:
        self._write({"method": method, "params": params or {}})

    def call(self, method: str, params: dict | None = None) -> dict:
        """Asks the other side and waits; raises Error with its diagnostic, or Closed."""
        request = self._next_id
        self._next_id += 1
        self._write({"id": request, "method": method, "params": params or {}})
        while True:
            message = self._read()
            if "method" in message:
                self._dispatch(message)
            elif message.get("id") == request:
                if "error" in message:
                    raise Error(from_the_wire(message["error"]))
                return message.get("result", {})

    def _dispatch(self, message: dict) -> None:
        method, params = message["method"], message.get("params", {})
        if "id" not in message:
            if self.notified:
                self.notified(method, params)
            return
        raised: BaseException | None = None
        try:
            if method not in self.handlers:
                raise fail("TS0705", "peer.unknown_method", f"this process answers no `{method}`")
            reply = {"id": message["id"], "result": self.handlers[method](params)}
        except Closed:
            raise
        except Exception as error:
            raised = error
            if not isinstance(error, Error):
                traceback.print_exc(file=sys.stderr)
            reply = {"id": message["id"], "error": on_the_wire(diagnostic_of(error))}
        self._write(reply)
        if self.after_reply:
            self.after_reply(message, raised)

    def serve(self) -> None:
        """Answers requests until the other side closes."""
        try:
            while True:
                self._dispatch(self._read())
        except Closed:
            return


def over_stdio(handlers: dict[str, Handler]) -> Connection:
    """The connection of a spawned process. Its stdout belongs to the protocol from here on: whatever else prints there,
    Python or native code, goes to stderr."""
    protocol_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return Connection(os.fdopen(os.dup(0), "rb"), protocol_out, handlers)


def _plain(value: Any) -> Any:
    """JSON knows no inf and nan: they travel as the strings "inf", "-inf", "nan"."""
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if value in (float("inf"), float("-inf")):
            return "inf" if value > 0 else "-inf"
        return value
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
