"""Paths to images as terminals paste them when a file is dropped on the window."""

import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_tui.drafts.draft import DraftImage
from agent_tui.tools.files.images import IMAGE_SUFFIXES, read_image

_MOST_CHARS = 8_000
_MOST_IMAGES = 20


def may_be_images(pasted: str) -> bool:
    """Whether it is worth looking at `pasted` closer: it is short and ends like an image."""
    end = pasted.strip().rstrip("'\"").lower()
    return len(pasted) <= _MOST_CHARS and "/" in pasted and end.endswith(tuple(IMAGE_SUFFIXES))


def pasted_paths(pasted: str) -> tuple[str, ...]:
    """The paths `pasted` consists of: quoted, with blanks escaped, or as ``file://`` addresses.

    Empty where one of them is no path to an image by its name.
    """
    whole = pasted.strip()
    for words in (_words(whole), (whole,)):
        paths = tuple(map(_path, words))
        if paths and all(map(_names_image, paths)):
            return paths[:_MOST_IMAGES]
    return ()


def read_pasted(pasted: str, cwd: Path) -> tuple[DraftImage, ...]:
    """The images whose paths `pasted` consists of; none where one cannot be read. Blocking.

    Raises:
        UsageError: One is larger than can be sent.
    """
    found: list[DraftImage] = []
    for path in pasted_paths(pasted):
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
    try:
        image = read_image(cwd / Path(path).expanduser())
    except RuntimeError:  # ~ of nobody known
        return None
    return DraftImage(path, image) if image is not None else None


def is_image_name(path: str) -> bool:
    """Whether `path` ends like an image."""
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
