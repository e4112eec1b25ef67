"""The editor's own file system: unsaved text is seen, and edits land where the person looks."""

import asyncio
import codecs
import errno
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TypeVar

from acp import Client, RequestError
from acp.schema import FileSystemCapabilities

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
