"""What a prompt file says, and expanding it to a message."""

import re
from dataclasses import dataclass

from agent_tui.agent.prompt.prompt_files import first_line, read_front_matter

_MAX_DESCRIPTION_CHARS = 200
_DESCRIPTION = "description"
_HINT = "argument-hint"
_PLACE = re.compile(r"\$(?:(ARGUMENTS)\b|(@)|([1-9])(?!\d))")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


@dataclass(frozen=True, slots=True)
class PromptText:
    """The parts of a prompt file.

    Attributes:
        description: One line: what the front matter says, else the first line of the body.
        argument_hint: What may follow the command; empty if the file takes nothing special.
        body: The prompt, with its placeholders.
    """

    description: str
    argument_hint: str
    body: str


def parse_prompt_file(data: bytes) -> PromptText:
    """Read a prompt file.

    Front matter is at the very top, between two lines ``---``, as lines ``key: value``.
    Only ``description`` and ``argument-hint`` are used; other agents' keys are skipped.

    Raises:
        PromptFileError: See `read_front_matter`.
    """
    known, body = read_front_matter(data, (_DESCRIPTION, _HINT))
    description = known.get(_DESCRIPTION) or first_line(body)
    hint = known.get(_HINT) or ("[arguments]" if _PLACE.search(body) else "")
    return PromptText(description[:_MAX_DESCRIPTION_CHARS], hint, body)


def expand_prompt(body: str, argument: str) -> str:
    """Expand `body` with `argument` to a message.

    ``$ARGUMENTS`` and ``$@`` stand for all of it, ``$1`` to ``$9`` for its words (``"two words"``
    count as one), empty if there are fewer. If `body` has no placeholder, the argument follows it.
    Inserted text is not expanded again.
    """
    if not _PLACE.search(body):
        return f"{body}\n\n{argument}" if argument else body
    words = [quoted or plain for quoted, plain in _WORD.findall(argument)]

    def filled(place: re.Match[str]) -> str:
        if not place[3]:
            return argument
        at = int(place[3]) - 1
        return words[at] if at < len(words) else ""

    return _PLACE.sub(filled, body)
