"""Keys of providers: found in the environment or a keyring, and told to nobody."""

from __future__ import annotations

import importlib.util
import os
from types import ModuleType
from urllib.parse import urlsplit

from tessera.common.errors import fail

SERVICE = "tessera"  # of the keyring
UNUSED = "unused"  # what a server on this machine is given where there is no key


def of_keyring(name: str) -> str | None:
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring
    import keyring.errors

    try:
        return keyring.get_password(SERVICE, name)
    except keyring.errors.KeyringError:  # there is none on this machine, or it is locked
        return None


def is_local(endpoint: str) -> bool:
    return urlsplit(endpoint).hostname in ("127.0.0.1", "localhost", "::1")


def key_of(provider: ModuleType, endpoint: str) -> tuple[str, str]:
    """The key, and where it is from."""
    for name in provider.KEYS:
        if value := os.environ.get(name):
            return value, f"${name}"
        if value := of_keyring(name):
            return value, f"the keyring's {SERVICE} {name}"
    if not provider.KEYS:
        return "", "no key is needed"
    if is_local(endpoint):
        return UNUSED, "none: the server is on this machine"
    name = provider.KEYS[0]
    raise fail(
        "TS0730",
        "mind.no_key",
        f"there is no key for the provider {provider.NAME}",
        expected=f"${name}, or the entry `{name}` of `{SERVICE}` in a keyring",
        helps=[f"export {name}=...", f"or keyring set {SERVICE} {name} (pip install keyring)"],
    )


class Secrets:
    """Takes a key out of whatever is said."""

    def __init__(self, key: str):
        self._key = key if len(key) >= 8 and key != UNUSED else ""

    def hide(self, value):
        if not self._key:
            return value
        if isinstance(value, str):
            return value.replace(self._key, "***")
        if isinstance(value, dict):
            return {k: self.hide(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(v) for v in value]
        return value
