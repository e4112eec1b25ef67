"""Drafts: large pastes and images are short marks in the prompt, and are sent whole.

What was typed and what was pasted is known, also of smaller pastes, which are shown as text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # a draft is part of the first paint, reading images is not
    from agent_tui.tools.files.images import ImageFile

_PASTE_LINES = 10
_PASTE_CHARS = 1_000
"""A paste longer than either is shown as a mark."""
_NAME_CHARS = 40

_MARK = re.compile(r"\[(paste|image) #(\d{1,6}) ([^\]\n]{1,80})\]")

MarkKind = Literal["paste", "image"]


@dataclass(frozen=True, slots=True)
class DraftImage:
    """An image and its path, as given."""

    path: str
    image: "ImageFile"


@dataclass(frozen=True, slots=True)
class DraftMark:
    """A mark in a line: its kind and number, and the columns it covers."""

    kind: MarkKind
    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Draft:
    """The contents of the prompt: the text as shown, what was pasted, and the images.

    A large paste is a mark in the text. Pastes of several lines are in `pastes` also if the text
    shows them.
    """

    text: str = ""
    pastes: Mapping[int, str] = field(default_factory=dict[int, str])
    images: Mapping[int, DraftImage] = field(default_factory=dict[int, DraftImage])

    @property
    def sent_text(self) -> str:
        """The text with pastes expanded; the marks of images stay, as the model sees the images."""
        return _replace_marks(self.text, self._paste_of)

    @property
    def full_text(self) -> str:
        """The text with pastes expanded, and each image as its path."""
        return self.with_paths().sent_text

    @property
    def typed_parts(self) -> tuple[str, ...] | None:
        """The parts of `sent_text` around its pastes, without blanks; None if nothing is pasted."""
        pasted = sorted(chain(*(self._places_of(*paste) for paste in self.pastes.items())))
        starts, ends = [0, *(end for _, end in pasted)], [*(at for at, _ in pasted), len(self.text)]
        parts = (self.text[start:end].strip() for start, end in zip(starts, ends, strict=True))
        return tuple(filter(None, parts)) if pasted else None

    @property
    def sent_images(self) -> "tuple[ImageFile, ...]":
        """The images, in the order of their marks."""
        numbers = dict.fromkeys(m.number for m in marks_in(self.text) if m.kind == "image")
        return tuple(self.images[number].image for number in numbers if number in self.images)

    @property
    def is_empty(self) -> bool:
        """Whether there are only blanks."""
        return not self.text.strip()

    def trim(self) -> "Draft":
        """Without blanks at both ends and without contents that have no mark."""
        named = {(mark.kind, mark.number) for mark in marks_in(self.text)}
        return Draft(
            self.text.strip(),
            {n: text for n, text in self.pastes.items() if any(self._places_of(n, text))},
            {n: image for n, image in self.images.items() if ("image", n) in named},
        )

    def with_paths(self) -> "Draft":
        """The same with each image as its path."""
        return self._write_images("{}")

    def with_mentions(self) -> "Draft":
        """The same with each image as a mention of its file, so that it can be stored."""
        return self._write_images('@"{}"')

    def fold(self, text: str) -> "Draft":
        """`text`, edited from `full_text`, with unchanged parts as marks again."""
        for mark in marks_in(self.text):
            words = self._words_of(mark.kind, mark.number, "{}")
            if words:
                text = text.replace(words, self.text[mark.start : mark.end], 1)
        return Draft(text, self.pastes, self.images)

    def _places_of(self, number: int, pasted: str) -> Iterator[tuple[int, int]]:
        """Where `text` has the paste: as marks, else as text, else, once edited, lines of it."""
        marks = [m for m in marks_in(self.text) if m.kind == "paste" and m.number == number]
        if marks:
            yield from ((mark.start, mark.end) for mark in marks)
        elif (whole := pasted.strip()) and whole in self.text:
            yield from (found.span() for found in re.finditer(re.escape(whole), self.text))
        else:
            lines = frozenset(pasted.splitlines())
            shown = re.finditer(r"^.*\S.*$", self.text, re.MULTILINE)
            yield from (line.span() for line in shown if line[0] in lines)

    def _write_images(self, form: str) -> "Draft":
        if not self.images:
            return self
        written = _replace_marks(
            self.text,
            lambda kind, n: self._words_of(kind, n, form) if kind == "image" else None,
        )
        return Draft(written, self.pastes)

    def _paste_of(self, kind: MarkKind, number: int) -> str | None:
        return self.pastes.get(number) if kind == "paste" else None

    def _words_of(self, kind: MarkKind, number: int, form: str) -> str | None:
        if kind == "paste":
            return self.pastes.get(number)
        image = self.images.get(number)
        return form.format(image.path) if image is not None else None


def join_drafts(drafts: Iterable[Draft]) -> Draft:
    """The drafts that are not empty as one, separated by empty lines, with renumbered marks.

    Commands after ``!`` are last: the shell would get what is below them.
    """
    texts: list[str] = []
    pastes: dict[int, str] = {}
    images: dict[int, DraftImage] = {}
    for draft in sorted(drafts, key=lambda draft: draft.text.startswith("!")):
        if draft.is_empty:
            continue
        numbers: dict[tuple[str, int], int] = {}
        for number, text in draft.pastes.items():
            numbers["paste", number] = len(pastes) + 1
            pastes[len(pastes) + 1] = text
        for number, image in draft.images.items():
            numbers["image", number] = len(images) + 1
            images[len(images) + 1] = image
        texts.append(_renumber(draft.text, numbers))
    return Draft("\n\n".join(texts), pastes, images)


def _renumber(text: str, numbers: Mapping[tuple[str, int], int]) -> str:
    def mark_of(mark: re.Match[str]) -> str:
        number = numbers.get((mark[1], int(mark[2])))
        return mark[0] if number is None else f"[{mark[1]} #{number} {mark[3]}]"

    return _MARK.sub(mark_of, text)


def is_large(text: str) -> bool:
    """Whether a paste is shown as a mark instead of as text."""
    return text.count("\n") >= _PASTE_LINES or len(text) > _PASTE_CHARS


def paste_mark(number: int, text: str) -> str:
    """The mark for paste `number`: ``[paste #1 +9,999 lines]``, or its length if one line."""
    more_lines = text.count("\n")
    size = f"+{more_lines:,} lines" if more_lines else f"{len(text):,} chars"
    return f"[paste #{number} {size}]"


def image_mark(number: int, image: "ImageFile") -> str:
    """The mark for image `number`: ``[image #1 shot.png 800x600]``."""
    name = "".join(c if c.isprintable() and c not in "[]" else "_" for c in image.name)
    if len(name) > _NAME_CHARS:
        name = f"{name[: _NAME_CHARS - 9]}…{name[-8:]}"
    size = f" {image.width}x{image.height}" if image.width else ""
    return f"[image #{number} {name}{size}]"


def marks_in(line: str) -> Iterator[DraftMark]:
    """The marks in a line or text, from left to right."""
    for found in _MARK.finditer(line):
        kind: MarkKind = "paste" if found[1] == "paste" else "image"
        yield DraftMark(kind, int(found[2]), found.start(), found.end())


def mark_before(text: str) -> int:
    """Length of the mark that `text` ends with, 0 if it ends with none."""
    start = text.rfind("[")
    mark = next(marks_in(text[start:]), None) if start >= 0 else None
    return mark.end if mark is not None and start + mark.end == len(text) else 0


def mark_after(text: str) -> int:
    """Length of the mark that `text` begins with, 0 if it begins with none."""
    found = _MARK.match(text)
    return len(found[0]) if found else 0


def _replace_marks(text: str, words_of: Callable[[MarkKind, int], str | None]) -> str:
    """`text` with each mark replaced by its words, if it has any."""

    def words(mark: re.Match[str]) -> str:
        found = words_of("paste" if mark[1] == "paste" else "image", int(mark[2]))
        return mark[0] if found is None else found

    return _MARK.sub(words, text)
