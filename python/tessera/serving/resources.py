"""What an agent can read: the pages, the kernels and examples that come with tessera, the registry, reports under the root."""

from __future__ import annotations

from pathlib import Path

from tessera.common import places

FOLDERS = {"docs": "*.md", "kernels": "*.py", "knowledge/examples": "*.json", "include/tessera": "*.h"}
MOST_REPORTS = 100


def home() -> Path:
    return places.source_tree() or places.package


def listed(root: Path) -> dict[str, Path | None]:
    """Files by their address; the registry has none."""
    out: dict[str, Path | None] = {"tessera://registry": None}
    for folder, pattern in FOLDERS.items():
        for path in sorted((home() / folder).glob(pattern)):
            out[f"tessera://{folder}/{path.name}"] = path
    reports = (p.resolve() for p in root.rglob("report.json"))
    for path in [p for p in reports if p.is_relative_to(root)][:MOST_REPORTS]:
        out[f"tessera://root/{path.relative_to(root)}"] = path
    return out
