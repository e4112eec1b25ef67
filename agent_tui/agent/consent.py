"""The files that keep what the person said about what projects want started: servers, hooks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from agent_tui.config.locked_file import locked_for_change
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.disk import DiskFile, write_new_file

if TYPE_CHECKING:  # the first paint does not wait for pydantic
    from pydantic import JsonValue

Consent: TypeAlias = Literal["allowed", "refused"]

_FOR_THIS_RUN = "Your answer applies to this run only."


class ConsentFile:
    """Answers by the hash of what would be started: ``{"servers": {"<sha256>": "allowed"}}``.

    A server or hook whose command, variables or file are others is another one, and asked about
    anew. A broken file keeps nothing: everything is asked about.

    Args:
        path: The file.
        kind: What is asked about, as the file names it.
    """

    def __init__(self, path: Path, kind: Literal["servers", "hooks"] = "servers") -> None:
        self._path = path
        self._kind = kind
        self._in_this_run: dict[str, Consent] = {}

    def answer_of(self, fingerprint: str) -> Consent | None:
        """What was said; None where nothing was."""
        return self._in_this_run.get(fingerprint) or self._read().get(fingerprint)

    def keep(self, fingerprint: str, consent: Consent) -> None:
        """Keep an answer.

        Raises:
            ConfigError: The file cannot be written; the answer holds for this run.
        """
        self._in_this_run[fingerprint] = consent
        with locked_for_change(self._path, _FOR_THIS_RUN):
            answers = {**self._read(), fingerprint: consent}
            text = json.dumps({self._kind: answers}, indent=2, sort_keys=True)
            write_new_file(self._path, f"{text}\n".encode("ascii"), DiskFile, sync=True)

    def _read(self) -> Mapping[str, Consent]:
        try:
            stored = cast("JsonValue", json.loads(read_regular_file(self._path)))
        except (OSError, ValueError, RecursionError):
            return {}
        answers = stored.get(self._kind) if isinstance(stored, dict) else None
        return _consents(answers) if isinstance(answers, dict) else {}


def _consents(answers: "Mapping[str, JsonValue]") -> Mapping[str, Consent]:
    """The answers that are some, by fingerprint; others are passed over."""
    consents: dict[str, Consent] = {}
    for fingerprint, answer in answers.items():
        if answer == "allowed":
            consents[fingerprint] = "allowed"
        elif answer == "refused":
            consents[fingerprint] = "refused"
    return consents
