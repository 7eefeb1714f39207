"""The glossary's words that a report's page uses, with their meanings."""

from __future__ import annotations

import html
import re

from tessera.common import places
from tessera.report_page import Html, Page, table


def glossary() -> list[tuple[str, str]]:
    """The rows of docs/glossary.md: word or words, meaning."""
    lines = places.document("glossary.md").read_text().splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|", 1)) for line in lines if line.startswith("|")]
    return [(word, meaning) for word, meaning in rows if word != "word" and set(word) - set("-| ")]


def words(page: Page) -> None:
    """A section with the words that stand in the sections so far."""
    markup = re.sub(r"(?s)<(script|style).*?</\1>", " ", " ".join(page.parts))
    text = html.unescape(re.sub(r"<[^>]+>", " ", markup))
    used = [(_shown(word), _shown(meaning)) for word, meaning in glossary() if _stands_in(text, word)]
    if used:
        page.section("words", "Words", "Those of the glossary that this page uses.", table(["word", "meaning"], used))


def _stands_in(text: str, word: str) -> bool:
    """One of the words before a comma, in one piece; in capitals only where it is written so."""
    for form in re.sub(r"[`\"]", "", word).split(","):
        flags = 0 if form.strip().isupper() else re.IGNORECASE
        if re.search(rf"(?<![\w-]){re.escape(form.strip())}s?(?![\w-])", text, flags):
            return True
    return False


def _shown(cell: str) -> Html:
    plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", cell)  # links lead to files that do not lie beside the page
    return Html(re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(plain, quote=False)))
