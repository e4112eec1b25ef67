"""Short ways to write down what a user said in sessions, and what the model did before."""

from collections.abc import Iterator, Sequence

from agent_tui.features.rules.offers import ProjectCorrections, SessionSource
from agent_tui.features.rules.reading import read_corrections
from agent_tui.messages import AssistantMessage, TextContent, ToolCall, UserMessage
from agent_tui.sessions.entries import Entry, MessageEntry

BACKGROUND = (
    "Write a parser for the file.",
    "Please add a test for the new function in the code.",
    "Can we use it in the other module, too?",
    "The tests are not running in the CI.",
    "Look at the logs and fix it.",
    "Please commit it and push the changes to the branch.",
    "Add the option to the settings, please.",
    "Do the next step of the plan.",
)
"""What people say all the time: it makes the words of every sentence weigh little."""


def work(text: str, name: str = "write") -> Entry:
    """A reply that writes `text`, or runs it with ``bash``."""
    arguments = {"command": text} if name == "bash" else {"path": "a.txt", "content": text}
    call = ToolCall(id="c", name=name, arguments=dict(arguments))
    return MessageEntry(message=AssistantMessage(content=(call,)))


def say(text: str, at: str = "") -> Entry:
    return MessageEntry(timestamp=at, message=UserMessage(content=text))


def answer(text: str) -> Entry:
    return MessageEntry(message=AssistantMessage(content=(TextContent(text=text),)))


def session(*corrections: str, day: int = 1) -> Iterator[Entry]:
    """A session in which each of `corrections` follows a change, with other work between them."""
    yield say("Write it.", f"2026-01-{day:02}T00:00:00Z")
    for number, correction in enumerate(corrections):
        yield work(f"one {number}")
        yield say(correction, f"2026-01-{day:02}T{number + 1:02}:00:00Z")
        for other in ("Go on.", "And the next one.", "Then the last one."):
            yield work("two")
            yield say(other, f"2026-01-{day:02}T{number + 1:02}:30:00Z")


def project(sessions: Sequence[Iterator[Entry]]) -> ProjectCorrections:
    """What was said in `sessions` and, as a background, in another one without any work."""
    found = ProjectCorrections()
    found.add(SessionSource("background"), read_corrections(map(say, BACKGROUND * 5)))
    for number, entries in enumerate(sessions):
        found.add(SessionSource(f"s{number}", f"Session {number}"), read_corrections(entries))
    return found
