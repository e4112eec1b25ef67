from agent_tui.permissions.rules import Rule
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
