"""A session as Markdown."""

import re

from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.export.document import Block, Document

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def to_markdown(document: Document) -> str:
    """`document` as Markdown; control characters are left out."""
    lines = [f"# {document.title}", "", *(f"- {fact}" for fact in document.facts), ""]
    for block in document.blocks:
        title = " ".join(strip_control_characters(block.title).split())
        lines += [f"## {title}", "", _block_markdown(block), ""]
    return "\n".join(lines)


def _block_markdown(block: Block) -> str:
    text = strip_control_characters(block.text).strip("\n")
    shown = _fenced(text) if block.is_code else text + _missing_end(text)
    images = [f"[image, {strip_control_characters(i.mime_type)}]" for i in block.images]
    return "\n\n".join([*([shown] if text or not images else []), *images])


def _fenced(text: str) -> str:
    """`text` in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _missing_end(text: str) -> str:
    """The end of the fence that `text` leaves open: else it would swallow the rest."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        mark, rest = found[1], found[2]
        if not fence:
            fence = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
            fence = ""
    return f"\n{fence}" if fence else ""
