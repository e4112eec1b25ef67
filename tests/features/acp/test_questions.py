"""What is asked in an editor, and how."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from acp.schema import AllowedOutcome, RequestPermissionResponse

from agent_tui.agent.turn.command_network import NETWORK
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.front import Choice, Question
from agent_tui.events import ApprovalRequest
from agent_tui.features.acp.editor import EditorTraits, Outbox
from agent_tui.features.acp.questions import EditorQuestions

COMMAND = "python -m pytest tests/features/acp \\\n  --maxfail 1"
PROTOCOL = EditorTraits()
TITLE_ONLY = EditorTraits(shows_title_only=True)


class Client:
    """An editor that answers as told, and keeps what it is asked and told in between."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.seen: list[str] = []
        self.asked: list[Any] = []
        self.options: list[list[Any]] = []
        self.shown: list[tuple[str, Any]] = []

    async def request_permission(
        self, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        self.seen.append(f"? {tool_call.title}")
        self.asked.append(tool_call)
        self.options.append(options)
        chosen = AllowedOutcome(outcome="selected", option_id=self.answers.pop(0))
        return RequestPermissionResponse(outcome=chosen)

    async def session_update(self, update: Any, **_more: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.seen.append(update.content.text.strip())
        elif update.session_update == "tool_call_update" and update.content:
            self.shown.append((update.tool_call_id, update.content))


async def allowed(
    client: Client, cwd: Path, rule: str = "", editor: EditorTraits = PROTOCOL
) -> str:
    outbox = Outbox(cast(Any, client), "s")
    questions = EditorQuestions(outbox, editor)
    request = ApprovalRequest(
        "1", "c", "bash", "python -m pytest …", COMMAND, "command", "It writes.", rule
    )
    answer = await questions.approval(request, cwd)
    await outbox.aclose()
    return answer.choice


async def chosen(client: Client, editor: EditorTraits, values: Sequence[object]) -> object:
    outbox = Outbox(cast(Any, client), "s")
    questions = EditorQuestions(outbox, editor)
    choices = tuple(Choice(value, f"say {value}") for value in values)
    answer = await questions.choice(Question("What?", ("a fact", "another"), choices))
    await outbox.aclose()
    return answer


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("", ["Allow once", "No"]),
        (
            f"bash(= {COMMAND})",
            ["Allow once", "Allow in this session: exactly this command", "No"],
        ),
        ("write(src/**)", ["Allow once", "Allow in this session: write(src/**)", "No"]),
    ],
)
async def test_what_is_allowed_is_in_the_name_of_the_answer(
    rule: str, names: list[str], tmp_path: Path
):
    client = Client("once")
    assert await allowed(client, tmp_path, rule) == "once"
    assert [each.name for each in client.options[0]] == names


async def test_rules_for_the_parts_of_a_command_are_one_answer(tmp_path: Path):
    client = Client("rules")
    outbox = Outbox(cast(Any, client), "s")
    questions = EditorQuestions(outbox, PROTOCOL)
    rules = ("bash(make *)", "bash(pytest *)")
    request = ApprovalRequest("1", "c", "bash", "x", "x", "command", "", "bash(= x)", rules)
    answer = await questions.approval(request, tmp_path)
    await outbox.aclose()
    assert answer == ApprovalAnswer("session", rules=rules)
    names = [each.name for each in client.options[0]]
    assert names[1:3] == [
        "Allow in this session: exactly this command",
        "Allow in this session: make * · pytest *",
    ]


async def test_an_editor_that_shows_kinds_alone_offers_one_lasting_answer(tmp_path: Path):
    client = Client("rules")
    outbox = Outbox(cast(Any, client), "s")
    questions = EditorQuestions(outbox, TITLE_ONLY)
    request = ApprovalRequest(
        "1", "c", "bash", "x", "x", "command", "", "bash(= x)", ("bash(make *)",)
    )
    answer = await questions.approval(request, tmp_path)
    await outbox.aclose()
    assert [each.option_id for each in client.options[0]] == ["once", "session", "no"]
    assert answer == ApprovalAnswer("no")


async def test_a_command_is_the_title_whole_with_the_reason_below(tmp_path: Path):
    client = Client("session")
    assert await allowed(client, tmp_path, "bash(= x)") == "session"
    (call,) = client.asked
    assert "--maxfail 1" in call.title
    assert "\n" not in call.title
    assert [part.content.text for part in call.content] == [f"```sh\n{COMMAND}\n```", "It writes."]
    assert client.seen == [f"? {call.title}"]
    assert client.shown == [("c", call.content)]


async def test_what_an_editor_does_not_show_of_a_question_is_told_in_the_chat(tmp_path: Path):
    client = Client("once")
    await allowed(client, tmp_path, editor=TITLE_ONLY)
    assert client.seen == ["It writes.", f"? {client.asked[0].title}"]


async def test_answers_are_all_shown_at_once():
    client = Client("1")
    assert await chosen(client, PROTOCOL, ["talk", "both"]) == "both"
    assert client.seen == ["? What?"]
    assert [each.name for each in client.options[0]] == ["say talk", "say both", "cancel"]


@pytest.mark.parametrize(
    ("answers", "value", "asked"),
    [
        (["0"], "talk", ["? What? say talk"]),
        (["", "1"], "both", ["? What? say talk", "? What? say both"]),
        (["", ""], None, ["? What? say talk", "? What? say both"]),
    ],
)
async def test_answers_that_an_editor_cannot_tell_apart_are_asked_for_one_at_a_time(
    answers: list[str], value: object, asked: list[str]
):
    client = Client(*answers)
    assert await chosen(client, TITLE_ONLY, ["talk", "both"]) == value
    assert client.seen == ["```\na fact\nanother\n```", *asked]


async def test_a_yes_and_a_no_are_told_apart():
    client = Client("1")
    assert await chosen(client, TITLE_ONLY, [True, False]) is False
    assert [each.kind for each in client.options[0]] == ["allow_once", "reject_once", "reject_once"]


async def test_a_question_of_the_network_is_a_call_of_its_own_that_ends_with_the_answer(
    tmp_path: Path,
):
    class Told(Client):
        async def session_update(self, update: Any, **more: Any) -> None:
            self.seen.append(f"{update.session_update} {update.tool_call_id} {update.status}")
            await super().session_update(update, **more)

    client = Told("session")
    outbox = Outbox(cast(Any, client), "s")
    questions = EditorQuestions(outbox, PROTOCOL)
    request = ApprovalRequest(
        *("1", "network-1", NETWORK, "Connect to a.test", "Host: a.test, port 443", "text"),
        *("a command in the sandbox wants it", "fetch(domain:a.test)"),
    )
    assert (await questions.approval(request, tmp_path)).choice == "session"
    await outbox.aclose()
    assert client.seen == [
        "tool_call network-1 pending",
        "tool_call_update network-1 pending",
        "? Connect to a.test",
        "tool_call_update network-1 completed",
    ]
    assert "Allow in this session: fetch(domain:a.test)" in [o.name for o in client.options[0]]
