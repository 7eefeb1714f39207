"""Diagnostics as data, and the exception that carries one.

A diagnostic has the fields of the engine's (schema ``tessera.diagnostic/1``): a stable code, what was expected, what was
found, and what to do next. Expected failures raise :class:`Error`; other exceptions are bugs.
"""

from __future__ import annotations

# The way out where a module cannot be traced whole.
BY_GRAPHS = (
    'or torch.compile(module, backend="tessera"): it leaves such a place to Python and optimizes the graphs around it'
)


def diagnostic(
    code: str,
    name: str,
    message: str,
    *,
    expected: str = "",
    found: str = "",
    notes=(),
    helps=(),
    level: str = "error",
    data: dict | None = None,
) -> dict:
    return {
        "schema": "tessera.diagnostic/1",
        "code": code,
        "name": name,
        "level": level,
        "message": message,
        "expected": expected,
        "found": found,
        "notes": list(notes),
        "helps": list(helps),
        "data": data or {},
    }


def to_text(d: dict) -> str:
    """The text rendering: `error[TS0003]: message`, then expected, found, notes and help, a line each."""
    lines = [f"{d.get('level', 'error')}[{d.get('code', '')}]: {d.get('message', '')}"]
    lines += [f"  {key}: {d[key]}" for key in ("expected", "found") if d.get(key)]
    lines += [f"  note: {text}" for text in d.get("notes") or ()]
    lines += [f"  help: {text}" for text in d.get("helps") or ()]
    return "\n".join(lines)


class Error(RuntimeError):
    """An expected failure. `.diagnostic` is the data, `str()` its text rendering and where to read more."""

    def __init__(self, diagnostic: dict):
        super().__init__(f"{to_text(diagnostic)}\n  more: tessera explain {diagnostic.get('code', '')}")
        self.diagnostic = diagnostic

    def __reduce__(self):
        return (Error, (self.diagnostic,))


def fail(code: str, name: str, message: str, **fields) -> Error:
    """An Error to raise: `raise fail("TS0003", "input.no_such_class", "...", helps=["..."])`."""
    return Error(diagnostic(code, name, message, **fields))
