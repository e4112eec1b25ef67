"""Conversations for strategy `hybrid`, and a model that says old messages in fewer words."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.request import Asking, CompactionRequest, ContextSizes
from agent_tui.compaction.strategies.base import OnDecisions, StrategyServices
from agent_tui.config import CompactionSettings
from agent_tui.features.strategies.hybrid import HybridStrategy
from agent_tui.messages import FileTouches, Todo, ToolCall, Usage
from agent_tui.providers.base import ModelRef, ModelRequest, Provider
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import Models, Writer, client_of
from tests.support.talk import Talk

CWD = "/project"
WORK = "Working on it, one file after the other, as the plan says. " * 12


def planned(
    path: Sequence[Entry],
    counter: TokenCounter,
    *,
    target: int = 1,
    writer: Provider | None = None,
    window: int = 100_000,
    focus: str = "",
    overhead: int = 0,
    models: Models | None = None,
    settings: CompactionSettings | None = None,
    on_decisions: OnDecisions | None = None,
    used: list[Usage] | None = None,
) -> Outcome:
    """What the strategy makes of `path`."""
    services = StrategyServices(client_of(writer), counter, models or Models(), on_decisions)
    strategy = HybridStrategy(services)
    request = CompactionRequest(
        path=tuple(path),
        previous=None,
        model=ModelRef("scripted/one"),
        cwd=Path(CWD),
        settings=settings or CompactionSettings(),
        sizes=ContextSizes(window=window, used=10_000, overhead=overhead, target=target),
        asking=Asking(focus=focus),
    )
    spent = [] if used is None else used
    return asyncio.run(
        strategy.plan(request, on_progress=lambda _phase, _chars: None, on_usage=spent.append)
    )


def questions(pairs: int = 10) -> Talk:
    """Questions of some 90 tokens and answers of some 400."""
    talk = Talk()
    for number in range(pairs):
        talk.user(f"Question {number} about src/part{number}.py: " + "what does it do there? " * 15)
        talk.reply(f"Answer {number}: src/part{number}.py parses. " + "It takes the text. " * 80)
    return talk


def file_of(lines: int) -> str:
    """A Python file as `read` shows it, four tokens a line and some functions."""
    return "\n".join(
        f"{number}\tdef function_{number}():" if number % 500 == 1 else f"{number}\tx = 1"
        for number in range(1, lines + 1)
    )


def with_reads(*, newest: str = "It is a long file.") -> tuple[Talk, dict[str, MessageEntry]]:
    """A read of 5,000 lines, a write of 500 and an edit of 300; the results by tool."""
    talk = Talk()
    found: dict[str, MessageEntry] = {}
    talk.user("Clean up the parser.")
    plan = [Todo(text="clean the parser", status="in_progress")]
    talk.tool("todo", {"todos": [t.model_dump() for t in plan]}, todos=plan)
    read = ToolCall(id="c-read", name="read", arguments={"path": "src/parser.py"})
    talk.reply("", read)
    found["read"] = talk.result(
        read, file_of(5_000), files=FileTouches(read=(f"{CWD}/src/parser.py",))
    )
    body = "\n".join(f"line {number} of the new file" for number in range(500))
    write = ToolCall(id="c-write", name="write", arguments={"path": "src/new.py", "content": body})
    talk.reply("src/parser.py: the grammar and its tests.", write)
    found["write"] = talk.result(
        write,
        "Created src/new.py (500 lines).\n" + body,
        files=FileTouches(written=(f"{CWD}/src/new.py",)),
    )
    old = "\n".join(f"old {number}" for number in range(300))
    new = "\n".join(f"new {number}" for number in range(300))
    edit = ToolCall(
        id="c-edit",
        name="edit",
        arguments={"path": "src/parser.py", "old_string": old, "new_string": new},
    )
    talk.reply("Now the edit.", edit)
    found["edit"] = talk.result(
        edit, f"Edited src/parser.py.\n{new}", files=FileTouches(edited=(f"{CWD}/src/parser.py",))
    )
    talk.reply(newest)
    return talk, found


@dataclass(frozen=True)
class Item:
    """One message that a request asks to shorten."""

    number: int
    words: int
    text: str


def items_of(request: ModelRequest) -> list[Item]:
    """The messages that a request asks to shorten."""
    prompt = request.messages[0].text
    found = re.search(r"<conversation>\n(.*)\n</conversation>", prompt, re.DOTALL)
    assert found is not None
    heads = re.compile(r"^#(\d+) (?:user|assistant), at most (\d+) words\n", re.MULTILINE)
    _, *parts = heads.split(found[1])
    return [
        Item(int(number), int(words), text.strip())
        for number, words, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def shortened(request: ModelRequest) -> str:
    """A good reply: the first words of every message."""
    return reply_with(lambda item: "In short: " + " ".join(item.text.split()[:8]))(request)


def reply_with(shorten: Callable[[Item], str]) -> Callable[[ModelRequest], str]:
    """A model that says of each message what `shorten` gives."""

    def answer(request: ModelRequest) -> str:
        return "\n".join(f"#{item.number} {shorten(item)}" for item in items_of(request))

    return answer


def good_writer() -> Writer:
    """A model that shortens every message well."""
    return Writer([shortened])
