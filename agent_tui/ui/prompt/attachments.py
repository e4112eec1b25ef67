"""What is pasted into the prompt: cleaned text, and the pastes and images that marks stand for."""

import asyncio
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from agent_tui.drafts.draft import Draft, DraftImage, image_mark, is_large, paste_mark
from agent_tui.errors import AgentTuiError

if TYPE_CHECKING:
    from agent_tui.ui.prompt.completion import PromptSources

_LONG_PASTE_CHARS = 20_000
"""A longer paste is cleaned in a thread."""
_MOST_CHARS = 8_000
_MOST_IMAGES = 20
# An SGR mouse report whose leading ESC was read as a key of its own (xterm, "Extended
# coordinates"): the rest arrives as if it had been typed.
_REPORT_ENDS = ("M", "m")
_MOUSE_REPORT = r"\x1b?\[<\d{1,3};\d{1,5};\d{1,5}[Mm]"
# `re` compiles these at their first use, which the first paint does not wait for.
_TYPED_REPORT = _MOUSE_REPORT + r"$"
_SEQUENCES = (
    _MOUSE_REPORT
    + r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    + r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    + r"|\x1b[@-Z\\-_]?"
)
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"


def report_length(text_before_cursor: str) -> int:
    """Length of the mouse report that was just completed at the cursor, 0 if none was."""
    if not text_before_cursor.endswith(_REPORT_ENDS):
        return 0
    found = re.search(_TYPED_REPORT, text_before_cursor[-24:])
    return len(found[0]) if found else 0


def clean_paste(text: str) -> str:
    """`text` with line ends as ``\\n`` and without escape sequences and control characters."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(_CONTROLS, "", re.sub(_SEQUENCES, "", unix))


def may_be_images(pasted: str) -> bool:
    """Whether it is worth looking at `pasted` closer: it is short and ends like an image."""
    from agent_tui.tools.files.images import IMAGE_SUFFIXES

    end = pasted.strip().rstrip("'\"").lower()
    return len(pasted) <= _MOST_CHARS and "/" in pasted and end.endswith(tuple(IMAGE_SUFFIXES))


def paths_in_paste(pasted: str) -> tuple[str, ...]:
    """The paths `pasted` consists of: quoted, with blanks escaped, or as ``file://`` addresses.

    Empty if one of them does not name an image.
    """
    whole = pasted.strip()
    for words in (_words(whole), (whole,)):
        paths = tuple(map(_path, words))
        if paths and all(map(_names_image, paths)):
            return paths[:_MOST_IMAGES]
    return ()


def read_pasted(pasted: str, cwd: Path) -> tuple[DraftImage, ...]:
    """The images whose paths `pasted` consists of; none if one is unreadable. Blocking.

    Raises:
        UsageError: One is larger than can be sent.
    """
    found: list[DraftImage] = []
    for path in paths_in_paste(pasted):
        image = read_draft_image(path, cwd)
        if image is None:
            return ()
        found.append(image)
    return tuple(found)


def read_draft_image(path: str, cwd: Path) -> DraftImage | None:
    """The image at `path`, None if there is none. Blocking.

    Raises:
        UsageError: It is larger than can be sent.
    """
    from agent_tui.tools.files.images import read_image

    try:
        image = read_image(cwd / Path(path).expanduser())
    except RuntimeError:  # ~ of nobody known
        return None
    return DraftImage(path, image) if image is not None else None


def is_image_name(path: str) -> bool:
    """Whether `path` ends like an image."""
    from agent_tui.tools.files.images import IMAGE_SUFFIXES

    return Path(path).suffix.lower() in IMAGE_SUFFIXES


def _names_image(path: str) -> bool:
    return is_image_name(path) and path.startswith(("/", "~/", "./", "../"))


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # a quote without its other one
        return ()


def _path(word: str) -> str:
    """The path of a ``file://`` address of this machine; other words as they are."""
    if not word.startswith("file://"):
        return word
    try:
        return unquote(urlsplit(word).path)
    except ValueError:
        return word


class DraftAttachments:
    """Pastes and images of the present draft.

    Args:
        refuse: Called with why an image cannot be attached.
    """

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self._refuse = refuse
        self._pastes: dict[int, str] = {}
        self._images: dict[int, DraftImage] = {}

    def draft(self, text: str) -> Draft:
        """The draft whose text is `text`."""
        return Draft(text, dict(self._pastes), dict(self._images))

    def load(self, draft: Draft) -> None:
        """Use the attachments of `draft`, and no others."""
        self._pastes, self._images = dict(draft.pastes), dict(draft.images)

    def paste(self, number: int) -> str | None:
        """What was pasted under this number."""
        return self._pastes.get(number)

    async def take_paste(self, pasted: str, sources: "PromptSources | None") -> str:
        """The text to insert for `pasted`: itself, made harmless, or marks."""
        if sources is not None and may_be_images(pasted):
            marks = await self._take_images(pasted, sources)
            if marks:
                return marks
        is_long = len(pasted) > _LONG_PASTE_CHARS
        clean = await asyncio.to_thread(clean_paste, pasted) if is_long else clean_paste(pasted)
        number = max(self._pastes, default=0) + 1
        if is_large(clean) or "\n" in clean.strip():
            self._pastes[number] = clean
        return paste_mark(number, clean) if is_large(clean) else clean

    async def take_image(self, path: str, sources: "PromptSources") -> str:
        """The mark of the image at `path`; empty if there is none or it cannot go along."""
        try:
            image = await asyncio.to_thread(read_draft_image, path, sources.files.root)
        except AgentTuiError as error:
            self._refuse(str(error))
            return ""
        return "".join(self._keep((image,), sources)) if image is not None else ""

    async def _take_images(self, pasted: str, sources: "PromptSources") -> str:
        """Marks for the images whose paths `pasted` consists of, each followed by a blank."""
        try:
            images = await asyncio.to_thread(read_pasted, pasted, sources.files.root)
        except AgentTuiError as error:
            self._refuse(str(error))
            return ""
        return "".join(f"{mark} " for mark in self._keep(images, sources))

    def _keep(self, images: Sequence[DraftImage], sources: "PromptSources") -> list[str]:
        """Store `images` and return their marks; none if the model accepts no images."""
        refusal = sources.image_refusal() if images else ""
        if refusal:
            self._refuse(refusal)
            return []
        first = max(self._images, default=0) + 1
        self._images.update(enumerate(images, first))
        return [image_mark(number, image.image) for number, image in enumerate(images, first)]
