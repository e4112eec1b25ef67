"""Models that the user chose or marked before, and first steps with a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent_tui.atomic_files import replace_private_file
from agent_tui.config.model_addresses import display_address
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.regular_files import read_regular_file

_MOST_RECENT = 8
_MARKED = "favourites"
_CHOSEN = "recent"


class KnownModels:
    """Favourites and recently chosen models, over all sessions.

    Changes by other programs meanwhile are kept. If the file cannot be read or written, changes
    last for this run.

    Args:
        file: ``{"favourites": [...], "recent": [...]}``; None keeps it in memory.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._kept: dict[str, tuple[str, ...]] = {_MARKED: (), _CHOSEN: ()}

    def load(self) -> None:
        """Read the file. Blocking."""
        if self._file is None:
            return
        try:
            stored = cast(object, json.loads(read_regular_file(self._file)))
        except (OSError, ValueError, RecursionError):
            return
        if isinstance(stored, dict):
            found = cast("dict[str, object]", stored)
            self._kept = {kind: _names(found.get(kind)) for kind in self._kept}

    def is_favourite(self, ref: ModelRef) -> bool:
        """Whether the user marked it."""
        return _key(ref) in self._kept[_MARKED]

    def place(self, ref: ModelRef) -> int:
        """Its position in a list: favourites, then recently chosen ones, then all others."""
        known = (*self._kept[_MARKED], *self._kept[_CHOSEN])
        key = _key(ref)
        return known.index(key) if key in known else len(known)

    def chose(self, ref: ModelRef) -> None:
        """Record that it was chosen just now. Blocking."""
        self.load()
        others = (key for key in self._kept[_CHOSEN] if key != _key(ref))
        self._keep(_CHOSEN, (_key(ref), *others)[:_MOST_RECENT])

    def mark(self, ref: ModelRef) -> None:
        """Make it a favourite, or undo that. Blocking."""
        self.load()
        key, marked = _key(ref), self._kept[_MARKED]
        self._keep(
            _MARKED, tuple(k for k in marked if k != key) if key in marked else (*marked, key)
        )

    def _keep(self, kind: str, keys: tuple[str, ...]) -> None:
        if keys == self._kept[kind]:
            return
        self._kept = {**self._kept, kind: keys}
        if self._file is None:
            return
        try:
            replace_private_file(self._file, json.dumps(self._kept, indent=2) + "\n")
        except OSError:
            return


def _key(ref: ModelRef) -> str:
    """The model's name and address; a login in the address is never stored."""
    return f"{ref.name} {display_address(ref.base_url)}" if ref.base_url else ref.name


def _names(stored: object) -> tuple[str, ...]:
    if not isinstance(stored, list):
        return ()
    return tuple(name for name in cast("list[object]", stored) if isinstance(name, str))


def trial_note(info: ModelInfo) -> str:
    """The note about a model that is too small for work; empty for any other."""
    if not info.is_tiny:
        return ""
    return (
        f"{info.name} is only for trying the program: it is too small for real work and makes "
        "things up."
    )


def first_steps(info: ModelInfo, demos: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Things to try, each with what it shows.

    Args:
        info: The model in use.
        demos: How a demo starts here, and what it shows.
    """
    if info.is_tiny:
        return (
            *demos,
            ("What does @FILE say?", "asks about one short file, attached with @"),
            ("/model", "chooses a model for real work"),
        )
    return (
        ("What does this project do?", "it reads the code to find out"),
        ("@ and a file's name", "attaches the file to your message"),
        ("/help", "lists every command and key"),
    )
