"""The line that tells a new user which keys are useful now, and until when it is shown."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from agent_tui.config import PermissionMode
from agent_tui.key_actions import keys_in_force
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import read_regular_file

KNOWN_AFTER = 10
"""So many messages sent, and the keys are known."""

Doing: TypeAlias = Literal["idle", "working", "asks"]
"""What the program does, in the words of the terminal's title."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the hints depend on. `text` is what stands in the prompt."""

    doing: Doing
    mode: PermissionMode
    text: str = ""
    is_menu_open: bool = False


def hint_text(now: Situation) -> str:
    """The keys that are useful now, in one short line; empty where the screen shows them."""
    if now.is_menu_open:
        return ""
    match now.doing:
        case "asks":
            return ""  # the question says what each key is
        case "working":
            what = "queues" if now.text.strip() else "queues what you write"
            return keys_in_force().hint("submit", what)
        case "idle":
            return _idle_hint(now)
        case _:
            assert_never(now.doing)


def _idle_hint(now: Situation) -> str:
    hint = keys_in_force().hint
    clears = hint("clear_or_leave", "clears")
    if not now.text.strip():
        mode, palette = hint("permission_mode", f"mode: {now.mode}"), hint("palette", "all actions")
        hints = (hint("submit", "sends"), mode, palette, "/help")
    elif now.text.startswith("!"):
        hints = (hint("submit", "runs it here"), hint("history_older", "earlier prompts"), clears)
    else:
        editor = hint("external_editor", "editor")
        hints = (hint("submit", "sends"), _new_line_hint(), "@ files", editor, clears)
    return " · ".join(filter(None, hints))


def _new_line_hint() -> str:
    """A key that any terminal sends, where there is one."""
    keys = keys_in_force()
    if "ctrl+j" in keys.keys("newline"):
        return "ctrl+j new line"
    return keys.hint("newline", "new line")


class Onboarding:
    """Whether hints still help: counts sent messages over all sessions until there are enough.

    Args:
        file: Where the count is kept; None is for a person who knows everything.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._sent = 0 if file is not None else KNOWN_AFTER

    @property
    def is_active(self) -> bool:
        """Whether hints still help."""
        return self._sent < KNOWN_AFTER

    def load(self) -> None:
        """Read the count. Blocking; a file that cannot be read counts as none."""
        if self._file is None:
            return
        try:
            kept = json.loads(read_regular_file(self._file))
        except (OSError, ValueError):
            return
        if isinstance(kept, int):
            self._sent = max(kept, self._sent)

    def message_sent(self) -> None:
        """A message was sent. Where the count cannot be kept, hints come again next time."""
        if self._file is None or not self.is_active:
            return
        self._sent += 1
        try:
            make_private_dir(self._file.parent)
            self._file.write_text(f"{self._sent}\n", encoding="utf-8")
        except OSError:
            return
