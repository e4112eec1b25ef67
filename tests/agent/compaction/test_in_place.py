"""A long task in a small window goes on by itself to its end: the real provider, a real server.

The server refuses what is larger than its window and counts as a service does; nobody says a
word between the task and its result.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    ReplyStarted,
    ToolFinished,
    TurnFinished,
    UserMessageAdded,
)
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from tests.support.compaction_ways import assert_sound
from tests.support.openai_server import (
    Answer,
    Call,
    OpenAiServer,
    RecordedRequest,
    Reply,
    context_overflow,
)
from tests.support.patience import PATIENCE_S
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only
from tests.support.wire_rules import openai_problems

TASK = "Read part1.txt to part16.txt in this order and write what they add up to into sum.txt."
ROUNDS = 16
WINDOW = 16_000
"""Of the server; the program is told of half as much again."""
BELIEVED_WINDOW = 24_000
RESULT = "All parts are read and the sum is written."
REMARK = " ".join(
    f"Value {number} of this part stands {number * 7 % 31} lines below the one before it."
    for number in range(45)
)
SUMMARY = GOOD_SUMMARY.replace("Make the greeting polite.", TASK).replace(
    "- [x] Looked at greet.py",
    """\
- [x] Read the parts in their order, each of them to its end, and noted every value found there
- [x] Compared the lines of each file with those of the one before it and saw how they go on
- [x] Kept a running sum of the values on the side, which sum.txt will have to hold""",
)


class Service:
    """What the model does at every request, and what it was asked.

    A part is read each round, with a remark too long to be left as it is; then the sum is written.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.turns: list[RecordedRequest] = []
        self.summaries: list[RecordedRequest] = []
        self.refused: list[RecordedRequest] = []
        self.rounds = 0

    def answer(self, request: RecordedRequest) -> Answer:
        is_turn = "tools" in request.body
        (self.turns if is_turn else self.summaries).append(request)
        size = tokens(request)
        if size > self.window:
            self.refused.append(request)
            return context_overflow(self.window, size)
        if not is_turn:
            return Reply(text=(SUMMARY,), usage=(size, 200))
        self.rounds += 1
        number = self.rounds
        if number > ROUNDS + 1:
            return Reply(text=RESULT, usage=(size, 10))
        call = Call("read", {"path": f"part{number}.txt"}, id=f"call-{number}")
        if number > ROUNDS:
            call = Call("write", {"path": "sum.txt", "content": "136\n"}, id="call-sum")
        return Reply(text=(REMARK,), tool_calls=(call,), usage=(size, 700))


def tokens(request: RecordedRequest) -> int:
    """The size of a request as the server counts it."""
    body = request.body
    return len(json.dumps([body["messages"], body.get("tools", [])])) // 4


def write_parts(workspace: Path) -> None:
    for number in range(1, ROUNDS + 1):
        lines = (f"part {number} line {line}: value {line * number}\n" for line in range(300))
        (workspace / f"part{number}.txt").write_text("".join(lines))


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


@pytest.fixture
def service(server: OpenAiServer) -> Service:
    service = Service(WINDOW)
    server.play(*[service.answer] * 200)
    return service


def assert_legal_and_small(service: Service) -> None:
    """That no request broke a rule of the protocol, and only the first too large one was sent."""
    for request in (*service.turns, *service.summaries):
        assert openai_problems(request.body["messages"]) == []
    assert len(service.refused) == 1
    assert service.refused[0] in service.turns


def is_prefix(before: RecordedRequest, after: RecordedRequest) -> bool:
    """Whether a cache of `before` serves the whole of it again: the same bytes, then more."""
    first, second = (json.dumps(request.body["messages"]) for request in (before, after))
    has_same_tools = before.body["tools"] == after.body["tools"]
    return has_same_tools and second.startswith(first.removesuffix("]"))


def were_compacted_before(events: Sequence[AgentEvent]) -> list[bool]:
    """For each request but the first, whether there was a compaction since the one before it."""
    compacted: list[bool] = []
    is_new = False
    for event in events:
        if isinstance(event, CompactionFinished):
            is_new = True
        elif isinstance(event, ReplyStarted):
            compacted.append(is_new)
            is_new = False
    return compacted[1:]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("background", [False, True], ids=["at the trigger", "prepared ahead"])
async def test_compaction_in_place_never_stops_the_work(
    stage: Stage, host: ProviderHost, server: OpenAiServer, service: Service, background: bool
):
    write_parts(stage.workspace)
    runtime = stage.runtime(
        host,
        model=ModelRef("some-model", server.base_url, "THE_KEY"),
        window=BELIEVED_WINDOW,
        background=background,
    )
    events = await collect(runtime.submit(TASK))
    await runtime.aclose()
    assert only(events, TurnFinished).outcome == "done"
    assert len(of_kind(events, UserMessageAdded)) == 1
    results = [event.message for event in of_kind(events, ToolFinished)]
    assert len(results) == ROUNDS + 1
    assert not any(result.is_error for result in results)
    assert (stage.workspace / "sum.txt").read_text() == "136\n"
    assert not of_kind(events, CompactionFailed)
    compactions = of_kind(events, CompactionFinished)
    assert len(compactions) >= 3
    assert compactions[0].reason == "overflow"
    assert {event.reason for event in compactions[1:]} == {"threshold"}
    assert any(event.summary for event in compactions)
    assert_legal_and_small(service)
    assert runtime.conversation.model_info.window == WINDOW
    kept = [is_prefix(before, after) for before, after in pairwise(service.turns)]
    assert kept == [not is_compacted for is_compacted in were_compacted_before(events)]
    assert assert_sound(runtime.conversation.log.path)


@pytest.mark.thorough
def test_without_a_screen_the_task_comes_to_its_end_as_well(
    tmp_path: Path, server: OpenAiServer, service: Service
):
    folders = {name: tmp_path / name.lower() for name in ("CONFIG", "DATA", "CACHE", "WORK")}
    for folder in folders.values():
        folder.mkdir()
    write_parts(folders["WORK"])
    settings = f'[models."some-model"]\nwindow = {BELIEVED_WINDOW}\nmax_output = 1000\n'
    (folders["CONFIG"] / "config.toml").write_text(settings)
    own = {f"AGENT_TUI_{name}_DIR": str(folder) for name, folder in folders.items()}
    line = [sys.executable, "-m", "agent_tui", "-m", "some-model", "--base-url", server.base_url]
    line += ["--api-key-env", "THE_KEY", "--permission-mode", "full"]
    done = subprocess.run(
        [*line, "--output-format", "stream-json", "-p", TASK],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **own, "THE_KEY": "sk-test-0123456789abcdef"},
        cwd=folders["WORK"],
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds.count("CompactionFinished") >= 3
    assert "CompactionFailed" not in kinds
    assert kinds.count("UserMessageAdded") == 1
    assert (folders["WORK"] / "sum.txt").read_text() == "136\n"
    assert_legal_and_small(service)
    (path,) = (folders["DATA"] / "sessions").rglob("*.jsonl")
    assert_sound(path)
