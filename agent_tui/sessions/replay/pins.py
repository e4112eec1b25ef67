"""Texts that no compaction removes: bodies of skills, instructions of a subfolder, the goal.

Each is a separate entry. While it is in force, the model sees it word for word: at its original
place or, once its surroundings are compacted, right after the summary.
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
    """The entry that keeps `text` in the context until it is removed."""
    head = (
        f' name="{_quote(pin.name)}" file="{_quote(pin.path)}" sha256="{pin.digest[:_HASH_SHOWN]}"'
    )
    return CustomMessageEntry(
        custom_type=_PINNED,
        content=f"<{pin.kind}{head if pin.digest else ''}>\n{text.strip()}\n</{pin.kind}>",
        display=False,
        details=pin.model_dump(mode="json", by_alias=True),
    )


def pin_of(entry: Entry) -> Pin | None:
    """The pin in `entry`; None for any other entry or an unreadable one."""
    if not isinstance(entry, CustomMessageEntry) or entry.custom_type != _PINNED:
        return None
    try:
        return Pin.model_validate(entry.details)
    except ValidationError:
        return None


def unpin_entry(paths: Iterable[str]) -> CustomEntry:
    """The entry that removes the texts of `paths` from the context."""
    return custom_entry(_UNPINNED, _Unpinned(paths=tuple(paths)))


def is_unpin(entry: Entry) -> bool:
    """Whether `entry` removes pinned texts."""
    return isinstance(entry, CustomEntry) and entry.custom_type == _UNPINNED


def pins_on(path: Sequence[Entry]) -> Mapping[str, CustomMessageEntry]:
    """The pinned texts in force on `path`, by file path, oldest first.

    Of the same file the newest text counts.
    """
    return _read(path)[0]


def removed_pins(path: Sequence[Entry]) -> frozenset[str]:
    """Ids of the entries whose texts were pinned on `path` and then removed."""
    return _read(path)[1]


def pin_line(pin: Pin, *, is_changed: bool = False) -> str:
    """The line for the user about a text that is now pinned."""
    if pin.kind == "goal":
        return f"Goal: {pin.name}"
    if not pin.has_file:
        return f"In use: {pin.name}"
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


def _quote(text: str) -> str:
    return " ".join(text.replace('"', "'").split())
