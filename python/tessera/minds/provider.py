"""What a provider is, and which there are.

A file of `providers/` defines:

    NAME = "anthropic"                    what --provider takes
    PACKAGE = "anthropic"                 what it imports, or "" for nothing
    KEYS = ("ANTHROPIC_API_KEY",)         names of its key, in the environment or a keyring; () where it needs none
    def claims(model) -> bool             whether `--provider auto` means it
    def connect(model, key, endpoint) -> Callable[[Asked, Heard], Said]

The call that `connect` returns makes one attempt. It raises Again where another may succeed, an Error else.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from tessera.common.errors import fail
from tessera.minds import providers

# Seconds that a server may be silent, and that one whole attempt may take.
SILENT, WHOLE = 120.0, 1200.0


@dataclass(frozen=True)
class Asked:
    system: str
    view: str
    max_tokens: int


@dataclass(frozen=True)
class Said:
    text: str
    ending: str = "whole"  # "length" where it was cut off, "refusal"
    input: int | None = None  # tokens; None where the server does not tell
    output: int | None = None


class Again(Exception):
    """Another attempt may succeed. `after`: seconds that the server asks to wait; `text`: what came before it broke off."""

    def __init__(self, why: str, after: float | None = None, text: str = ""):
        super().__init__(why)
        self.why, self.after, self.text = why, after, text


Heard = Callable[[str], None]  # each piece of text as it comes
Call = Callable[[Asked, Heard], Said]


def all_providers() -> dict[str, ModuleType]:
    found = (
        importlib.import_module(f"{providers.__name__}.{m.name}") for m in pkgutil.iter_modules(providers.__path__)
    )
    return {p.NAME: p for p in found}


def provider_of(name: str, model: str) -> ModuleType:
    known = all_providers()
    if name != "auto" and name in known:
        return known[name]
    claiming = [p for p in known.values() if name == "auto" and p.claims(model)]
    if len(claiming) == 1:
        return claiming[0]
    raise fail(
        "TS0731",
        "mind.unknown_provider",
        f"the name `{model}` does not say whose model it is" if name == "auto" else f"there is no provider `{name}`",
        expected="--provider " + " or ".join(known),
        found=name,
        helps=["servers that speak OpenAI's protocol are --provider openai with --endpoint URL"],
    )


def check_package(provider: ModuleType) -> None:
    if not provider.PACKAGE or importlib.util.find_spec(provider.PACKAGE) is not None:
        return
    raise fail(
        "TS0732",
        "mind.no_package",
        f"the provider {provider.NAME} is asked by its package {provider.PACKAGE}, which this Python does not have",
        helps=[f"{sys.executable} -m pip install {provider.PACKAGE}", "or pip install 'tessera[llm]'"],
    )
