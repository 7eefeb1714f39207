"""Anthropic's Messages, by its own package."""

from __future__ import annotations

from tessera.minds import failures
from tessera.minds.provider import SILENT, Again, Asked, Call, Heard, Said

NAME = "anthropic"
PACKAGE = "anthropic"
KEYS = ("ANTHROPIC_API_KEY",)


def claims(model: str) -> bool:
    return model.startswith("claude")


def input_of(usage) -> int:
    cached = (getattr(usage, name, None) or 0 for name in ("cache_creation_input_tokens", "cache_read_input_tokens"))
    return usage.input_tokens + sum(cached)


def connect(model: str, key: str, endpoint: str) -> Call:
    import anthropic

    client = anthropic.Anthropic(api_key=key, base_url=endpoint or None, max_retries=0, timeout=SILENT)

    def stream(asked: Asked, heard: Heard, text: list[str]) -> Said:
        messages = [{"role": "user", "content": asked.view}]
        read = written = stop = None
        with client.messages.create(
            model=model, system=asked.system, messages=messages, max_tokens=asked.max_tokens, stream=True
        ) as events:
            for event in events:
                if event.type == "message_start":
                    read = input_of(event.message.usage)
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    text.append(event.delta.text)
                    heard(event.delta.text)
                elif event.type == "message_delta":
                    stop, written = event.delta.stop_reason, event.usage.output_tokens
        if stop is None:
            raise Again("anthropic ended the reply in its middle", text="".join(text))
        ending = {"max_tokens": "length", "refusal": "refusal"}.get(stop, "whole")
        return Said("".join(text), ending, read, written)

    def call(asked: Asked, heard: Heard) -> Said:
        text: list[str] = []
        try:
            return stream(asked, heard, text)
        except anthropic.APIConnectionError as e:
            raise failures.of_connection(e, NAME, "".join(text)) from e
        except anthropic.APIStatusError as e:
            told = failures.of_status(e.status_code, e.message, e.response.headers, NAME, model)
            if isinstance(told, Again):
                told.text = "".join(text)
            raise told from e
        except Exception as e:
            if not failures.is_transport(e):
                raise
            raise failures.of_connection(e, NAME, "".join(text)) from e

    return call
