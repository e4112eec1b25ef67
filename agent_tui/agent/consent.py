"""Files that store the user's answers about commands that a file from elsewhere could name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from agent_tui.file_locks import lock_for_change
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.disk import DiskFile, write_new_file

if TYPE_CHECKING:  # keeps pydantic out of the time to the first paint
    from pydantic import JsonValue

_ANSWERS = ("refused", "allowed")
_FOR_THIS_RUN = "Your answer applies to this run only."


class ConsentFile:
    """Answers by the hash of what would be started: ``{"servers": {"<sha256>": "allowed"}}``.

    A server or hook whose command, variables or file change gets another hash, so the user is asked
    again. A broken file counts as empty.

    Args:
        path: The file.
        kind: The key of the answers in the file, such as ``servers``.
    """

    def __init__(
        self, path: Path, kind: Literal["servers", "hooks", "checks", "tools"] = "servers"
    ) -> None:
        self._path = path
        self._kind = kind
        self._in_this_run: dict[str, bool] = {}

    def is_allowed(self, fingerprint: str) -> bool | None:
        """The user's answer; None if they have not been asked."""
        answers = {**self._read(), **self._in_this_run}
        return answers.get(fingerprint)

    def keep(self, fingerprint: str, *, is_allowed: bool) -> None:
        """Store an answer.

        Raises:
            ConfigError: The file cannot be written; the answer holds for this run.
        """
        self._in_this_run[fingerprint] = is_allowed
        with lock_for_change(self._path, _FOR_THIS_RUN):
            answers = {**self._read(), fingerprint: is_allowed}
            words = {known: _ANSWERS[answer] for known, answer in answers.items()}
            text = json.dumps({self._kind: words}, indent=2, sort_keys=True)
            write_new_file(self._path, f"{text}\n".encode("ascii"), DiskFile, sync=True)

    def _read(self) -> Mapping[str, bool]:
        """The answers in the file by fingerprint; invalid values are skipped."""
        try:
            stored = cast("JsonValue", json.loads(read_regular_file(self._path)))
        except (OSError, ValueError, RecursionError):
            return {}
        words = stored.get(self._kind) if isinstance(stored, dict) else None
        if not isinstance(words, dict):
            return {}
        return {known: word == "allowed" for known, word in words.items() if word in _ANSWERS}
