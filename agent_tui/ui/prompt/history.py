"""What was sent in a project before: a private JSON-lines file, and walking through it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent_tui.paths import make_private_dir
from agent_tui.ui.prompt.pastes import Draft

MAX_DRAFTS = 1_000
"""Older ones are dropped when the file has grown to twice as many lines."""


class PromptHistory:
    """The drafts sent in one project, oldest first, no text twice.

    Args:
        path: ``history.jsonl``, created with mode 0600 at the first `add`; None keeps the
            history in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._drafts: dict[str, Draft] = {}
        self._lines_in_file = 0

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """All drafts, oldest first."""
        return tuple(self._drafts.values())

    def load(self) -> None:
        """Read the file. Lines that cannot be read are skipped; what was added stays newest."""
        added = self.drafts
        self._drafts.clear()
        for line in self._read_lines():
            self._lines_in_file += 1
            draft = _decode(line)
            if draft is not None:
                self._remember(draft)
        for draft in added:
            self._remember(draft)

    def add(self, draft: Draft) -> None:
        """Remember what was sent, in the file too.

        Raises:
            OSError: the file cannot be written; the draft is remembered in memory all the same.
        """
        if draft.is_empty:
            return
        self._remember(draft)
        if self._path is None:
            return
        make_private_dir(self._path.parent)
        if self._lines_in_file >= 2 * MAX_DRAFTS:
            self._rewrite(self._path)
        else:
            self._append(self._path, _encode(draft))

    def _remember(self, draft: Draft) -> None:
        self._drafts.pop(draft.text, None)
        self._drafts[draft.text] = draft
        while len(self._drafts) > MAX_DRAFTS:
            del self._drafts[next(iter(self._drafts))]

    def _read_lines(self) -> list[str]:
        if self._path is None:
            return []
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    def _append(self, path: Path, line: str) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(line)
        self._lines_in_file += 1

    def _rewrite(self, path: Path) -> None:
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        handle = os.open(temporary, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(_encode(draft) for draft in self.drafts)
        temporary.replace(path)
        self._lines_in_file = len(self._drafts)


def _encode(draft: Draft) -> str:
    value: dict[str, object] = {"text": draft.text}
    if draft.pastes:
        value["pastes"] = dict(draft.pastes)
    return json.dumps(value) + "\n"


def _decode(line: str) -> Draft | None:
    """The draft of one line; None for anything that `_encode` did not write."""
    try:
        value: object = json.loads(line)
        if not isinstance(value, dict):
            return None
        fields = cast(dict[str, object], value)
        text, pastes = fields.get("text"), fields.get("pastes", {})
        if not isinstance(text, str) or not isinstance(pastes, dict):
            return None
        numbered = cast(dict[str, object], pastes)
        return Draft(text, {int(number): str(paste) for number, paste in numbered.items()})
    except (ValueError, RecursionError):
        return None


class HistoryWalk:
    """One walk through the history. The draft it began with is the newest step.

    What the person changes at a step is kept for that step until the walk ends.
    """

    def __init__(self, drafts: Sequence[Draft], current: Draft) -> None:
        self._steps = [*drafts, current]
        self._position = len(self._steps) - 1

    def older(self, current: Draft) -> Draft | None:
        """The step before; None at the oldest. `current` is what stands in the prompt now."""
        return self._move(current, -1)

    def newer(self, current: Draft) -> Draft | None:
        """The step after; None at the draft the walk began with."""
        return self._move(current, 1)

    def _move(self, current: Draft, step: int) -> Draft | None:
        target = self._position + step
        if not 0 <= target < len(self._steps):
            return None
        self._steps[self._position] = current
        self._position = target
        return self._steps[target]
