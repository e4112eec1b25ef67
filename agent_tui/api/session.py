"""Conversations that are kept in files, and the settings of programs that use the library."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import IN_PROGRAM, AgentTuiError, ConfigError, SessionError, UsageError
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.safe_paths import real_path
from agent_tui.sessions.context import build_context, messages_to_send
from agent_tui.sessions.listing import SessionSummary, read_summary
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore


@contextmanager
def errors_for_programs() -> Generator[None]:
    """Errors from inside the block advise what a program can do."""
    try:
        yield
    except AgentTuiError as error:
        error.ways = IN_PROGRAM
        raise


def library_settings(
    model: str,
    base_url: str | None,
    window: int | None,
    api_key_env: str | None = None,
    **more: object,
) -> Settings:
    """The built-in settings, with what a program gave.

    Args:
        model: Name of the model; empty for none.
        base_url: Address of its server; None for the provider's own.
        window: Its context window in tokens; None for what is known of it.
        api_key_env: The variable with its key; None for the provider's own.
        more: Settings by name.

    Raises:
        UsageError: The address or the window cannot be used, or the variable is not set.
    """
    if api_key_env and not os.environ.get(api_key_env):
        raise UsageError(
            f"The environment variable {api_key_env}, which api_key_env names, is not set.",
            "Set it, or leave out api_key_env if the server needs no key.",
        )
    given: dict[str, object] = {"model": model, "base_url": base_url, "api_key_env": api_key_env}
    if window is not None:
        given["models"] = {model: {"window": window}}
    try:
        return Settings.model_validate({**{k: v for k, v in given.items() if v}, **more})
    except ValidationError as error:
        first = error.errors()[0]
        where = "window" if "window" in first["loc"] else ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg'].removeprefix('Value error, ')}.") from error


def named_model(catalog: ModelCatalog, name: str) -> ModelRef:
    """The model of exactly this name.

    Raises:
        UsageError: There is none; the text has the nearest names.
    """
    try:
        return catalog.resolve_exact(name)
    except ConfigError as error:
        raise UsageError(error.message, error.hint) from error


_ID = re.compile(r"[0-9a-f]{8}[0-9a-f-]*")
"""A session's id or its beginning, rather than the name of a folder."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation in a file: those of the program, and those of an `Agent` that was given one.

        for session in Session.list("my-project"):
            print(session.id, session.name or session.first_prompt)
        async with Agent("openai/gpt-6.1-sol", session=Session.open("fix-parser")) as agent: ...

    Nothing of it changes later; open it again to see what was written since.

    Args:
        id: It stays the same for the whole session.
        path: The file.
        folder: Where sessions are kept: this one is below it.
        cwd: The folder it works in.
        name: Empty where it has none.
        first_prompt: One line of what was asked first.
        modified: When something was written last.
    """

    id: str
    path: Path
    folder: Path
    cwd: Path
    name: str
    first_prompt: str
    modified: datetime

    @classmethod
    def list(
        cls, cwd: str | Path | None = None, *, folder: str | Path | None = None
    ) -> tuple[Self, ...]:
        """The sessions that work in `cwd`, or all, the one written last first.

        Args:
            cwd: A folder that sessions work in.
            folder: Where sessions are kept; by default where the program keeps them.
        """
        store = _store(folder)
        found = store.list(real_path(cwd) if cwd is not None else None)
        return tuple(cls._of(summary, store) for summary in found)

    @classmethod
    def open(cls, ref: str | Path, *, folder: str | Path | None = None) -> Self:
        """The session that `ref` means: a file, an id or the beginning of one, or a name.

        Args:
            ref: Of several sessions with one name, the one written last counts.
            folder: As for `list`.

        Raises:
            SessionError: There is none, or there are several; the text names the nearest ones.
        """
        store = _store(folder)
        if not str(ref).strip():
            raise SessionError("An empty text names no session. Give a file, an id or a name.")
        with errors_for_programs():
            return cls._at(store.find(str(ref), Path.cwd()), store)

    @classmethod
    def resume(cls, cwd: str | Path = ".", *, folder: str | Path | None = None) -> Self:
        """The session that a user left last in `cwd`, as ``agent-tui -c`` opens it.

        Where nobody has, it is the one written last.

        Raises:
            SessionError: There is none.
        """
        store, here = _store(folder), real_path(cwd)
        newest = store.newest(here)
        path = store.find_left_last(here) or (newest.path if newest is not None else None)
        if path is None:
            raise SessionError(f"No session in {store.root} works in {here}.")
        return cls._at(path, store)

    def messages(self) -> tuple[JsonObject, ...]:
        """What a model sees of it now, after its compactions: OpenAI's chat messages.

        Raises:
            SessionError: The file is gone or cannot be read.
        """
        with errors_for_programs(), SessionLog.open(self.path, read_only=True) as log:
            context = build_context(log.path_entries(), carryover=log.header.compaction)
        return tuple(openai_messages("", messages_to_send(context)))

    @classmethod
    def _at(cls, path: Path, store: SessionStore) -> Self:
        if (summary := read_summary(path)) is None:
            raise SessionError(f"The file {path} cannot be read as a session.")
        return cls._of(summary, store)

    @classmethod
    def _of(cls, summary: SessionSummary, store: SessionStore) -> Self:
        return cls(
            id=summary.id,
            path=summary.path,
            folder=store.root,
            cwd=summary.cwd,
            name=summary.name,
            first_prompt=summary.first_prompt,
            modified=summary.modified,
        )


def session_or_folder(given: Session | str | Path | None) -> Session | Path | None:
    """The session that `given` names by its file or id, or else the folder it names.

    Raises:
        SessionError: It has the form of an id or a file, and there is no such session.
    """
    if given is None or isinstance(given, Session):
        return given
    path = Path(given).expanduser()
    is_id = isinstance(given, str) and _ID.fullmatch(given) and not path.is_dir()
    if is_id or path.is_file() or path.suffix == ".jsonl":
        return Session.open(given)
    return real_path(path)


def _store(folder: str | Path | None) -> SessionStore:
    given = real_path(Path(folder).expanduser()) if folder else None
    return SessionStore(given or paths.default_session_dir())
