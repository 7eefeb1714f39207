"""Chat completions of OpenAI, and of the many servers that speak its protocol, by OpenAI's own package."""

from __future__ import annotations

from tessera.minds import failures
from tessera.minds.provider import SILENT, Again, Asked, Call, Heard, Said

NAME = "openai"
PACKAGE = "openai"
KEYS = ("OPENAI_API_KEY",)


def claims(model: str) -> bool:
    return model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt"))


def connect(model: str, key: str, endpoint: str) -> Call:
    import openai

    client = openai.OpenAI(api_key=key, base_url=endpoint or None, max_retries=0, timeout=SILENT)
    # OpenAI's newer models refuse the old name, and most other servers know no other.
    bound = "max_tokens" if endpoint else "max_completion_tokens"

    def stream(asked: Asked, heard: Heard, text: list[str]) -> Said:
        messages = [{"role": "system", "content": asked.system}, {"role": "user", "content": asked.view}]
        usage = stop = None
        with client.chat.completions.create(
            model=model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            **{bound: asked.max_tokens},
        ) as chunks:
            for chunk in chunks:
                usage = chunk.usage or usage
                for choice in chunk.choices[:1]:
                    stop = choice.finish_reason or stop
                    if choice.delta and choice.delta.content:
                        text.append(choice.delta.content)
                        heard(choice.delta.content)
        if stop is None:
            raise Again("openai ended the reply in its middle", text="".join(text))
        ending = {"length": "length", "content_filter": "refusal"}.get(stop, "whole")
        told = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        return Said("".join(text), ending, *told)

    def call(asked: Asked, heard: Heard) -> Said:
        text: list[str] = []
        try:
            return stream(asked, heard, text)
        except openai.APIConnectionError as e:
            raise failures.of_connection(e, NAME, "".join(text)) from e
        except openai.APIStatusError as e:
            raise failures.of_status(e.status_code, str(e.body or e.message), e.response.headers, NAME, model) from e
        except openai.APIError as e:  # an error among the pieces of a reply
            raise Again(f"openai: {e.message}"[:300], text="".join(text)) from e
        except Exception as e:
            if not failures.is_transport(e):
                raise
            raise failures.of_connection(e, NAME, "".join(text)) from e

    return call
