"""A line that says what keys do: the keys stand out, the words stand back."""

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static

KEY, WORDS = "$foreground", "$foreground-muted"


def keys_line(text: str, key: str = KEY) -> Content:
    """``esc stops · enter answers`` with the first word of each part in the style `key`."""
    parts: list[Content] = []
    for part in text.split(" · "):
        name, space, words = part.partition(" ")
        parts.append(Content.assemble((name, key), (space + words, WORDS)))
    return Content.styled(" · ", WORDS).join(parts)


class KeysLine(Static):
    """Such a line as a widget.

    Args:
        text: The keys and what they do, ``esc stops · enter answers``.
        id: What the widget is found by.
    """

    def __init__(self, text: str = "", *, id: str) -> None:
        super().__init__(keys_line(text) if text else "", id=id, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show another text."""
        styled = keys_line(content) if isinstance(content, str) and content else content
        super().update(styled, layout=layout)
