"""``@server:uri`` in what the person writes: the text stays, the resource goes along with it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.errors import ToolError
from agent_tui.messages import ImageContent
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.limits import OutputLimits, output_limits

ResourceReader: TypeAlias = Callable[[str, str, OutputLimits], Awaitable[ToolOutput | None]]
"""Gives what a server has at a URI; None where there is no such server. Raises a `ToolError`."""

_MENTION = re.compile(
    r"(?:^|(?<=[\s(\[{\"'`,;]))@([A-Za-z0-9][\w-]*):([A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>]+)"
)
_TRAILING = ".,;:!?)]}'`"
_MOST = 10


@dataclass(frozen=True, slots=True)
class AttachedResource:
    """A resource that was named.

    Args:
        written: As it stands behind the @.
        text: What goes to the model; empty where it could not be read.
        images: Pictures that go along.
        problem: Why it could not be read.
    """

    written: str
    text: str = ""
    images: tuple[ImageContent, ...] = ()
    problem: str = ""


async def no_resources(_server: str, _uri: str, _limits: OutputLimits) -> ToolOutput | None:
    """A `ResourceReader` where there are no servers."""
    return None


async def read_mentioned(
    text: str, window: int, read: ResourceReader
) -> Sequence[AttachedResource]:
    """The resources that `text` mentions, each once; what names no server is passed over.

    Args:
        text: What the person wrote.
        window: Tokens of the model's window; 0 where it is not known.
        read: Gives them.
    """
    named: Mapping[str, tuple[str, str]] = {
        f"{found[1]}:{uri}": (found[1], uri)
        for found in _MENTION.finditer(text)
        if (uri := found[2].rstrip(_TRAILING))
    }
    attached: list[AttachedResource] = []
    limits = output_limits(window, max(len(named), 1))
    for written, (server, uri) in list(named.items())[:_MOST]:
        try:
            output = await read(server, uri, limits)
        except ToolError as error:
            attached.append(AttachedResource(written, problem=str(error)))
            continue
        if output is not None:
            attached.append(AttachedResource(written, output.for_model, output.images))
    return attached
