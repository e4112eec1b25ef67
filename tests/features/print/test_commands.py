"""Slash commands with ``-p``."""

import asyncio
import io
import json
import shlex
from pathlib import Path

import pytest

from agent_tui.attachments import approving_message
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.features.print.printer import ExitCode, OutputFormat, print_command
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.entries import MessageEntry
from tests.features.plain.talking import Models
from tests.support.compaction_ways import talk
from tests.support.runtime import Stage
from tests.support.session_chain import MESSAGES, write_chain

_PIPED = "Piped input not used: this command takes none. Put it into a file and name the file."


class Printing:
    """Runs lines with ``-p`` in one conversation, and keeps what the model is sent."""

    def __init__(self, stage: Stage) -> None:
        self.sent: list[str] = []
        self.replies: list[Reply] = []
        self.runtime = stage.runtime(self._reply, mode="full", is_interactive=False)

    def _reply(self, request: ModelRequest) -> Reply:
        self.sent.append(request.messages[-1].text)
        return self.replies.pop(0) if self.replies else Reply("Fine.")

    async def run(
        self, line: str, *, attached: str = "", output_format: OutputFormat = "text"
    ) -> tuple[ExitCode, str, str]:
        out, err = io.StringIO(), io.StringIO()
        code = await print_command(
            self.runtime,
            CommandServices(Models(), KnownModels()),
            line,
            output_format,
            attached=attached,
            out=out,
            err=err,
        )
        return code, out.getvalue(), err.getvalue()


@pytest.fixture
def printing(stage: Stage) -> Printing:
    return Printing(stage)


@pytest.fixture
def prompt_files(stage: Stage) -> Path:
    made = stage.folder / "config" / "commands"
    made.mkdir(parents=True)
    (made / "review.md").write_text("Review $1 closely.")
    (made / "binary.md").write_bytes(b"\0")
    (made / "compact.md").write_text("Mine.")
    (made / "empty.md").write_text("$1")
    return made


@pytest.mark.usefixtures("prompt_files")
@pytest.mark.parametrize("line", ["/review src", " /REVIEW\nsrc"])
async def test_what_a_prompt_file_makes_is_sent(printing: Printing, line: str):
    assert await printing.run(line) == (ExitCode.DONE, "Fine.\n", "")
    assert printing.sent == ["Review src closely."]


@pytest.mark.parametrize("line", ["/usr/bin/x is broken", "plain /review", "/* no command */"])
async def test_what_calls_nothing_is_a_message(printing: Printing, line: str):
    assert await printing.run(line) == (ExitCode.DONE, "Fine.\n", "")
    assert printing.sent == [line]


async def test_what_was_piped_in_goes_along_with_what_is_sent(
    printing: Printing, prompt_files: Path
):
    await printing.run("/review src", attached="the log")
    await printing.run("/a/path", attached="the log")
    assert printing.sent == ["Review src closely.\n\nthe log", "/a/path\n\nthe log"]
    entries = printing.runtime.conversation.log.entries
    said = [one.message for one in entries if isinstance(one, MessageEntry)]
    assert [one.typed for one in said if isinstance(one, UserMessage)] == [
        ("Review src closely.",),
        ("/a/path",),
    ]
    _, _, err = await printing.run("/cost", attached="the log")
    assert err == f"agent-tui: {_PIPED}\n"


async def test_a_project_s_file_counts_where_it_is_trusted(stage: Stage, tmp_path: Path):
    project = stage.workspace / ".agent-tui" / "commands"
    project.mkdir(parents=True)
    (project / "ship.md").write_text("Ship it.")
    printing = Printing(stage)
    assert (await printing.run("/ship"))[0] == ExitCode.DONE
    assert printing.sent == ["Ship it."]
    question = stage.trust.question_about(stage.workspace)
    assert question is not None
    stage.trust.answer(question, "no")
    code, out, err = await printing.run("/ship")
    assert (code, out) == (ExitCode.USAGE, "")
    assert err.startswith("agent-tui: .agent-tui/commands/ship.md is ignored: ")
    assert printing.sent == ["Ship it."]


@pytest.mark.usefixtures("prompt_files")
async def test_a_file_that_cannot_be_used_is_not_sent_as_its_name(printing: Printing):
    code, _, err = await printing.run("/binary")
    assert (code, printing.sent) == (ExitCode.USAGE, [])
    assert "binary.md is binary, not text." in err
    code, _, err = await printing.run("/empty")
    assert (code, printing.sent) == (ExitCode.FAILED, [])
    assert "/empty needs an argument" in err


@pytest.mark.usefixtures("prompt_files")
async def test_a_command_of_the_program_is_not_taken_over_by_a_file(printing: Printing):
    await printing.run("/compact now")
    assert printing.sent == []


async def test_compact_that_frees_next_to_nothing_does_nothing_without_force(printing: Printing):
    talk(printing.runtime.conversation.log, 1)
    path = printing.runtime.conversation.log.path
    code, out, err = await printing.run("/compact")
    assert (code, out) == (ExitCode.FAILED, "")
    assert err.startswith("Not compacted: this would free only about ")
    assert "/compact --force compacts anyway." in err
    assert printing.runtime.conversation.log.path == path
    await printing.run("/compact --force")
    assert printing.runtime.conversation.log.path != path


async def test_undo_leads_through_a_compaction(printing: Printing, stage: Stage):
    runtime = printing.runtime
    await runtime.sessions.open(str(write_chain(stage.sessions, stage.workspace, 2)))
    parent = Path(runtime.conversation.log.header.parent_session or "")
    for _ in range(MESSAGES):
        assert await printing.run("/undo") == (
            ExitCode.DONE,
            "Last message undone.\n",
            "",
        )
    assert runtime.conversation.log.path != parent
    _, out, err = await printing.run("/undo")
    assert runtime.conversation.log.path == parent
    assert "This is the session before the compaction." in out + err
    entry = runtime.conversation.log.path_entries()[-2]
    assert isinstance(entry, MessageEntry)
    assert entry.message.text == "q1-23"


async def test_undo_goes_one_message_further_back_with_each_run(stage: Stage):
    path = write_chain(stage.sessions, stage.workspace, 2)
    for newest in ("q2-23", "q2-22"):
        printing = Printing(stage)
        await printing.runtime.sessions.open(str(path))
        assert (await printing.run("/undo talk"))[0] == ExitCode.DONE
        await printing.runtime.aclose()
        said = [
            entry.message.text
            for entry in printing.runtime.conversation.log.path_entries()
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
        ]
        assert said[-1] == newest


async def test_a_page_is_printed_and_what_needs_a_screen_says_so(printing: Printing):
    code, out, _ = await printing.run("/help")
    assert code == ExitCode.DONE
    assert "\n/compact [focus] [--preview] [--force] [--strategy NAME]: Summarise" in out
    assert "\n/theme" not in out.partition("\nNot available here\n")[0]
    assert await printing.run("/theme") == (
        ExitCode.USAGE,
        "",
        "agent-tui: /theme needs the screen: start agent-tui without -p.\n",
    )


async def test_a_list_is_printed_before_it_says_that_nobody_chooses(printing: Printing):
    code, out, err = await printing.run("/model")
    assert code == ExitCode.USAGE
    assert "scripted/two: window " in out
    assert err.startswith("agent-tui: Choose a model: -p cannot ask questions.")


async def test_what_a_command_warns_of_is_a_failure(printing: Printing):
    code, out, err = await printing.run("/permissions no-such-mode")
    assert (code, out) == (ExitCode.FAILED, "")
    assert err.startswith("agent-tui: Unknown mode no-such-mode. Use one of ")
    assert err.count("\n") == 1


async def test_what_a_command_tells_is_the_result_in_json(printing: Printing):
    code, out, err = await printing.run("/name Greeting", output_format="json")
    result = json.loads(out)
    assert (code, err) == (ExitCode.DONE, "")
    assert (result["result"], result["outcome"]) == ("Session named: Greeting", "done")
    code, out, _ = await printing.run("/thinking enormous", output_format="json")
    result = json.loads(out)
    assert (code, result["exit_code"], result["outcome"]) == (ExitCode.FAILED, 1, "error")
    assert result["error"].startswith("Unknown level enormous")


@pytest.mark.parametrize(
    "line", ["/queue go", "/btw why?", pytest.param("/compact", marks=pytest.mark.thorough)]
)
async def test_an_aborted_command_is_an_interruption(stage: Stage, line: str):
    printing, gate, asked = Printing(stage), asyncio.Event(), asyncio.Event()

    def hold(_request: ModelRequest) -> Reply:
        asked.set()
        return Reply("never", gate=gate)

    printing.runtime = stage.runtime(hold, is_interactive=False)
    talk(printing.runtime.conversation.log, 5)
    running = asyncio.create_task(printing.run(line))
    await asked.wait()
    printing.runtime.abort()
    assert (await running)[0] is ExitCode.INTERRUPTED


async def test_the_approved_plan_is_shown_until_it_is_left(stage):
    printing = Printing(stage)
    _, out, _ = await printing.run("/plan show")
    assert out.startswith("No plan approved")
    conversation = printing.runtime.conversation
    go = conversation.append(UserMessage(content="go"))
    plan = "# Shout\n\n1. Change greet"
    conversation.append(UserMessage(content=approving_message(plan)))
    _, out, _ = await printing.run("/plan show")
    assert out == "The approved plan\n\n# Shout\n\n1. Change greet\n"
    conversation.log.branch_to(go.id)
    _, out, _ = await printing.run("/plan show")
    assert out.startswith("No plan approved")


async def test_what_plan_does_not_know_is_said(printing):
    _, _, err = await printing.run("/plan away")
    assert "/plan takes show" in err


async def test_a_failing_check_of_a_goal_is_printed_with_the_end_of_its_output(printing):
    check = "cat found.txt && exit 0; echo nothing found; exit 3"
    write = call("c1", "write", path="found.txt", content="found it\n")
    printing.replies = [Reply(tool_calls=(write,)), Reply("Written."), Reply("VERDICT: met")]
    code, _, err = await printing.run(f"/goal --text=find --check {shlex.quote(check)}")
    assert code == ExitCode.DONE
    first, last = err.split("* create found.txt")
    shown = "\n  ! exit code 3\n    cat: found.txt: No such file or directory\n    nothing found\n"
    assert f"* {check}{shown}" in first
    assert f"* {check}\n" in last
    assert "exit code" not in last
