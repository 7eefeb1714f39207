"""What an agent can read: the pages, the kernels and examples that come with tessera, the registry, reports under the root, and what
calls wrote."""

from __future__ import annotations

from pathlib import Path

from tessera.common import places
from tessera.serving.files import Refused
from tessera.serving.results import Results

FOLDERS = {"docs": "*.md", "kernels": "*.py", "knowledge/examples": "*.json", "include/tessera": "*.h"}
MOST_REPORTS = 100
MOST_OF_RESOURCE = 8 << 20  # bytes
MOST_OF_ABOUT = 160  # characters


def home() -> Path:
    return places.source_tree() or places.package


def listed(root: Path, results: Results) -> dict[str, Path | None]:
    """Files by their address; the registry has none."""
    out: dict[str, Path | None] = {"tessera://registry": None}
    for folder, pattern in FOLDERS.items():
        for path in sorted((home() / folder).glob(pattern)):
            out[f"tessera://{folder}/{path.name}"] = path
    reports = (p.resolve() for p in root.rglob("report.json"))
    for path in [p for p in reports if p.is_relative_to(root)][:MOST_REPORTS]:
        out[f"tessera://root/{path.relative_to(root)}"] = path
    return out | results.listed()


def about(path: Path | None) -> str:
    """What a file says of itself first: its heading, the first line of its comment or of its text in quotes. "" where it is no
    page, kernel or header."""
    if path is None or path.suffix not in (".md", ".py", ".h"):
        return ""
    with path.open(errors="replace") as file:
        for line in file:
            if words := line.strip(' \t\n#/*"'):
                return words[:MOST_OF_ABOUT]
    return ""


def text_of(uri: str, path: Path) -> str:
    if path.stat().st_size > MOST_OF_RESOURCE:
        raise Refused(f"{uri} has {path.stat().st_size} bytes, more than an answer takes")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise Refused(f"{uri} is not text") from None
