"""Programs that failed once, or still do: tests/fuzz/seeds."""

from __future__ import annotations

import json
from pathlib import Path

SEEDS = Path(__file__).resolve().parent / "seeds"


def kept(name: str = "failed.jsonl") -> list[dict]:
    """Its rows: {"why", "program"}."""
    path = SEEDS / name
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []
