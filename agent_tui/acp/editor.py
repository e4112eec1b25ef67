"""The editor of a session: its abilities, its open texts, and the updates sent to it, in order."""

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

from agent_tui.acp.updates import Update


@dataclass(frozen=True, slots=True)
class EditorTraits:
    """What of an editor is made use of.

    Attributes:
        files: Whether texts are read and written through it.
        shows_forms: Whether it asks for texts and shows lists to pick from.
        signs_in: Whether it opens a terminal to sign in.
        shows_title_only: Of a question it shows the title, of an answer its kind: the rest is told
            in the chat, and answers of one kind are asked for one at a time.
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
    """Those of an editor, from how it introduces itself."""
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
"""Larger files are not sent to and fro; editors open them as text only in need."""
_MOST_S = 30.0
"""How long an editor may take for one file."""

_ValueT = TypeVar("_ValueT")


class EditorTexts:
    """The text files below the folder of a session, as its editor has them.

    What is no UTF-8 is left to the disk: an editor may save it in another encoding.

    Args:
        client: The editor.
        session_id: What the session is called there.
        root: The folder of the session.
        offered: What the editor can do.
    """

    def __init__(
        self, client: Client, session_id: str, root: Path, offered: FileSystemCapabilities
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._root = root.resolve()
        self._reads = bool(offered.read_text_file)
        self._writes = bool(offered.write_text_file)
        self._loop = asyncio.get_running_loop()

    def present(self, path: Path, on_disk: bytes) -> bytes:
        """What the editor would save of `path`; `on_disk` where it has nothing else.

        Raises:
            OSError: It does not answer.
        """
        saved = self._text(path, on_disk) if self._reads else None
        if saved is None:
            return on_disk
        asked = self._client.read_text_file(path=str(path), session_id=self._session_id)
        try:
            held = self._answer(asked).content
        except RequestError:  # it does not show this file: the disk is what there is
            return on_disk
        lines = _plain(held)
        if lines.removesuffix("\n") == _plain(saved).removesuffix("\n"):
            return on_disk  # editors differ in line endings and in the last of them
        has_crlf = saved.count("\r\n") * 2 > saved.count("\n")
        text = lines.replace("\n", "\r\n") if has_crlf else held
        return text.encode("utf-8", "replace")

    def take(self, path: Path, content: bytes) -> bool:
        """Have the editor write a text; false where that is left to the disk.

        Raises:
            OSError: It refused, or does not answer.
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
        """`content` as text where it is the editor's to hold; else None."""
        is_ours = not path.is_relative_to(self._root) or len(content) > _MOST_BYTES
        if is_ours or b"\0" in content or content.startswith(codecs.BOM_UTF8):
            return None
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def _answer(self, asked: Coroutine[object, object, _ValueT]) -> _ValueT:
        """What comes of a request, waited for off the event loop."""
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
    """Sends in a task of its own, so that nothing waits for the editor; needs an event loop.

    Args:
        client: The editor.
        session_id: What it calls the session by.
    """

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._waiting: asyncio.Queue[Outgoing | None] = asyncio.Queue()
        self._sending = asyncio.create_task(self._send_all())

    def put(self, update: Outgoing) -> None:
        """Queue `update` for the editor; nothing is left out, however slowly it reads."""
        self._waiting.put_nowait(update)

    async def flush(self) -> None:
        """Wait until everything queued is sent."""
        await self._waiting.join()

    async def aclose(self) -> None:
        """Send what waits, and end."""
        self._waiting.put_nowait(None)
        await self._sending

    async def _send_all(self) -> None:
        while (update := await self._waiting.get()) is not None:
            try:
                await self._client.session_update(session_id=self._session_id, update=update)
            except ConnectionError:  # the editor is gone: nobody is left to be told
                pass
            except Exception as error:  # noqa: BLE001 - the pump: what follows is sent all the same
                what, why = type(update).__name__, type(error).__name__
                sys.stderr.write(f"agent-tui: Could not send {what} to the editor: {why}\n")
            finally:
                self._waiting.task_done()
        self._waiting.task_done()
