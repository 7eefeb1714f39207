"""A server on 127.0.0.1 that speaks the protocols of both providers: it streams, is busy, breaks off and refuses, in the order
that a test gives."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 7  # characters of a reply in one event


@dataclass
class Turn:
    """What one request gets."""

    text: str = ""
    status: int = 200
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    breaks: str = ""  # "connection": the stream is torn; "early": it ends as if it were whole
    stop: str = "end"
    usage: bool = True


@dataclass
class Server:
    url: str
    turns: list[Turn]
    requests: list[dict] = field(default_factory=list)  # {"path", "headers", "body"}


def pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def event(data: dict, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()


def anthropic_events(turn: Turn) -> list[bytes]:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None}
    message |= {"stop_sequence": None, "usage": {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 4}}
    out = [event({"type": "message_start", "message": message}, "message_start")]
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    out.append(event(block, "content_block_start"))
    for p in pieces(turn.text):
        delta = {"type": "text_delta", "text": p}
        out.append(event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta"))
    if turn.breaks:
        return out
    stop = {"end": "end_turn", "length": "max_tokens"}[turn.stop]
    ends = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
    ends["usage"] = {"output_tokens": 22}
    out.append(event({"type": "content_block_stop", "index": 0}, "content_block_stop"))
    return [*out, event(ends, "message_delta"), event({"type": "message_stop"}, "message_stop")]


def openai_events(turn: Turn) -> list[bytes]:
    def chunk(delta: dict, finish=None) -> dict:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "x", "choices": [choice]}

    out = [event(chunk({"content": p})) for p in pieces(turn.text)]
    if turn.breaks:
        return out
    out.append(event(chunk({}, {"end": "stop", "length": "length"}[turn.stop])))
    if turn.usage:
        usage = {"prompt_tokens": 15, "completion_tokens": 22, "total_tokens": 37}
        out.append(event({**chunk({}), "choices": [], "usage": usage}))
    return [*out, b"data: [DONE]\n\n"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Server

    def log_message(self, *unused) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.served.requests.append(
            {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
        )
        turn = self.served.turns.pop(0) if self.served.turns else Turn(status=500, message="no turn is left")
        if turn.status != 200:
            return self.refuse(turn)
        events = anthropic_events(turn) if self.path == "/v1/messages" else openai_events(turn)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for e in events:
            self.wfile.write(f"{len(e):x}\r\n".encode() + e + b"\r\n")
        if turn.breaks != "connection":
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = bool(turn.breaks)

    def refuse(self, turn: Turn) -> None:
        said = {"type": "error", "error": {"type": "error", "message": turn.message}}
        body = json.dumps(said).encode()
        self.send_response(turn.status)
        for name, value in {**turn.headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(*turns: Turn):
    served = Server("", list(turns))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"served": served}))
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
