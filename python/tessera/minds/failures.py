"""What an answer that is none means, by its HTTP status: another attempt, or an error that says what to do."""

from __future__ import annotations

from tessera.common.errors import Error, fail
from tessera.minds.provider import Again

BUSY = {408, 409, 425, 429}
NO_MONEY = ("insufficient_quota", "billing")  # a 429 that waiting does not mend


def seconds_asked(headers) -> float | None:
    """Of `retry-after`, where it is a number."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return None


def of_status(status: int, message: str, headers, provider: str, model: str) -> Again | Error:
    short = " ".join(message.split())[:300]
    if status == 429 and any(word in message for word in NO_MONEY):
        return refused(provider, short)
    if status < 400 or status in BUSY or status >= 500:
        return Again(f"{provider} answers {status}: {short}", seconds_asked(headers))
    if status == 404:
        return fail(
            "TS0733",
            "mind.unknown_model",
            f"the provider {provider} has no model `{model}`",
            expected="a name as the provider's documentation has it",
            found=short,
            helps=["--endpoint must be the URL that the package expects: with /v1 for openai, without for anthropic"],
        )
    return refused(provider, short)


def refused(provider: str, short: str) -> Error:
    return fail(
        "TS0734",
        "mind.refused",
        f"the provider {provider} refuses the request",
        expected="a key that is valid and paid for, and a request within the model's limits",
        found=short,
        helps=["--reply-tokens and --view-tokens bound what is asked for"],
    )


def of_connection(error: BaseException, provider: str, text: str = "") -> Again:
    cause = error.__cause__ or error
    return Again(f"{provider} cannot be reached, or broke off: {type(cause).__name__}: {cause}"[:300], text=text)


def is_transport(error: BaseException) -> bool:
    """Of the HTTP package below both SDKs, which do not wrap what happens while a reply streams in."""
    return type(error).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2")
