"""An editor over standard input and output: the client of the SDK, the whole program, a model."""

import asyncio
import signal

import pytest
from acp import RequestError

from tests.support.editor import Editor, Place, say
from tests.support.openai_script import Call, Failure, Reply
from tests.support.runtime import GOOD_SUMMARY
from tests.support.session_chain import MESSAGES, write_chain

pytestmark = pytest.mark.thorough


async def test_a_task_with_an_edit_and_a_question(place: Place):
    (place.work / "a.py").write_text("x = 1\n")
    place.server.play(
        Reply(tool_calls=(Call("read", {"path": "a.py"}),)),
        Reply(tool_calls=(Call("edit", {"path": "a.py", "old_text": "1", "new_text": "2"}),)),
        Reply(tool_calls=(Call("todo", {"todos": [{"text": "go", "status": "completed"}]}),)),
        Reply(text="It is two."),
    )
    async with place.editor("once") as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert begun.modes.current_mode_id == "ask"
        assert {option.id for option in begun.config_options} == {"model", "thinking"}
        assert await say(connection, begun.session_id, "Make it two.") == "end_turn"
        assert editor.text() == "It is two."
        ((call, options),) = editor.asked
        assert options == ["once", "session", "no"]
        asked, why = call.content
        assert call.locations[0].path == asked.path == str(place.work / "a.py")
        assert "changes a file" in why.content.text
        assert (asked.old_text, asked.new_text) == ("x = 1\n", "x = 2\n")
        edited = next(calls for title, calls in editor.calls().items() if "edit" in title)
        assert (edited[0].kind, edited[-1].status) == ("edit", "completed")
        (diff,) = edited[-1].content
        assert (diff.path, diff.old_text, diff.new_text) == (
            str(place.work / "a.py"),
            "x = 1\n",
            "x = 2\n",
        )
        (plan,) = [u for u in editor.updates if u.session_update == "plan"]
        assert [(entry.content, entry.status) for entry in plan.entries] == [("go", "completed")]
        usage = [u for u in editor.updates if u.session_update == "usage_update"][-1]
        assert (usage.used > 0, usage.size, usage.cost) == (True, 128_000, None)
        (commands,) = [u for u in editor.updates if u.session_update == "available_commands_update"]
        assert {"compact", "context", "undo"} <= {c.name for c in commands.available_commands}
    assert (place.work / "a.py").read_text() == "x = 2\n"


@pytest.mark.parametrize("answer", ["no", "closed"])
async def test_a_no_changes_nothing_and_ends_the_turn(place: Place, answer: str):
    call = Call("write", {"path": "a.py", "content": "x"})
    place.server.play(Reply(tool_calls=(call,)), Reply(text="Well."))
    async with place.editor(answer) as (_, connection, _process):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert await say(connection, begun.session_id, "Write.") == "cancelled"
    assert not (place.work / "a.py").exists()


async def test_a_turn_is_cancelled(place: Place):
    place.server.play(Reply(text="It goes on", ending="hang"))
    async with place.editor() as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        turn = asyncio.create_task(say(connection, begun.session_id, "Go."))
        while "It goes on" not in editor.text():
            await asyncio.sleep(0.01)
        await connection.cancel(session_id=begun.session_id)
        assert await turn == "cancelled"


async def test_what_a_cancelled_command_printed_stays(place: Place):
    command = "echo first; echo last; sleep 100"
    place.server.play(Reply(tool_calls=(Call("bash", {"command": command}),)), Reply(text="Yes."))

    def printed(editor: Editor) -> str:
        updates = [u for u in editor.updates if u.session_update == "tool_call_update"]
        return updates[-1].content[0].content.text if updates and updates[-1].content else ""

    async with place.editor("once") as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        turn = asyncio.create_task(say(connection, begun.session_id, "Go."))
        while "first\nlast" not in printed(editor):
            await asyncio.sleep(0.01)
        await connection.cancel(session_id=begun.session_id)
        assert await turn == "cancelled"
        assert printed(editor).startswith("```\nfirst\nlast\n[interrupted after ")
        assert await say(connection, begun.session_id, "What did it print?") == "end_turn"
    sent = str(place.server.chats[1].body["messages"])
    assert "first\\nlast\\n[interrupted after" in sent


async def test_why_a_turn_failed_is_told(place: Place):
    place.server.play(Failure(404, "no such model"))
    async with place.editor() as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert await say(connection, begun.session_id, "Go.") == "end_turn"
        assert "not found (the server at" in editor.text()


async def test_what_is_said_beside_a_turn_joins_it_and_abort_ends_it(place: Place):
    place.server.play(
        Reply(tool_calls=(Call("write", {"path": "a.py", "content": "x"}),)),
        Reply(text="Both.", ending="hang"),
    )
    async with place.editor("once") as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        editor.may_answer.clear()
        first = asyncio.create_task(say(connection, begun.session_id, "One."))
        while not editor.asked:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(say(connection, begun.session_id, "Two."))
        await asyncio.sleep(0)  # it is sent before what follows
        await say(connection, begun.session_id, "/nosuch")
        editor.may_answer.set()
        while "Both." not in editor.text():
            await asyncio.sleep(0.01)
        assert not second.done()
        await say(connection, begun.session_id, "/abort")
        assert (await first, await second) == ("cancelled", "cancelled")
    assert [m["content"] for m in place.server.chats[1].body["messages"] if m["role"] == "user"][
        -1
    ].startswith("Two.")


async def test_what_waits_behind_a_stopped_turn_is_not_sent(place: Place):
    place.server.play(Reply(text="It goes on", ending="hang"), Reply(text="Not wanted."))
    async with place.editor() as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        first = asyncio.create_task(say(connection, begun.session_id, "One."))
        while "It goes on" not in editor.text():
            await asyncio.sleep(0.01)
        second = asyncio.create_task(say(connection, begun.session_id, "Two."))
        await asyncio.sleep(0)  # it is sent before what follows
        await say(connection, begun.session_id, "/abort")
        assert (await first, await second) == ("cancelled", "cancelled")
    assert len(place.server.chats) == 1


async def test_a_killed_session_is_listed_loaded_and_gone_on_with(place: Place):
    place.server.play(Reply(text="First."), Reply(text="Second."))
    async with place.editor() as (_, connection, process):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        await say(connection, begun.session_id, "One.")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    async with place.editor() as (editor, connection, _):
        listed = await connection.list_sessions(cwd=str(place.work))
        assert [(s.session_id, s.title) for s in listed.sessions] == [(begun.session_id, "One.")]
        await connection.load_session(
            cwd=str(place.work), session_id=begun.session_id, mcp_servers=[]
        )
        assert editor.text("user_message_chunk") == "One."
        assert editor.text() == "First."
        assert await say(connection, begun.session_id, "Two.") == "end_turn"
        assert editor.text() == "First.Second."
        forked = await connection.fork_session(
            session_id=begun.session_id, cwd=str(place.work), mcp_servers=[]
        )
        assert forked.session_id != begun.session_id
        await connection.close_session(session_id=begun.session_id)
        with pytest.raises(RequestError):
            await say(connection, begun.session_id, "Three.")


async def test_commands_modes_and_options(place: Place):
    skill = place.work / ".agents/skills/release/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("Do it.")
    place.server.play(Reply(text="Hi."))
    async with place.editor() as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert editor.updates == []  # nothing is told of a session before it is known
        assert await say(connection, begun.session_id, "/cost") == "end_turn"
        assert "Not read" in editor.text()
        assert "available_commands_update" in editor.kinds()
        assert "This session: 0 tokens in" in editor.text()
        await say(connection, begun.session_id, "/nosuch")
        assert "Unknown command /nosuch" in editor.text()
        await say(connection, begun.session_id, "/model")
        assert "this editor cannot show lists" in editor.text()
        assert "current_mode_update" not in editor.kinds()
        await say(connection, begun.session_id, "/permissions accept-edits")
        await say(connection, begun.session_id, "/model openai/gpt-4o-mini")
        told = {update.session_update: update for update in editor.updates}
        assert told["current_mode_update"].current_mode_id == "accept-edits"
        (model,) = [o for o in told["config_option_update"].config_options if o.id == "model"]
        assert model.current_value == "openai/gpt-4o-mini"
        await connection.set_session_mode(session_id=begun.session_id, mode_id="full")
        with pytest.raises(RequestError):
            await connection.set_session_mode(session_id=begun.session_id, mode_id="none")
        changed = await connection.set_config_option(
            config_id="thinking", session_id=begun.session_id, value="high"
        )
        (thinking,) = [o for o in changed.config_options if o.id == "thinking"]
        assert thinking.current_value == "high"


async def test_a_session_that_is_not_there_is_refused_with_a_reason(place: Place):
    async with place.editor() as (_, connection, _process):
        with pytest.raises(RequestError, match="nosuch"):
            await connection.load_session(cwd=str(place.work), session_id="nosuch", mcp_servers=[])
        with pytest.raises(RequestError):
            await connection.new_session(cwd=str(place.root / "missing"), mcp_servers=[])


async def test_without_deny_rules_that_cannot_be_read_no_session_opens(place: Place):
    config = place.root / "home" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[permissions]\ndeny = ["rm *"]\n')
    async with place.editor() as (_, connection, _process):
        with pytest.raises(RequestError, match=r"config.toml:2: permissions.deny: 'rm \*'"):
            await connection.new_session(cwd=str(place.work), mcp_servers=[])
        config.write_text('[permissions]\ndeny = ["bash(rm *)"]\n')
        assert (await connection.new_session(cwd=str(place.work), mcp_servers=[])).session_id


async def test_what_commands_have_picked_is_a_form_where_the_editor_shows_some(place: Place):
    place.server.play(Reply(text="One."))
    forms = [{"typed": "openai/gpt-4o-mini"}, {"chosen": "0"}]
    async with place.editor("0", forms=forms) as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        await say(connection, begun.session_id, "First.")
        await say(connection, begun.session_id, "/model")
        assert "Model: openai/gpt-4o-mini" in editor.text()
        await say(connection, begun.session_id, "/tree")
        (_, models), (title, entries) = editor.filled
        assert "typed" in models.properties
        assert "First." in str(entries.properties["chosen"].one_of)
        assert title


async def test_a_session_that_was_compacted_is_loaded_with_what_was_said_before(place: Place):
    path = write_chain(place.root / "home/data/sessions", place.work, 3)
    async with place.editor() as (editor, connection, _):
        session_id = path.stem.rpartition("_")[2]
        await connection.load_session(cwd=str(place.work), session_id=session_id, mcp_servers=[])
        every = [f"q{s}-{n}" for s in (1, 2, 3) for n in range(MESSAGES)]
        assert editor.text("user_message_chunk") == "".join(every)
        assert editor.text().count("Context compacted from") == 2


async def test_compacting_asks_where_it_frees_little_and_undo_leads_back_through_it(place: Place):
    long = " ".join(f"It greets in line {number}." for number in range(150))
    place.server.play(
        Reply(tool_calls=(Call("write", {"path": "a.txt", "content": "one\n"}),)),
        Reply(text=long),
        Reply(text="Fine."),
        Reply(text=GOOD_SUMMARY),
        Reply(tool_calls=(Call("write", {"path": "a.txt", "content": "two\n"}),)),
        Reply(text="Done."),
    )
    no, yes, both, both_below_redo = "1", "0", "0", "1"
    async with place.editor(no, yes, both, both_below_redo) as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        await connection.set_session_mode(session_id=begun.session_id, mode_id="full")
        await say(connection, begun.session_id, "Write.")
        await say(connection, begun.session_id, "Go on.")
        await say(connection, begun.session_id, "/compact")
        (about,) = editor.asked[0][0].content
        assert "This would free only about " in about.content.text
        assert "Context compacted" not in editor.text()
        await say(connection, begun.session_id, "/compact")
        assert "Context compacted" in editor.text()
        await say(connection, begun.session_id, "Write again.")
        assert (place.work / "a.txt").read_text() == "two\n"
        await say(connection, begun.session_id, "/undo")
        assert (place.work / "a.txt").read_text() == "one\n"
        assert "Undone: Write again." in editor.text()
        await say(connection, begun.session_id, "/undo talk")
        assert "Undone: Go on." in editor.text()
        assert "This is the session before the compaction." in editor.text()
        await say(connection, begun.session_id, "/undo")
        assert "Undone: Write." in editor.text()
    assert not (place.work / "a.txt").exists()


async def test_the_end_of_a_job_wakes_the_model(place: Place):
    begun = {"command": "until [ -e go ]; do sleep 0.01; done", "background": True}
    place.server.play(
        Reply(tool_calls=(Call("bash", begun),)), Reply(text="It runs. "), Reply(text="It ended.")
    )
    async with place.editor("once") as (editor, connection, _):
        session = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert await say(connection, session.session_id, "Go.") == "end_turn"
        (place.work / "go").touch()
        while "It ended." not in editor.text():
            await asyncio.sleep(0.01)
    assert "has ended: exit code 0" in str(place.server.chats[2].body["messages"])
