from agent_tui.permissions.rules import Rule
from agent_tui.tools.base import Intent
from tests.commands.test_every_front import Conversation


async def test_only_the_rule_that_an_answer_made_is_taken_back(tmp_path, monkeypatch):
    conversation = Conversation(tmp_path)
    permissions = conversation.runtime.conversation.permissions
    permissions.add_session_rule("bash(make *)")
    (made,) = permissions.rules
    settled = Rule(made.decision, made.tool, made.pattern, "settings")
    removed: list[Rule] = []
    monkeypatch.setattr(type(permissions), "rules", (settled, made))
    monkeypatch.setattr(permissions, "remove_rule", removed.append)
    code, out, _ = await conversation.printed("/permissions remove bash(make *)")
    assert (code, out) == (0, "Removed: bash(make *)\n")
    assert [rule.source for rule in removed] == ["session"]


async def test_what_was_decided_in_this_session_is_counted(tmp_path):
    conversation = Conversation(tmp_path)
    permissions = conversation.runtime.conversation.permissions
    permissions.mode = "ask"
    permissions.add_session_rule("bash(make *)")
    for command, count in (("make a", 3), ("ls", 2)):
        intent = Intent(command, "execute", command=command)
        for _ in range(count):
            permissions.record("bash", intent, permissions.judge("bash", intent))
    _, out, _ = await conversation.printed("/permissions")
    assert "3 allowed by rules, 2 allowed by the mode" in out
