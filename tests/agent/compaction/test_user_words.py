"""What the user typed is in the next request after every way to compact."""

from collections.abc import Callable

import pytest
from pydantic import JsonValue

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.events import AgentEvent, ApprovalRequested, CompactionFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import ToolResultMessage
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.entries import MessageEntry
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, only

INSTRUCTIONS = (
    "British spelling please",
    "Skip the tests folder",
    "Use sqlite, not postgres",
    "Undo that rename",
)
LOG = "\n".join(
    f"2026-03-01T10:{n // 60:02d}:{n % 60:02d}Z worker-{n} INFO request {n * 7919} took {n} ms"
    for n in range(450)
)
NOTES = {
    "a model's notes": f"<notes>\n{GOOD_SUMMARY}\n</notes>\n<keep>\n#1 1-40\n</keep>",
    "code alone": "I cannot help with that.",
}


def answers(
    notes: str, work: Callable[[str], Reply | None] = lambda _said: None
) -> Callable[[ModelRequest], Reply]:
    """A model that answers requests for notes with `notes`, and messages as `work` says."""

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=notes)
        last = request.messages[-1]
        return (None if isinstance(last, ToolResultMessage) else work(last.text)) or Reply("Done.")

    return answer


async def say(runtime: AgentRuntime, *texts: str, words: str = "") -> list[AgentEvent]:
    """Send `texts`; approvals are refused with `words`."""
    events: list[AgentEvent] = []
    for text in texts:
        async for event in runtime.submit(text):
            events.append(event)
            if isinstance(event, ApprovalRequested):
                runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("no", words))
    assert not words or any(isinstance(event, ApprovalRequested) for event in events)
    return events


async def next_request(runtime: AgentRuntime, provider: ScriptedProvider) -> str:
    """The text of the conversation in the next request."""
    await collect(runtime.submit("What is next?"))
    return "\n".join(message.text for message in provider.requests[-1].messages)


def edit_utils(said: str) -> Reply | None:
    """A model that edits utils.py if it is told to rename something."""
    changes: JsonValue = [{"oldText": "a = 1", "newText": "b = 1"}]
    edit = call("c1", "edit", path="utils.py", edits=changes)
    return Reply(tool_calls=(edit,)) if said == "Rename it." else None


@pytest.mark.parametrize("way", ["/compact", "in place"])
@pytest.mark.parametrize("notes", NOTES)
async def test_short_instructions_stay_and_the_paste_is_cut(stage: Stage, notes: str, way: str):
    for number in range(8):
        (stage.workspace / f"f{number}.py").write_text(f"value_{number} = {number}\n" * 400)

    def work(said: str) -> Reply | None:
        number = INSTRUCTIONS.index(said) if said in INSTRUCTIONS else -1
        reads = [call(f"c{number}{n}", "read", path=f"f{2 * number + n}.py") for n in range(2)]
        return Reply(tool_calls=tuple(reads)) if number >= 0 else None

    provider = ScriptedProvider(answers(NOTES[notes], work))
    runtime = stage.runtime(provider, window=128_000)
    await say(runtime, "Build the greeter.", *INSTRUCTIONS)
    await say(runtime, f"This came out:\n{LOG}", f"And now:\n{LOG.replace('INFO', 'WARN')}")
    compact = runtime.compact() if way == "/compact" else runtime.compact_here("tiered")
    finished = only(await collect(compact), CompactionFinished)
    assert finished.tokens_after < finished.tokens_before
    told = await next_request(runtime, provider)
    for number, instruction in enumerate(("Build the greeter.", *INSTRUCTIONS), start=1):
        assert f"({number}) {instruction}\n" in told
    assert "tokens left out ...] [recall " in told


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("notes", NOTES)
async def test_the_reason_of_a_refusal_stays(stage: Stage, notes: str, rounds: int):
    (stage.workspace / "utils.py").write_text("a = 1\n")
    provider = ScriptedProvider(answers(NOTES[notes], edit_utils))
    runtime = stage.runtime(provider, mode="ask", window=64_000)
    await say(runtime, "Build the greeter.", "Rename it.", words="never touch utils.py for this")
    (said,) = (
        entry.message.tool_details.user_words
        for entry in runtime.conversation.log.entries
        if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage)
    )
    assert said == "never touch utils.py for this"
    for _ in range(rounds):
        await say(runtime, LOG, "Go on.", "And then?")
        await collect(runtime.compact())
    told = await next_request(runtime, provider)
    assert "refused edit of utils.py: never touch utils.py for this" in told
    kept = [e for e in runtime.conversation.log.path_entries() if isinstance(e, MessageEntry)]
    assert not any("They say" in entry.message.text for entry in kept)


@pytest.mark.parametrize("strategy", ["hybrid", "agent"])
async def test_the_reason_of_a_refusal_stays_where_messages_are_shortened(
    stage: Stage, strategy: str
):
    (stage.workspace / "utils.py").write_text("a = 1\n")
    provider = ScriptedProvider(answers("", edit_utils))
    runtime = stage.runtime(provider, mode="ask", window=64_000)
    await say(runtime, "Build the greeter.", "Rename it.", words="never touch utils.py for this")
    await say(runtime, LOG, *("Go on with the work." for _ in range(6)))
    await collect(runtime.compact_here(strategy))
    assert "never touch utils.py for this" in await next_request(runtime, provider)


async def test_a_branch_summary_has_the_reason_of_a_refusal(stage: Stage):
    (stage.workspace / "utils.py").write_text("a = 1\n")
    provider = ScriptedProvider(answers("", edit_utils))
    runtime = stage.runtime(provider, mode="ask", window=64_000)
    await say(runtime, "Build the greeter.", "Undo it.")
    first = runtime.conversation.log.path_entries()[0]
    await say(runtime, "Rename it.", words="never touch utils.py for this")
    await collect(Branches(runtime).go_back_with_summary(first.id))
    told = await next_request(runtime, provider)
    assert "refused edit of utils.py: never touch utils.py for this" in told
    assert "Undo it." in told
