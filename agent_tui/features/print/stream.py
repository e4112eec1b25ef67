"""Many messages without a screen: JSON lines in, events out."""

import asyncio
import sys
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import replace
from typing import Annotated, Final, Literal, TextIO, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import CommandServices
from agent_tui.errors import UsageError
from agent_tui.events import Notice
from agent_tui.features.print.answer_schema import NO_TERMS, RunTerms
from agent_tui.features.print.printer import ExitCode, print_command, print_event, print_turn
from agent_tui.messages import ImageContent, JsonObject
from agent_tui.safe_text import printable_line
from agent_tui.tools.files.images import fit_image, image_type

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ABOUT: Final = "One line of the standard input of `agent-tui -p --input-format stream-json`."
_SHOWN_CHARS = 200


class TextPart(BaseModel):
    """Text in a message."""

    type: Literal["text"]
    text: str


class ImageSource(BaseModel):
    """A PNG, JPEG, GIF or WEBP as Base64 in `data`, which also determines its type."""

    type: Literal["base64"]
    data: str
    media_type: str = ""


class ImagePart(BaseModel):
    """An image in a message."""

    type: Literal["image"]
    source: ImageSource


class SentMessage(BaseModel):
    """The message: text, or parts in order."""

    role: Literal["user"] = "user"
    content: str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]]


class UserLine(BaseModel):
    """A message, sent as a separate turn once the turns before it have ended.

    Text that begins with ``/`` runs a command, as with ``-p``.
    """

    type: Literal["user"]
    message: SentMessage

    @property
    def text(self) -> str:
        """All text of the message."""
        content = self.message.content
        if isinstance(content, str):
            return content
        return "\n".join(part.text for part in content if isinstance(part, TextPart))

    def images(self) -> tuple[ImageContent, ...]:
        """The images of the message, made as small as providers want them.

        Raises:
            UsageError: One is not an image, or cannot be sent.
        """
        content = self.message.content
        parts = [] if isinstance(content, str) else content
        return tuple(_image(part.source.data) for part in parts if isinstance(part, ImagePart))


class InterruptLine(BaseModel):
    """Stops the running turn at once; waiting messages are then sent."""

    type: Literal["interrupt"]


InputLine: TypeAlias = Annotated[UserLine | InterruptLine, Field(discriminator="type")]
_LINE: Final[TypeAdapter[UserLine | InterruptLine]] = TypeAdapter(InputLine)


def read_input_line(line: bytes) -> UserLine | InterruptLine:
    """Parse one line of the input.

    Raises:
        UsageError: It is not JSON, or neither a message nor an interrupt.
    """
    try:
        return _LINE.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        why = f"{place}: {first['msg']}" if place else first["msg"]
        raise UsageError(f"{why[:_SHOWN_CHARS]}.", "See agent-tui events schema --input.") from None


def input_schema() -> JsonObject:
    """The JSON Schema of one line."""
    schema = _LINE.json_schema()
    return {"$schema": _DIALECT, "title": "agent-tui input", "description": _ABOUT, **schema}


def _image(data: str) -> ImageContent:
    try:
        content = b64decode(data, validate=True)
    except (Base64Error, ValueError) as error:
        raise UsageError(f"an image is not Base64: {error}.") from None
    if not image_type(content) or not (fitted := fit_image(content)):
        raise UsageError("an image is not a PNG, JPEG, GIF or WEBP that can be sent.")
    return ImageContent(data=b64encode(fitted).decode("ascii"), mime_type=image_type(fitted))


class MessageStream:
    """Runs a turn or a command for each message in order, and prints all events.

    Each message is followed by its result. Background commands keep running between turns, and end
    with the input.

    Args:
        runtime: The conversation.
        services: The other services for commands.
        terms: The settings of the run; a schema applies to each answer.
        out: Receives events.
        err: Receives everything else.
    """

    def __init__(
        self,
        runtime: AgentRuntime,
        services: CommandServices,
        *,
        terms: RunTerms = NO_TERMS,
        out: TextIO = sys.stdout,
        err: TextIO = sys.stderr,
    ) -> None:
        self._runtime = runtime
        self._services = services
        self._terms = replace(terms, goes_on=True)
        self._out = out
        self._err = err
        self._waiting: asyncio.Queue[UserLine | None] = asyncio.Queue()
        self._lines = 0
        self._has_bad_line = False
        self._is_stopped = False

    def feed(self, line: bytes) -> None:
        """Handle an input line: a message is queued, an interrupt acts at once.

        An invalid line is reported as a notice, and the rest continues.
        """
        self._lines += 1
        if not line.strip():
            return
        try:
            read = read_input_line(line)
        except UsageError as error:
            self._refuse(self._lines, error)
            return
        if isinstance(read, UserLine):
            self._waiting.put_nowait(read)
        else:
            self._runtime.abort()

    def close(self) -> None:
        """End the input: `run` returns after the queued messages."""
        self._waiting.put_nowait(None)

    def stop(self) -> None:
        """Stop now: interrupt the running turn and drop queued messages."""
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self.close()
        self._is_stopped = True
        self._runtime.abort(ends_wait=False)

    async def run(self) -> ExitCode:
        """Run until the input is closed.

        Returns:
            The result of the last message, `ExitCode.USAGE` if a line was invalid,
            `ExitCode.INTERRUPTED` or `ExitCode.TIMEOUT` after `stop`.
        """
        code = ExitCode.DONE
        while (message := await self._waiting.get()) is not None:
            code = await self._answer(message)
        for job in await self._runtime.end_jobs():
            print(f"Stopped when the run ended: {printable_line(job.shown)}", file=self._err)
        if self._is_stopped:
            is_out_of_time = self._terms.is_out_of_time
            return ExitCode.TIMEOUT if is_out_of_time else ExitCode.INTERRUPTED
        return ExitCode.USAGE if self._has_bad_line else code

    async def _answer(self, message: UserLine) -> ExitCode:
        runtime, out, err = self._runtime, self._out, self._err
        if message.text.lstrip().startswith("/"):
            return await print_command(
                runtime,
                self._services,
                message.text,
                "stream-json",
                out=out,
                err=err,
                terms=self._terms,
            )
        try:
            images = await asyncio.to_thread(message.images)
        except UsageError as error:
            self._refuse(0, error)
            return ExitCode.USAGE
        return await print_turn(
            runtime,
            message.text,
            "stream-json",
            images,
            out,
            err,
            terms=self._terms,
        )

    def _refuse(self, number: int, error: UsageError) -> None:
        self._has_bad_line = True
        which = f"Input line {number}" if number else "Input message"
        notice = Notice("error", f"{which} ignored: {error}")
        print_event(notice, self._runtime.conversation.services.secrets, self._out)
