import asyncio
from concurrent.futures import wait
from pathlib import Path

import pytest

from agent_tui.drafts.draft import Draft
from agent_tui.drafts.history import PromptHistory
from agent_tui.features.plain.agent_thread import AgentThread
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.file_locks import LockOwner
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelInfo, ModelRef, ProviderError
from agent_tui.sessions.entries import Header
from agent_tui.sessions.file.writer import SessionStatus
from agent_tui.sessions.log import SessionLog
from tests.features.plain.talking import talk
from tests.features.rules.said import BACKGROUND, say, session
from tests.support.compaction_ways import talk as talk_long
from tests.support.models import MODEL, ListedModels
from tests.support.runtime import GOOD_SUMMARY
from tests.support.session_chain import MESSAGES, write_chain, writing
from tests.support.waiting_session import leave_waiting
from tests.support.wall_clock import SleptClock

WRITE = call("c1", "write", path="a.txt", content="one\n")


def test_a_turn_is_told_after_the_line_that_began_it(stage):
    text = talk(stage, stage.runtime([Reply("Hello. It works.")]), "hi", "/exit")
    assert "] > hi\nagent-tui: Hello. It works.\n[ctx: " in text
    assert "is saved. Resume it with: agent-tui --plain -r " in text


def test_a_cold_cache_is_said_before_the_prompt(stage):
    usage = Usage(input=100_000, output=5, total_tokens=100_005)
    runtime = stage.runtime([Reply("Hello.", usage=usage)], model=MODEL, models=ListedModels())
    runtime.services.wall_clock = lambda: 1_000.0 if runtime.is_busy else 4_601.0
    text = talk(stage, runtime, "hi", "/exit")
    cold = "The cache is cold: the next message costs about $0.30"
    assert text.count(cold) == 1
    assert text.index(cold) < text.rindex("[ctx: ")


def test_an_offered_rule_is_said_once_before_a_prompt(stage, monkeypatch):
    begin = AgentThread.begin

    def begin_and_wait_for_offers(self, work):
        future = begin(self, work)
        if work.__qualname__ == "BetweenTurns.look":
            wait([future])
        return future

    monkeypatch.setattr(AgentThread, "begin", begin_and_wait_for_offers)
    store = stage.runtime([]).services.store
    for entries in (
        map(say, BACKGROUND * 5),
        session("use uv, not pip", day=1),
        session("uv, not pip please", day=2),
    ):
        with store.create(Header(cwd=str(stage.workspace))) as log:
            for entry in entries:
                log.append(entry)
    text = talk(stage, stage.runtime([]), "/rules list", "/status", "/exit")
    offer = "You said it more than once: “use uv, not pip”. /rules adds it to AGENTS.md."
    assert text.count(offer) == 1
    assert "Offered: use uv, not pip" in text


def test_what_is_sent_is_in_the_history_of_the_screen(stage):
    talk(stage, stage.runtime([Reply("Hello.")]), "hi", "/exit")
    history = PromptHistory(stage.folder / "project" / "history.jsonl")
    history.load()
    assert Draft("hi") in history.drafts


def test_a_change_is_asked_about_and_done_once_agreed(stage):
    script = [Reply(tool_calls=(WRITE,)), Reply("Done.")]
    text = talk(stage, stage.runtime(script, mode="ask"), "go", "y")
    assert "Question: make this change? create a.txt" in text
    assert "    Line 1 added: one\n" in text
    assert text.count("Line 1 added: one") == 1, "not once more when it is done"
    assert "Tool write: create a.txt" in text
    assert (stage.workspace / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("typed", "told"),
    [("n", "not run"), (KeyboardInterrupt, "cancelled"), (EOFError, "not run")],
)
def test_what_is_not_agreed_to_is_not_done_and_the_turn_ends(stage, typed, told):
    script = [Reply(tool_calls=(WRITE,)), Reply("never")]
    text = talk(stage, stage.runtime(script, mode="ask"), "go", typed)
    assert f"Tool write, {told}: create a.txt." in text
    assert "Stopped. /retry continues.\n[ctx: " in text
    assert not (stage.workspace / "a.txt").exists()


def test_a_no_with_words_goes_on_with_them(stage):
    script = [Reply(tool_calls=(WRITE,)), Reply("As you wish.")]
    text = talk(stage, stage.runtime(script, mode="ask"), "go", "e write b.txt instead")
    assert "agent-tui: As you wish." in text


async def no_sleep(_delay_s: float) -> None:
    pass


def test_a_cut_reply_is_read_once_whether_a_later_try_is_whole_or_none_is(stage):
    cut, whole = Reply("The sky is ", cut=True), Reply("The sky is blue.")
    runtime = stage.runtime([cut, cut, whole, *[cut] * 10], sleep=no_sleep)
    told = talk(stage, runtime, "why?", "why then?")
    first, second = told.split("] > why then?")
    assert (first.count("The sky is"), first.count("agent-tui: blue.")) == (1, 1)
    assert (first.count("cut off"), first.count("Error")) == (1, 0)
    assert second.count("The sky is") == 1
    assert second.count(" of 10)") == 9
    (error,) = [line for line in second.splitlines() if line.startswith("Error: ")]
    assert "cut off" in error
    assert error.endswith("/retry continues.")


def test_an_error_is_a_line_and_the_talk_goes_on(stage):
    error = ProviderError("auth", "Bad key.", "Use /model.")
    text = talk(stage, stage.runtime([Reply(error=error), Reply("Hi.")]), "one", "two")
    assert text.count("Error: Bad key. Use /model.") == 1
    assert "agent-tui: Hi." in text


def test_an_unknown_command_says_so_with_the_nearest(stage):
    text = talk(stage, stage.runtime([]), "/modal", "/zzzzz")
    assert "Unknown command /modal. Did you mean /model?" in text
    assert "Unknown command /zzzzz. /help lists all commands." in text


def test_compacting_and_taking_it_back(stage):
    runtime = stage.runtime([Reply(GOOD_SUMMARY)], window=8_000)
    talk_long(runtime.conversation.log, 14)
    typed = ("/compact --preview", "/compact", "/context", "/uncompact", "/uncompact")
    text = talk(stage, runtime, *typed)
    assert "a summary replaces them" in text
    assert "Context compacted from " in text
    assert "Compaction summary: " in text
    assert "Compaction undone: back in the session before /compact, about " in text
    assert "was not compacted" in text


def test_one_goes_back_to_before_a_compaction(stage):
    runtime = stage.runtime([Reply(GOOD_SUMMARY)], window=8_000)
    talk_long(runtime.conversation.log, 14)
    said = [e.message.text for e in runtime.conversation.log.path_entries() if e.message.text]
    text = talk(stage, runtime, "/compact", "/tree", "14", "b", "/status")
    assert "before the compaction" in text
    assert "This is the session before the compaction. /resume " in text
    assert said[0][:20] in text


def test_undo_leads_through_a_compaction_with_the_files(stage):
    runtime = stage.runtime(writing("1", "2"), window=60_000, mode="full")
    talk_long(runtime.conversation.log, 13)
    typed = ("Write 1.", "/compact", "Write 2.", "/undo", "b", "/undo", "b", "/status")
    text = talk(stage, runtime, *typed)
    (before, after) = text.split("Back at an earlier message. Undone: Write 1.\n")
    assert "Back at an earlier message. Undone: Write 2.\n" in before
    assert "This is the session before the compaction. /resume " in after
    assert not (stage.workspace / "a.txt").exists()


def test_an_earlier_session_that_cannot_be_read_is_said(stage):
    path = write_chain(stage.sessions, stage.workspace, 2)
    runtime = stage.runtime([])
    asyncio.run(runtime.sessions.open(str(path)))
    gone = Path(runtime.conversation.log.header.parent_session)
    gone.unlink()
    text = talk(stage, runtime, "/tree", "", *["/undo"] * (MESSAGES + 2))
    told = f"The session before the compaction is gone or cannot be read: {gone}"
    assert f"Go back to a message ({told}):\n" in text
    assert text.count(f"{told}\n") == 1
    assert "Undone: q1-24\n" in text, "what was kept of it"


def test_an_earlier_session_that_is_open_elsewhere_is_said(stage):
    path = write_chain(stage.sessions, stage.workspace, 2)
    runtime = stage.runtime([])
    asyncio.run(runtime.sessions.open(str(path)))
    parent = Path(runtime.conversation.log.header.parent_session)
    with SessionLog.open(parent):
        text = talk(stage, runtime, "/tree", str(MESSAGES + 3), "b", "/status")
    assert f"{parent} is open in another part of this program" in text
    assert runtime.conversation.log.path == path


@pytest.mark.parametrize(
    ("typed", "sessions"),
    [(("/compact", "n"), 1), (("/compact", "y"), 2), (("/compact --force",), 2)],
)
def test_compact_that_frees_next_to_nothing_asks_unless_forced(stage, typed, sessions):
    runtime = stage.runtime([Reply(GOOD_SUMMARY)], window=200_000)
    talk_long(runtime.conversation.log, 1)
    text = talk(stage, runtime, *typed)
    assert ("Question: Compact anyway?" in text) == (len(typed) > 1)
    assert ("This would free only about " in text) == (len(typed) > 1)
    assert len(list(stage.sessions.rglob("*.jsonl"))) == sessions


@pytest.mark.parametrize("command", ["/compact", "/uncompact"])
def test_a_refusal_is_said_once(stage, command):
    text = talk(stage, stage.runtime([]), command)
    assert text.count("othing to ") == 1


def test_a_session_is_left_and_resumed_from_the_list(stage):
    script = [Reply("One."), Reply("Two.")]
    typed = ("first", "/name Greeting", "/new", "second", "/resume", "7", "1", "/cost")
    text = talk(stage, stage.runtime(script), *typed)
    assert "New session started" in text
    assert "1. Greeting, 2 messages" in text
    assert "There is no number 7." in text
    assert (
        "Session Greeting opened, 2 messages. The last ones:\nYou: first\nagent-tui: One.\n" in text
    )
    assert "/cost\n" in text


def test_commands_of_the_person_run_with_their_output(stage):
    text = talk(stage, stage.runtime([]), "!echo out; exit 3", "!!echo beside", "/output")
    assert "out\n" in text
    assert "The command exited with code 3." in text
    assert text.count("\nbeside\n") == 2


def test_a_model_is_chosen_by_number_or_name(stage):
    text = talk(stage, stage.runtime([]), "/model", "3", "/model scripted/other", "/model", "")
    first, _, again = text.partition("Model: scripted/other\n")
    assert [line for line in first.splitlines() if ". scripted/" in line] == [
        "1. scripted/test, in use · window ~8.0k",
        "2. scripted/one, window ~8.0k · SOME_KEY",
        "3. scripted/two, window ~8.0k · SOME_KEY",
    ]
    assert "1. scripted/other, in use · window ~8.0k\n2. scripted/two, " in again
    assert "Model: scripted/two\n" in text
    assert "Model: scripted/other\n" in text


def test_a_first_model_is_offered_by_number_where_one_can_be_used(stage):
    runtime = stage.runtime([Reply("Hi.")], model=ModelRef(""))
    text = talk(stage, runtime, "", "hello", "/retry", "/loop 2 hi", "/model", "1", "hello")
    assert "No model chosen yet. Ways to get one:" in text
    assert text.count("No model chosen. Use /model.") == 2
    assert "Nothing to continue yet." in text
    assert "1. scripted/one, " in text
    assert "agent-tui: Hi." in text


def test_a_rule_made_by_an_answer_can_be_taken_back(stage):
    script = [Reply(tool_calls=(WRITE,)), Reply("Done.")]
    typed = ("go", "p", "/permissions remove x", "/permissions remove write(a.txt)")
    text = talk(stage, stage.runtime(script, mode="ask"), *typed, "/permissions")
    assert "No such rule: x. You can remove: write(a.txt)." in text
    assert "Removed: write(a.txt)\n" in text
    assert "allow: write(a.txt)" not in text


def test_what_can_be_looked_up_and_set(stage):
    typed = ("/permissions plan", "/permissions", "/permissions x", "/thinking high", "/tools")
    text = talk(stage, stage.runtime([]), *typed, "/memory", "/export", "/help")
    assert "● plan: reads only" in text
    assert "Unknown mode x. Use one of ask, accept-edits, plan, full; or allow" in text
    assert "Thinking: high" in text
    assert "bash: Run " in text
    assert "Nothing to export yet." in text
    assert "/compact [focus] [--preview] [--force] [--strategy NAME]: Summarise" in text


def test_a_conversation_is_exported_once_under_a_name(stage):
    typed = ("hi", "/export out.md", "/export out.md")
    text = talk(stage, stage.runtime([Reply("Hello.")]), *typed)
    assert f"Exported to {stage.workspace / 'out.md'}" in text
    assert "out.md already exists. Choose another name." in text
    assert "Hello." in (stage.workspace / "out.md").read_text()


def test_ctrl_c_at_the_prompt_leaves_only_the_second_time_in_a_row(stage):
    keys = (KeyboardInterrupt, "/cost", KeyboardInterrupt, KeyboardInterrupt, "never")
    text = talk(stage, stage.runtime([]), *keys)
    assert text.count("Press Control C again to quit, or keep typing.") == 2
    assert "never" not in text


def test_no_line_of_a_paste_is_a_command(stage):
    runtime = stage.runtime([Reply("Read.")])
    text = talk(stage, runtime, "!touch a", "", unread=["/exit\n!touch b\n"])
    assert "Pasted, with 2 more lines. Enter sends it: \nagent-tui: Read.\n" in text
    assert list(stage.workspace.iterdir()) == []


def test_a_paste_that_begins_like_a_command_is_a_message(stage):
    runtime = stage.runtime([Reply("Read.")])
    text = talk(stage, runtime, "/exit now", "", "again", unread=["and more"])
    assert "Pasted, with 1 more line. Enter sends it: and more\nagent-tui: Read.\n" in text
    assert "> again\n" in text, "it did not leave"


def test_the_first_prompt_and_the_rounds_of_a_loop_are_told_as_the_persons(stage):
    script = [Reply("A."), Reply("B."), Reply("C.")]
    text = talk(stage, stage.runtime(script), "/loop 2 again", first_prompt="begin")
    assert "You: begin\nagent-tui: A.\n" in text
    assert "Round 2 of 2.\n" in text
    assert text.count("You: again") == 2


def test_a_file_that_is_mentioned_goes_along_and_is_not_told(stage):
    (stage.workspace / "note.txt").write_text("SECRET WORDS")
    seen: list[str] = []

    def script(request):
        seen.append(request.messages[-1].text)
        return Reply("Read.")

    text = talk(stage, stage.runtime(script), "look at @note.txt")
    assert "SECRET WORDS" in seen[0]
    assert "SECRET WORDS" not in text
    assert "You: look at" not in text


def test_a_session_whose_folder_is_gone_goes_on_where_the_person_wants(stage, tmp_path):
    runtime = stage.runtime([Reply("One.")])
    talk(stage, runtime, "first")
    path: Path = next(stage.sessions.rglob("*.jsonl"))
    moved = path.with_name("moved.jsonl")
    moved.write_text(path.read_text().replace(str(stage.workspace), "/gone/away"))
    text = talk(stage, stage.runtime([Reply("Two.")]), "x", "c", "go", resume=str(moved))
    assert "It worked in /gone/away." in text
    assert "'x' is not a choice." in text
    assert f"in {stage.workspace}" in text
    assert "agent-tui: Two." in text


@pytest.mark.parametrize("first_prompt", ["", "forget it"])
def test_a_session_that_was_left_waiting_continues_unless_something_else_is_said(
    stage, first_prompt
):
    clock = SleptClock()
    path = asyncio.run(leave_waiting(stage, clock, 3_600.0))
    runtime = stage.runtime([Reply("Seven.")], sleep=clock.sleep, limit_wait_h=12)
    runtime.services.wall_clock = clock.read
    text = talk(stage, runtime, resume=str(path), first_prompt=first_prompt)
    assert "The last turn is waiting. Usage limit of " in text
    assert "agent-tui: Seven." in text
    has_waited = sum(clock.slept_s) > 3_500
    assert has_waited is not bool(first_prompt)
    assert ("Continuing in 1h 00m." in text) is has_waited


def test_a_session_that_is_open_elsewhere_is_gone_on_with_in_a_copy(stage, monkeypatch):
    talk(stage, stage.runtime([Reply("One.")]), "first")
    path = next(stage.sessions.rglob("*.jsonl"))
    runtime = stage.runtime([Reply("Two.")])

    async def status(ref: str) -> SessionStatus:
        return SessionStatus(path, stage.workspace, True, owner=LockOwner(1))

    monkeypatch.setattr(runtime.sessions, "status", status)
    text = talk(stage, runtime, "", f"/resume {path}", "f", "go", resume=str(path))
    assert text.count("It is open in another agent-tui (pid 1). Only one") == 2
    assert "Continuing in a copy of the session." in text
    assert "agent-tui: Two." in text
    assert len(list(stage.sessions.rglob("*.jsonl"))) == 2


def test_a_session_that_another_host_left_locked_is_taken_over_after_a_question(stage, monkeypatch):
    talk(stage, stage.runtime([Reply("One.")]), "first")
    path = next(stage.sessions.rglob("*.jsonl"))
    marker = path.with_name(f"{path.name}.lock.owner")
    marker.touch()
    runtime = stage.runtime([Reply("Two.")])

    async def status(ref: str) -> SessionStatus:
        return SessionStatus(path, stage.workspace, True, LockOwner(1, "node3", marker))

    monkeypatch.setattr(runtime.sessions, "status", status)
    text = talk(stage, runtime, "t", "go", resume=str(path))
    assert "It is open in another agent-tui (pid 1 on node3). Only one" in text
    assert "take over: it no longer runs on node3" in text
    assert "agent-tui: Two." in text
    assert not marker.exists()
    assert runtime.conversation.log.path == path


def test_the_greeting_offers_what_a_tiny_model_can_do(stage):
    tiny = ModelInfo("scripted/test", 8_192, 2_048, is_tiny=True)
    models = ListedModels(infos={tiny.name: tiny})
    text = talk(stage, stage.runtime([], models=models))
    note, _, steps = text.partition("\nTry:\n")
    assert "scripted/test is only for trying the program" in note
    assert steps.startswith("agent-tui --plain --demo: five steps")
    assert "What does @FILE say?: " in steps
