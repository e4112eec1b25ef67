import pytest

from agent_tui.permissions.rules import Rule
from agent_tui.tools.base import Intent
from tests.commands.test_every_front import Conversation


async def test_only_the_rule_that_an_answer_made_is_taken_back(tmp_path, monkeypatch):
    conversation = Conversation(tmp_path)
    permissions = conversation.runtime.conversation.permissions
    permissions.book.add_session_rule("bash(make *)")
    (made,) = permissions.book.rules
    settled = Rule(made.decision, made.tool, made.pattern, "settings")
    removed: list[Rule] = []
    monkeypatch.setattr(permissions.book, "rules", (settled, made))
    monkeypatch.setattr(permissions.book, "remove_rule", removed.append)
    code, out, _ = await conversation.printed("/permissions remove bash(make *)")
    assert (code, out) == (0, "Removed: bash(make *)\n")
    assert [rule.source for rule in removed] == ["session"]


async def test_what_was_decided_in_this_session_is_counted(tmp_path):
    conversation = Conversation(tmp_path)
    permissions = conversation.runtime.conversation.permissions
    permissions.mode = "ask"
    permissions.book.add_session_rule("bash(make *)")
    for command, count in (("make a", 3), ("ls", 2)):
        intent = Intent(command, "execute", command=command)
        for _ in range(count):
            permissions.record("bash", intent, permissions.judge("bash", intent))
    _, out, _ = await conversation.printed("/permissions")
    assert "3 allowed by rules, 2 allowed by the mode" in out


async def test_a_rule_is_added_for_the_session_or_for_the_project(tmp_path):
    conversation = Conversation(tmp_path)
    permissions = conversation.runtime.conversation.permissions
    file = permissions.book.project_file
    for line, said in (
        ("allow bash(make *)", "Added for this session: allow bash(make *)\n"),
        ("ask write(docs/**)", "Added for this session: ask write(docs/**)\n"),
        ("deny Bash(rm *) always", f"Added for this project: deny bash(rm *) (kept in {file})\n"),
    ):
        code, out, _ = await conversation.printed(f"/permissions {line}")
        assert (code, out) == (0, said)
    found = [(rule.decision, str(rule), rule.source) for rule in permissions.book.rules]
    assert found == [
        ("allow", "bash(make *)", "session"),
        ("ask", "write(docs/**)", "session"),
        ("deny", "bash(rm *)", "project"),
    ]
    assert file.read_text() == 'deny = ["Bash(rm *)"]\n'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("allow make it so", "bash(git status)"),
        ("deny nosuch(x) always", "there is no tool nosuch"),
        ("allow", "/permissions allow bash(make *)"),
        ("never", "Use one of ask, accept-edits, plan, full; or allow, ask, deny or remove"),
    ],
)
async def test_what_is_no_rule_is_refused_with_the_syntax(tmp_path, line, said):
    conversation = Conversation(tmp_path)
    _, out, err = await conversation.printed(f"/permissions {line}")
    assert said in out + err
    assert not conversation.runtime.conversation.permissions.book.rules


async def test_ask_alone_is_the_mode(tmp_path):
    conversation = Conversation(tmp_path)
    await conversation.printed("/permissions plan")
    await conversation.printed("/permissions ask")
    assert conversation.runtime.conversation.permissions.mode == "ask"
