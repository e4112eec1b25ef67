"""What ``--input-format stream-json`` reads: a JSON object a line, a message or a stop."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agent_tui.errors import UsageError
from agent_tui.messages import ImageContent, JsonObject
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
            UsageError: One is none.
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
    """One line of the input.

    Raises:
        UsageError: It is not JSON, or neither a message nor a stop.
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
