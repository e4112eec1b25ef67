"""The editor of a session: its abilities, its open texts, and ordered updates to it."""

import asyncio
import codecs
import errno
import sys
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from acp import Client, RequestError
from acp.schema import (
    AvailableCommandsUpdate,
    ClientCapabilities,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    FileSystemCapabilities,
    Implementation,
)

from agent_tui.features.acp.updates import Update
from agent_tui.safe_paths import real_path


@dataclass(frozen=True, slots=True)
class EditorTraits:
    """The abilities of an editor that are used.

    Attributes:
        files: Whether texts are read and written through it.
        shows_forms: Whether it asks for texts and shows lists to pick from.
        signs_in: Whether it opens a terminal to sign in.
        shows_title_only: Whether it shows only a question's title and an answer's kind: then the
            rest goes to the chat, and answers of one kind are offered one at a time.
    """

    files: FileSystemCapabilities = field(default_factory=FileSystemCapabilities)
    shows_forms: bool = False
    signs_in: bool = False
    shows_title_only: bool = False


_TITLE_ONLY = frozenset({"CodeCompanion.nvim"})

_LOSES_UNSAVED = frozenset({"CodeCompanion.nvim"})
"""They read files from the disk and write them into their buffers: what is typed there and not
saved would be lost, so files are read and written on the disk."""


def traits_of(offered: ClientCapabilities | None, editor: Implementation | None) -> EditorTraits:
    """The traits of an editor, from its introduction."""
    offered = offered or ClientCapabilities()
    name = editor.name if editor is not None else ""
    files = None if name in _LOSES_UNSAVED else offered.fs
    return EditorTraits(
        files=files or FileSystemCapabilities(),
        shows_forms=offered.elicitation is not None and offered.elicitation.form is not None,
        signs_in=offered.auth is not None and bool(offered.auth.terminal),
        shows_title_only=name in _TITLE_ONLY,
    )


_MOST_BYTES = 5_000_000
"""Larger files are not exchanged; editors rarely open them as text."""
_MOST_S = 30.0
"""Time limit for an editor's answer about one file."""

_ValueT = TypeVar("_ValueT")


class EditorTexts:
    """The text files below a session's folder, as its editor has them.

    Files that are not UTF-8 are read and written on disk, because an editor may save them in
    another encoding.

    Args:
        client: The editor.
        session_id: The session's id in the editor.
        root: The folder of the session.
        offered: The editor's file capabilities.
    """

    def __init__(
        self, client: Client, session_id: str, root: Path, offered: FileSystemCapabilities
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._root = real_path(root)
        self._reads = bool(offered.read_text_file)
        self._writes = bool(offered.write_text_file)
        self._loop = asyncio.get_running_loop()

    def present(self, path: Path, on_disk: bytes) -> bytes:
        """The text that the editor would save at `path`; `on_disk` if it has no other.

        Raises:
            OSError: The editor does not answer.
        """
        saved = self._text(path, on_disk) if self._reads else None
        if saved is None:
            return on_disk
        asked = self._client.read_text_file(path=str(path), session_id=self._session_id)
        try:
            held = self._answer(asked).content
        except RequestError:  # it does not have this file open: the disk counts
            return on_disk
        lines = _plain(held)
        if lines.removesuffix("\n") == _plain(saved).removesuffix("\n"):
            return on_disk  # editors differ in line endings and in the final one
        has_crlf = saved.count("\r\n") * 2 > saved.count("\n")
        text = lines.replace("\n", "\r\n") if has_crlf else held
        return text.encode("utf-8", "replace")

    def take(self, path: Path, content: bytes) -> bool:
        """Let the editor write a text; false if it must be written to disk instead.

        Raises:
            OSError: The editor refused or does not answer.
        """
        text = self._text(path, content) if self._writes else None
        if text is None:
            return False
        asked = self._client.write_text_file(
            path=str(path), content=text, session_id=self._session_id
        )
        try:
            self._answer(asked)
        except RequestError as error:
            raise OSError(errno.EACCES, f"the editor refused ({error})") from error
        return True

    def _text(self, path: Path, content: bytes) -> str | None:
        """`content` as text if the editor handles the file, else None."""
        is_ours = not path.is_relative_to(self._root) or len(content) > _MOST_BYTES
        if is_ours or b"\0" in content or content.startswith(codecs.BOM_UTF8):
            return None
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def _answer(self, asked: Coroutine[object, object, _ValueT]) -> _ValueT:
        """The answer to a request; waits for it off the event loop."""
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return answer.result(_MOST_S)
        except (TimeoutError, CancelledError, ConnectionError) as error:
            answer.cancel()
            raise OSError(errno.ETIMEDOUT, "the editor did not answer") from error


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


Outgoing: TypeAlias = Update | AvailableCommandsUpdate | ConfigOptionUpdate | CurrentModeUpdate


class Outbox:
    """Sends updates in its own task, so that nothing waits for the editor; needs an event loop.

    Args:
        client: The editor.
        session_id: The session's id in the editor.
    """

    def __init__(self, client: Client, session_id: str) -> None:
        self.client = client
        self.session_id = session_id
        self._waiting: asyncio.Queue[Outgoing | None] = asyncio.Queue()
        self._sending = asyncio.create_task(self._send_all())

    def put(self, update: Outgoing) -> None:
        """Queue `update` for the editor; no update is dropped, however slowly it reads."""
        self._waiting.put_nowait(update)

    async def flush(self) -> None:
        """Wait until everything queued is sent."""
        await self._waiting.join()

    async def aclose(self) -> None:
        """Send everything queued, then stop."""
        self._waiting.put_nowait(None)
        await self._sending

    async def _send_all(self) -> None:
        while (update := await self._waiting.get()) is not None:
            try:
                await self.client.session_update(session_id=self.session_id, update=update)
            except ConnectionError:  # the editor is gone: nobody is left to inform
                pass
            except Exception as error:  # noqa: BLE001 - the pump: what follows is sent all the same
                what, why = type(update).__name__, type(error).__name__
                sys.stderr.write(f"agent-tui: Could not send {what} to the editor: {why}\n")
            finally:
                self._waiting.task_done()
        self._waiting.task_done()
