"""Code blocks of a markdown page, for those who run them.

A block of `sh` or `python` is run by tests/e2e/test_documents.py, in the order of the page, unless a comment above it names the
script that does: <!-- run by tools/try_wheel.sh -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"(?:<!-- run by ([^>]+?) -->\n)?^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    run_by: str  # a script's path; "" where the test runs it


def blocks_of(root: Path, page: str) -> list[Block]:
    text = (root / page).read_text()
    return [Block(page, text.count("\n", 0, m.start(3)), m[2], m[3], m[1] or "") for m in BLOCK.finditer(text)]
