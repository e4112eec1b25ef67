"""A session as a file to keep or share, in one of `own_formats`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from agent_tui.errors import SessionError
from agent_tui.feature import own_objects
from agent_tui.safe_text import strip_control_characters
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.export.document import (
    Document,
    document_of,
    other_branches,
)
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog

_SUFFIX = re.compile(r"\.[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """A session that is exported.

    Attributes:
        log: All of it, as it is: what is taken from here may hold keys.
        secrets: Values that must not be exported.
    """

    log: SessionLog
    secrets: Sequence[str] = ()

    @property
    def document(self) -> Document:
        """The present branch as a title, facts and blocks, with keys removed."""
        log = self.log
        path = log.path_entries()
        return document_of(log.header, path, other_branches(log.entries, path), self.secrets)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One form a session is written in.

    Attributes:
        name: What a person calls it by, after ``--format`` and ``/export``.
        suffix: Of a file in this format: ``.txt``. If formats share one, the first is meant.
        about: What it is, in a few words: "a web page".
        text: What the file holds.

    Raises:
        ValueError: `suffix` is not a dot and then letters or digits.
    """

    name: str
    suffix: str
    about: str
    text: Callable[[ExportedSession], str]

    def __post_init__(self) -> None:
        """Check the suffix, which becomes part of names of files."""
        if not _SUFFIX.fullmatch(self.suffix):
            raise ValueError(f"the suffix {self.suffix!r} is not like '.txt'")


def guard_export(known: ExportFormat) -> ExportFormat:
    """`known` as a format of another package: its text holds no keys and no control characters.

    It raises nothing but `SessionError`.
    """

    def text(session: ExportedSession) -> str:
        try:
            made = str(known.text(session))
        except Exception as error:
            raise SessionError(
                f"The export format {known.name} failed: {type(error).__name__}: {error}.",
                "Report it to the author of the plugin.",
            ) from error
        return strip_control_characters(mask_secrets(made, session.secrets))

    return replace(known, text=text)


def to_jsonl(log: SessionLog) -> str:
    """The whole session, every branch, in the session format."""
    lines = [encode_header(log.header), *(encode_entry(entry) for entry in log.entries)]
    return b"".join(lines).decode("utf-8")


JSONL: Final = ExportFormat(
    "jsonl", ".jsonl", "the session format", lambda session: to_jsonl(session.log)
)
"""The only one that is exact: the whole file, with any keys in it."""


def own_formats() -> tuple[ExportFormat, ...]:
    """The formats that agent-tui ships. The first is the default."""
    return (*cast("Iterator[ExportFormat]", own_objects("agent_tui.exports")), JSONL)


def export_text(log: SessionLog, form: ExportFormat, secrets: Sequence[str] = ()) -> str:
    """The present branch of `log` in a format; as ``jsonl`` the whole file.

    Masks `secrets` and everything that looks like one; only ``jsonl`` is exact.

    Raises:
        SessionError: A format of another package failed.
    """
    return form.text(ExportedSession(log, secrets))


def form_of(path: Path, formats: Sequence[ExportFormat]) -> ExportFormat:
    """The format of the suffix of `path`, else the first."""
    return next((form for form in formats if form.suffix == path.suffix), formats[0])
