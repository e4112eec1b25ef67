"""Texts that no compaction takes away: bodies of skills, instructions of a folder below.

Such a text is an entry of its own. While it is in force the model sees it word for word: where it
was put in, and once what is around it was compacted, right behind the summary.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field, ValidationError

from agent_tui.messages import Pin, Stored
from agent_tui.sessions.entries import (
    CustomEntry,
    CustomMessageEntry,
    Entry,
    custom_entry,
    custom_value,
)

_PINNED = "pinned"
_UNPINNED = "unpinned"
_HASH_SHOWN = 12


class _Unpinned(Stored):
    paths: tuple[str, ...] = Field(default_factory=tuple)


def pin_entry(pin: Pin, text: str) -> CustomMessageEntry:
    """The entry that puts `text` before the model until it is taken out again."""
    head = (
        f'name="{_quoted(pin.name)}" file="{_quoted(pin.path)}" sha256="{pin.digest[:_HASH_SHOWN]}"'
    )
    return CustomMessageEntry(
        custom_type=_PINNED,
        content=f"<{pin.kind} {head}>\n{text.strip()}\n</{pin.kind}>",
        display=False,
        details=pin.model_dump(mode="json", by_alias=True),
    )


def pin_of(entry: Entry) -> Pin | None:
    """What `entry` pins; None for any other entry or one that cannot be read."""
    if not isinstance(entry, CustomMessageEntry) or entry.custom_type != _PINNED:
        return None
    try:
        return Pin.model_validate(entry.details)
    except ValidationError:
        return None


def unpin_entry(paths: Iterable[str]) -> CustomEntry:
    """The entry that takes the texts of `paths` out of the context."""
    return custom_entry(_UNPINNED, _Unpinned(paths=tuple(paths)))


def is_unpin(entry: Entry) -> bool:
    """Whether `entry` takes pinned texts out."""
    return isinstance(entry, CustomEntry) and entry.custom_type == _UNPINNED


def pinned_entries(path: Sequence[Entry]) -> Mapping[str, CustomMessageEntry]:
    """The pinned texts in force on `path`, by the paths of their files, the oldest first.

    Of the same file the newest text counts.
    """
    return _read(path)[0]


def taken_out(path: Sequence[Entry]) -> frozenset[str]:
    """The ids of the entries whose texts were pinned on `path` and taken out again."""
    return _read(path)[1]


def pinned_line(pin: Pin, *, is_changed: bool = False) -> str:
    """What the person is told of a text that is pinned now, in one line."""
    what = f"Skill {pin.name}" if pin.kind == "skill" else f"Instructions for {pin.name}/"
    how = "changed" if is_changed else "in use"
    return f"{what} {how}{', cut to fit the window' * pin.is_cut}: {pin.path}"


def _read(path: Sequence[Entry]) -> tuple[dict[str, CustomMessageEntry], frozenset[str]]:
    pinned: dict[str, CustomMessageEntry] = {}
    gone: set[str] = set()
    written: dict[str, list[str]] = {}
    for entry in path:
        if isinstance(entry, CustomMessageEntry) and (pin := pin_of(entry)) is not None:
            pinned.pop(pin.path, None)
            pinned[pin.path] = entry
            written.setdefault(pin.path, []).append(entry.id)
        elif unpinned := custom_value(entry, _UNPINNED, _Unpinned):
            for file in unpinned.paths:
                pinned.pop(file, None)
                gone.update(written.pop(file, ()))
    return pinned, frozenset(gone)


def _quoted(text: str) -> str:
    return " ".join(text.replace('"', "'").split())
