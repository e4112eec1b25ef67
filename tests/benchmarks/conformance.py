"""agent-tui's compaction, as the public compaction conformance kit drives it.

    python -m pip install compaction-conformance-kit
    compaction-kit check tests/benchmarks/conformance.py:AtWork
    compaction-kit check tests/benchmarks/conformance.py:AgentTui --budgets 10%,20%,30%

The kit plants rules, facts and goals in a conversation of about 2,000 tokens, compacts it five
times and looks for their words in the context. Every round runs the command `agent-tui compact
--model none` on the session of the round before, and the kit reads the messages that `agent-tui
context` prints. No model is asked.

`AtWork` compacts with the default settings: it puts 100,000 tokens of file reads between the turns
of the first round, and as many after each compaction. `AgentTui` compacts the bare conversation to
the kit's budget, a few hundred tokens.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from agent_tui.cli import context_command
from agent_tui.cli.compact import command as compact_command
from agent_tui.errors import CompactionError

_TIME = "2026-01-01T00:00:00.000Z"
_MODEL = {"provider": "none", "model": "none"}

_WINDOW = 128_000
_READS = 60
_CHARACTERS_A_READ = 6_700
"""60 of them are about 100,000 tokens: a window of 128,000 that is due."""

_SHARE = 0.25
"""Without a budget: from 80 % to 20 %, as by default."""

_NUMBERS = count(1)
_READ_NUMBERS = count()
_LIBRARY = [
    file
    for file in sorted(Path(json.__file__).parents[1].glob("*.py"))
    if file.stat().st_size > _CHARACTERS_A_READ
]

_CHARACTERS_A_TOKEN = 4
_TARGET = 0.4
_TRIES = 3

Line = dict[str, Any]


class Turn(Protocol):
    """A turn of the kit's conversation."""

    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Context:
    """What the kit reads: the text of the next request."""

    text: str
    compactor_name: str
    round_num: int
    structured: None = None


class AgentTui:
    """The bare conversation, compacted to the kit's budget."""

    name = "agent-tui"

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="conformance-")
        self._session = Path()
        self._characters = 0

    def compact(
        self, turns: Sequence[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> Context:
        """Compact the session of the round before; in the first round, a new one with `turns`."""
        if round_num == 1:
            self._session = self._written("first", header(), map(message, turns))
            self._characters = sum(len(turn.text) for turn in turns)
        most = budget_chars or int(self._characters * _SHARE)
        tokens, text, child = most / _CHARACTERS_A_TOKEN, "", self._session
        for _ in range(_TRIES):
            window = ["--window", str(int(tokens / _TARGET)), "--target", str(_TARGET)]
            child = compacted(self._session, *window)
            text = context(child)
            if len(text) <= most:
                break
            tokens *= 0.9 * most / len(text)
        self._session = child
        return Context(text, self.name, round_num)

    def _written(self, name: str, head: Line, messages: Iterator[Line]) -> Path:
        file = Path(self._folder.name) / f"{name}.jsonl"
        file.write_text(f"{json.dumps(head)}\n" + "".join(entries(messages, None)))
        return file


class AtWork(AgentTui):
    """The conversation amid real work, compacted five times with the default settings."""

    name = "agent-tui, at work"

    def __init__(self, window: int = _WINDOW) -> None:
        super().__init__()
        self._window = window

    def compact(
        self, turns: Sequence[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> Context:
        """Fill the window with file reads, then compact."""
        if round_num == 1:
            self._session = self._written("first", header(), amid_reads(turns))
        else:
            with self._session.open("a") as file:
                last = json.loads(self._session.read_text().splitlines()[-1])["id"]
                file.writelines(entries(reads(_READS), last))
        self._session = compacted(self._session, "--window", str(self._window))
        return Context(context(self._session), self.name, round_num)


def compacted(session: Path, *options: str) -> Path:
    """The session that `agent-tui compact` writes; `session` where there is nothing to do."""
    options = ("--model", "none", *options, "--session-dir", str(session.parent))
    try:
        written = _printed(compact_command.run_command, str(session), *options).strip()
    except CompactionError:
        return session
    return Path(written)


def context(session: Path) -> str:
    """The messages of the next request, as text."""
    messages = json.loads(_printed(context_command.run_command, str(session), "--json"))["messages"]
    calls = (call for one in messages for call in one.get("tool_calls", ()))
    texts = [str(one["content"] or "") for one in messages]
    return "\n".join((*texts, *(call["function"]["arguments"] for call in calls)))


def _printed(command: Callable[[Sequence[str]], int], *arguments: str) -> str:
    """What a command of agent-tui prints, run in this process."""
    out = TextIOWrapper(BytesIO(), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(StringIO()):
        command(arguments)
    out.seek(0)
    return out.read()


def header() -> Line:
    """The first line of a session file."""
    return {
        "type": "session",
        "version": 3,
        "id": "conformance",
        "timestamp": _TIME,
        "cwd": "/nowhere",
        "provider": "none",
        "modelId": "none",
    }


def entries(messages: Iterable[Line], last: str | None) -> Iterator[str]:
    """Lines of a session file that hold `messages`, after the entry `last`."""
    for one in messages:
        entry = {"type": "message", "id": f"{next(_NUMBERS):08x}", "parentId": last}
        last = entry["id"]
        yield f"{json.dumps({**entry, 'timestamp': _TIME, 'message': one})}\n"


def message(turn: Turn) -> Line:
    """A turn as a message; what is no reply was typed."""
    if turn.role == "assistant":
        return reply({"type": "text", "text": turn.text}, "stop")
    return {"role": "user", "content": turn.text}


def reply(content: Line, why: str) -> Line:
    """A message of the model."""
    return {"role": "assistant", "content": [content], "stopReason": why, **_MODEL}


def amid_reads(turns: Sequence[Turn]) -> Iterator[Line]:
    """The conversation with file reads between the turns."""
    for number, turn in enumerate(turns):
        yield message(turn)
        if turn.role == "assistant":
            through = _READS * (number + 1) // len(turns) - _READS * (number - 1) // len(turns)
            yield from reads(through)


def reads(how_many: int) -> Iterator[Line]:
    """Calls that read a part of Python's own library each, with what they gave."""
    for _ in range(how_many):
        number = next(_READ_NUMBERS)
        file = _LIBRARY[number % len(_LIBRARY)]
        call = {"type": "toolCall", "id": f"call_{number}", "name": "read"}
        yield reply({**call, "arguments": {"path": str(file)}}, "toolUse")
        yield {
            "role": "toolResult",
            "toolCallId": f"call_{number}",
            "toolName": "read",
            "content": [{"type": "text", "text": file.read_text()[:_CHARACTERS_A_READ]}],
            "isError": False,
        }
