"""Attempts at one call: waits that double, with jitter, or as long as the server asks; a bound on each and on their number."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tessera.common.errors import fail
from tessera.minds.provider import Again, Asked, Call, Said

LOOKS = 0.2  # seconds between two looks at whether the reply is still wanted


class Unwanted(Exception):
    """The user stopped the run."""


@dataclass
class Patience:
    retries: int = 5
    first: float = 0.5  # seconds
    longest: float = 120.0  # of one wait; a server that asks for more is given up
    wanted: Callable[[], bool] = lambda: True
    told: Callable[[str], None] = lambda text: None
    random: random.Random = field(default_factory=random.Random)

    def wait_for(self, attempt: int, asked: float | None) -> float:
        """Seconds before the next attempt. Between half and all of what doubles, so that clients part; never before the
        server's own word."""
        own = min(self.longest, self.first * 2**attempt) * self.random.uniform(0.5, 1.0)
        return max(own, asked or 0.0)

    def sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not self.wanted():
                raise Unwanted
            time.sleep(min(LOOKS, left))


@dataclass
class Answer:
    said: Said
    attempts: int
    broken: list[str]  # what came of the attempts that broke off


def ask(call: Call, asked: Asked, patience: Patience) -> Answer:
    """The reply. Errors: TS0735 when all attempts failed, and those that no attempt can mend."""
    broken: list[str] = []
    heard_at = time.monotonic()

    def heard(text: str) -> None:
        nonlocal heard_at
        if time.monotonic() - heard_at > LOOKS:
            heard_at = time.monotonic()
            if not patience.wanted():
                raise Unwanted

    for attempt in range(patience.retries + 1):
        try:
            return Answer(call(asked, heard), attempt + 1, broken)
        except Again as again:
            if again.text:
                broken.append(again.text)
            wait = patience.wait_for(attempt, again.after)
            if attempt == patience.retries or wait > patience.longest:
                raise given_up(again, attempt + 1, wait if attempt < patience.retries else 0) from again
            patience.told(f"{again.why}; attempt {attempt + 2} of {patience.retries + 1} in {wait:.1f} s")
            patience.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def given_up(again: Again, attempts: int, wait: float):
    return fail(
        "TS0735",
        "mind.provider_down",
        f"the provider did not answer in {attempts} attempts",
        found=again.why + (f"; it asks to wait for {wait:.0f} s" if wait > 0 else ""),
        helps=[
            "the same command goes on from there: what was answered is archived",
            "--mind-retries N waits longer; --endpoint URL names another server",
        ],
    )
