"""The `why` tool: a real runtime, real files, sessions on disk and in memory."""

from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import ApprovalRequested, ToolFinished
from agent_tui.features.tour.scripted import Reply, Script, call
from agent_tui.features.why.line_history import file_sessions
from agent_tui.features.why.tool import MOST_BYTES
from agent_tui.messages import ToolResultMessage
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

KEY = "sk-ant-api03-0123456789abcdefghij"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    (stage.workspace / "a.py").write_text("one\ntwo\nthree\n")
    return stage


def edit(old: str, new: str, said: str = "", path: str = "a.py") -> Reply:
    change = call(f"e{old}{new}", "edit", path=path, edits=[{"old": old, "new": new}])
    return Reply(said, tool_calls=(change,))


def why(line: int = 0, last: int = 0, path: str = "a.py") -> Reply:
    places = {"path": path} | ({"line": line} if line else {}) | ({"last": last} if last else {})
    return Reply(tool_calls=(call(f"w{line}{last}", "why", **places),))


async def asked(runtime: AgentRuntime, text: str = "Go on.") -> ToolResultMessage:
    """The result of the only call of the turn."""
    return only(await collect(runtime.submit(text)), ToolFinished).message


async def changed(stage: Stage, request: str, old: str, new: str, said: str = "") -> None:
    """Another session with one request, one edit and a command after it."""
    test = Reply(tool_calls=(call("t", "bash", command="true"),))
    runtime = stage.runtime([edit(old, new, said), test, Reply("Done.")])
    await collect(runtime.submit(request))
    await runtime.aclose()


async def test_the_model_learns_who_asked_for_a_line_in_this_and_in_an_earlier_session(
    stage: Stage,
):
    await changed(stage, "Shout the second line.", "two", "TWO", "It must be loud.")
    runtime = stage.runtime(
        [edit("three", "THREE", "So must this."), Reply("Ok."), why(1, 3), Reply("I see.")]
    )
    await collect(runtime.submit("And the third."))
    text = (await asked(runtime)).text
    earlier, own, untouched = text.split("\n\n")
    place, session, *facts = earlier.splitlines()
    assert place == "a.py:2: TWO"
    assert " UTC, session " in session
    assert facts == [
        "  The user asked: Shout the second line.",
        "  Reason given: It must be loud.",
        "  Changed by edit",
        "    - two",
        "    + TWO",
        "  Next command: true (exit 0)",
    ]
    assert "a.py:3: THREE" in own
    assert "The user asked: And the third." in own
    assert untouched.startswith("a.py:1: one\nNo session made this line: it was there before ")


@pytest.mark.parametrize("reaches_others", [True, False])
async def test_other_sessions_are_read_unless_the_setting_forbids_it(
    stage: Stage, reaches_others: bool
):
    await changed(stage, "Shout.", "two", "TWO")
    runtime = stage.runtime([why(2), Reply("I see.")])
    runtime.services.settings = runtime.services.settings.model_copy(
        update={"recall_other_sessions": reaches_others}
    )
    assert ("The user asked: Shout." in (await asked(runtime)).text) is reaches_others


async def test_what_was_compacted_away_is_still_known(stage: Stage):
    replies = iter([edit("two", "TWO"), Reply("Done. " * 9_000), Reply("x " * 9_000), why(2)])
    runtime = stage.runtime(
        lambda request: (
            Reply(GOOD_SUMMARY) if request.purpose == "summary" else next(replies, Reply("Ok."))
        )
    )
    runtime.services.settings = runtime.services.settings.model_copy(
        update={"recall_other_sessions": False}
    )
    await collect(runtime.submit("Shout."))
    await collect(runtime.submit("More."))
    first = runtime.conversation.log.path
    await collect(runtime.compact())
    assert runtime.conversation.log.path != first
    assert "The user asked: Shout." in (await asked(runtime)).text


async def test_the_user_sees_what_was_asked_and_how_many_lines_are_known(stage: Stage):
    await changed(stage, "Shout the second line.", "two", "TWO")
    runtime = stage.runtime([why(2), Reply("I see."), why(1, 3), Reply("I see."), why(1), Reply()])
    shown = [(await asked(runtime)).tool_details.summary for _ in range(3)]
    assert shown == ["asked: Shout the second line.", "1 of 3 lines known", "0 of 1 line known"]


async def test_sessions_that_cannot_be_read_are_counted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    await changed(stage, "Shout.", "two", "TWO")
    monkeypatch.setattr(file_sessions, "read_session_at", lambda _path, _store: None)
    text = (await asked(stage.runtime([why(2), Reply("I see.")]))).text
    assert text.endswith("(Sessions that name the file but cannot be read: 1.)")


async def test_it_asks_nothing_and_the_file_is_as_before(stage: Stage):
    await changed(stage, "Shout.", "two", "TWO")
    before = (stage.workspace / "a.py").read_bytes()
    runtime = stage.runtime([why(2), Reply("I see.")], mode="ask")
    events = await collect(runtime.submit("Look."))
    assert of_kind(events, ApprovalRequested) == []
    assert not only(events, ToolFinished).message.is_error
    assert (stage.workspace / "a.py").read_bytes() == before


async def test_the_answer_is_bounded_and_says_what_is_left_out(stage: Stage):
    file = stage.workspace / "a.py"
    file.write_text("".join(f"line {number}\n" for number in range(40)))
    script: list[Reply] = []
    for number in range(40):
        script += [edit(f"line {number}\n", f"LINE {number} {'x' * 300}\n", "y" * 500)]
    runtime = stage.runtime([*script, Reply("Done."), why(), Reply("I see.")])
    await collect(runtime.submit("Shout. " + "z" * 2_000))
    result = await asked(runtime)
    *blocks, left = result.text.split("\n\n")
    assert len(result.text.encode()) <= MOST_BYTES
    assert 3 < len(blocks) < 40
    assert left == f"({40 - len(blocks)} more lines have other answers: ask about fewer lines.)"


async def test_a_line_with_one_huge_change_is_cut(stage: Stage):
    (stage.workspace / "a.py").write_text("two\n")
    many = "".join(f"{'é' * 900}{number}\n" for number in range(30))
    await changed(stage, "Fill it.", "two\n", many)
    text = (await asked(stage.runtime([why(2), Reply("I see.")]))).text
    assert len(text.encode()) <= MOST_BYTES
    assert "The user asked: Fill it." in text


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (why(9), "a.py has 3 lines."),
        (why(3, 2), "last 2 is before line 3."),
        (why(1, path="none.py"), "none.py cannot be read"),
        (why(1, path="."), "cannot be read"),
    ],
)
async def test_what_names_no_line_is_an_error_for_the_model(
    stage: Stage, reply: Reply, problem: str
):
    result = await asked(stage.runtime([reply, Reply("I see.")]))
    assert result.is_error
    assert problem in result.text


async def test_keys_do_not_reach_the_model(stage: Stage):
    await changed(stage, "Use the key.", "two", f"key = '{KEY}'")
    text = (await asked(stage.runtime([why(2), Reply("I see.")]))).text
    assert "key = '[key removed]'" in text
    assert KEY not in text


async def test_a_helper_may_ask_too(stage: Stage):
    await changed(stage, "Shout.", "two", "TWO")
    explore = Reply(tool_calls=(call("x", "explore", task="Why is line 2 loud?"),))
    script: Script = [explore, why(2), Reply("Somebody asked."), Reply("Good.")]
    runtime = stage.runtime(script)
    await collect(runtime.submit("Find out."))
    told = next(
        str(request.messages)
        for request in stage.model.requests
        if "Why is line 2 loud?" in str(request.messages[0]) and len(request.messages) > 1
    )
    assert "The user asked: Shout." in told
