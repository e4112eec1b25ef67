"""Lines of JSON between an editor and this program, whatever standard input and output are."""

import asyncio
import json
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.sessions.file.chunks import MAX_LINE_BYTES, LongLine, read_lines

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603

_GONE = "the editor is gone"
_GRACE_S = 2.0
"""After the end of the input, time for answering open requests."""


class _InvalidMessage(Exception):
    """A message that is answered with an error: its code and text, and the request's id."""

    def __init__(self, code: int, text: str, request_id: JsonValue = None) -> None:
        super().__init__(text)
        self.code = code
        self.request_id = request_id


class StdioWire:
    """A `Transport` of the protocol's library. Needs an event loop.

    Threads read and write, so that a pipe, a socket, a terminal and a file all work. Invalid
    messages are answered with an error, and reading continues. The end of the input or a failed
    write ends the conversation, even if the editor never read queued messages.

    Args:
        incoming: The descriptor to read.
        outgoing: The descriptor to write.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | LongLine | None] = asyncio.Queue()
        self._to_write: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._sending: set[asyncio.Future[None]] = set()
        self._unanswered: list[JsonValue] = []
        self._asked: set[JsonValue] = set()
        self._is_quiet = asyncio.Event()
        self._is_over = False
        self.fault = ""
        """An error of input or output, other than that the editor left."""
        for work, descriptor in ((self._read_all, incoming), (self._write_all, outgoing)):
            os.set_blocking(descriptor, True)
            threading.Thread(target=work, args=(descriptor,), daemon=True).start()

    async def send(self, message: JsonObject) -> None:
        """Write a message; returns when the system has accepted it. Lost answers are ignored.

        Raises:
            ConnectionError: A request or update was not read.
        """
        if "method" in message:
            if "id" in message:
                self._asked.add(message["id"])
            await self._write(message)
            return
        with suppress(ConnectionError):
            await self._write(message)
        if message["id"] in self._unanswered:
            self._unanswered.remove(message["id"])
        self._note_whether_quiet()

    async def _write(self, message: JsonObject) -> None:
        if self._is_over:
            raise ConnectionError(_GONE)
        written: asyncio.Future[None] = self._loop.create_future()
        self._sending.add(written)
        try:
            line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
            self._to_write.put((line, written))
            await written
        finally:
            self._sending.discard(written)
            self._note_whether_quiet()

    async def receive(self) -> JsonObject | None:
        """The next message; None at the end."""
        while not self._is_over:
            line = await self._lines.get()
            if line is None:
                await self._settle()
                break
            try:
                if (message := self._message(line)) is not None:
                    return message
            except _InvalidMessage as error:
                answer: JsonObject = {"code": error.code, "message": str(error)}
                await self.send({"jsonrpc": "2.0", "id": error.request_id, "error": answer})
        return None

    async def close(self) -> None:
        """Drop what was not written yet."""
        self._end("")

    async def _settle(self) -> None:
        self._note_whether_quiet()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_quiet.wait(), _GRACE_S)

    def _note_whether_quiet(self) -> None:
        if self._is_over or not (self._unanswered or self._sending):
            self._is_quiet.set()
        else:
            self._is_quiet.clear()

    def _message(self, line: bytes | LongLine) -> JsonObject | None:
        """The message in a line; None for an empty one.

        Raises:
            _InvalidMessage: The line has no valid message.
        """
        message = _as_object(line)
        if message is None:
            return None
        request_id = message.get("id")
        if isinstance(request_id, bool | float | list | dict):
            raise _InvalidMessage(_INVALID_REQUEST, "The id must be a string or a number.")
        if "method" in message:
            if not isinstance(message["method"], str):
                raise _InvalidMessage(_INVALID_REQUEST, "The method must be a string.", request_id)
            if "id" in message:
                self._unanswered.append(request_id)
            return message
        if not (message.keys() & {"result", "error"} or request_id in self._asked):
            raise _InvalidMessage(_INVALID_REQUEST, "The message has no method.", request_id)
        self._asked.discard(request_id)
        error = message.get("error")
        if error is not None and not isinstance(error, dict):
            message["error"] = {"code": _INTERNAL_ERROR, "message": str(error)}
        return message

    def _end(self, fault: str) -> None:
        """Stop receiving and sending."""
        self._is_over = True
        self.fault = self.fault or fault
        self._lines.put_nowait(None)
        for written in self._sending:
            if not written.done():
                written.set_exception(ConnectionError(_GONE))
        self._note_whether_quiet()

    # In threads

    def _read_all(self, descriptor: int) -> None:
        try:
            with open(descriptor, "rb", closefd=False) as file:
                for line in read_lines(file):
                    self._tell(self._lines.put_nowait, line)
        except OSError as error:
            self._tell(self._end, f"Cannot read standard input: {error.strerror}.")
        self._tell(self._lines.put_nowait, None)

    def _write_all(self, descriptor: int) -> None:
        try:
            while True:
                line, written = self._to_write.get()
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                self._tell(_set_done, written)
        except BrokenPipeError:
            self._tell(self._end, "")
        except OSError as error:
            self._tell(self._end, f"Cannot write to standard output: {error.strerror}.")

    def _tell(self, call: Callable[..., object], *given: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the program is ending
            self._loop.call_soon_threadsafe(call, *given)


def _set_done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _as_object(line: bytes | LongLine) -> JsonObject | None:
    if isinstance(line, LongLine):
        text = f"The line has {line.size_bytes:,} bytes; the limit is {MAX_LINE_BYTES:,}."
        raise _InvalidMessage(_INVALID_REQUEST, text)
    if not line.strip():
        return None
    try:
        value = cast("JsonValue", json.loads(line.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise _InvalidMessage(_PARSE_ERROR, f"The line is not valid JSON: {error}.") from error
    if isinstance(value, list):
        raise _InvalidMessage(
            _INVALID_REQUEST, "Batches are not supported. Send one message per line."
        )
    if not isinstance(value, dict):
        raise _InvalidMessage(_INVALID_REQUEST, "A message must be a JSON object.")
    return value
