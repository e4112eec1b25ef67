"""The phrases that CONTRIBUTING.md rules out appear in nothing that people or models read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "agent_tui"


def ruled_out() -> list[str]:
    """The left column of the table in the section on words."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Words\n")[2]
    rows = section.partition("\n## ")[0].partition("|---|---|\n")[2].splitlines()
    return [phrase.strip() for row in rows if row for phrase in row.split("|")[1].split(",")]


def strings(module: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module with their lines; docstrings are for those who change the code."""
    tree = ast.parse(module.read_text())
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in statements:
                yield node.lineno, text
            case _:
                pass


def documents() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        ROOT / "AGENTS.md",
        ROOT / "docs/packaging/agent-tui.1",
        *(ROOT / "docs/pages").rglob("*.md"),
        *PACKAGE.rglob("*.md"),
    ]


def all_texts() -> Iterator[tuple[str, str]]:
    for module in PACKAGE.rglob("*.py"):
        for line, text in strings(module):
            yield f"{module.relative_to(ROOT)}:{line}", text
    for document in documents():
        yield str(document.relative_to(ROOT)), document.read_text()
    newest = (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n## ")[0]
    yield "CHANGELOG.md", newest


def found(phrase: str, text: str) -> list[str]:
    """Each place of `text` that has `phrase`, with a few words around it."""
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    return [
        " ".join(text[max(0, match.start() - 40) : match.end() + 40].split())
        for match in re.finditer(rf"(?<![\w-]){words}(?![\w-])", text, re.IGNORECASE)
    ]


def test_there_are_twenty_rows():
    assert len(ruled_out()) >= 20


def test_the_phrases_stay_away():
    texts = list(all_texts())
    everything = "\n\0\n".join(text for _, text in texts)  # looked through much faster
    phrases = [phrase for phrase in ruled_out() if found(phrase, everything)]
    places = [(place, found(phrase, text)) for phrase in phrases for place, text in texts]
    assert [(place, lines) for place, lines in places if lines] == []
