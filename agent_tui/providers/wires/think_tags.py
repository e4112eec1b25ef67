"""Thinking that a server leaves in a reply's text, between tags at its beginning."""

from collections.abc import Iterator
from typing import Final, Literal

from agent_tui.providers.base import TextChunk, ThinkingChunk

_OPENERS: Final = ("<think>", "<thinking>", "<thought>")


class ThinkTags:
    """Tells the two apart while the text comes; what may become a tag waits for more."""

    def __init__(self) -> None:
        self._place: Literal["before", "inside", "behind", "text"] = "before"
        self._waiting = ""
        self._closer = ""

    def chunks(self, text: str) -> Iterator[TextChunk | ThinkingChunk]:
        """What the next piece of text adds."""
        text, self._waiting = self._waiting + text, ""
        if self._place == "before":
            text = self._begun(text)
        if self._place == "inside":
            thought, closer, text = text.partition(self._closer)
            if closer:
                self._place = "behind"
            else:
                kept = _begun_tag(thought, self._closer)
                self._waiting = thought[len(thought) - kept :]
                thought = thought[: len(thought) - kept]
            if thought:
                yield ThinkingChunk(thought)
        if self._place == "behind":
            text = text.lstrip()
            if text:
                self._place = "text"
        if self._place == "text" and text:
            yield TextChunk(text)

    def rest(self) -> Iterator[TextChunk | ThinkingChunk]:
        """What still waits when nothing more comes."""
        if self._waiting:
            of_kind = ThinkingChunk if self._place == "inside" else TextChunk
            yield of_kind(self._waiting)
            self._waiting = ""

    def _begun(self, text: str) -> str:
        """What of `text` is to be read further, once it is clear how it begins."""
        bare = text.lstrip()
        if opener := next((tag for tag in _OPENERS if bare.startswith(tag)), ""):
            self._place, self._closer = "inside", f"</{opener[1:]}"
            return bare.removeprefix(opener)
        if any(tag.startswith(bare) for tag in _OPENERS):
            self._waiting = text
            return ""
        self._place = "text"
        return text


def _begun_tag(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)
