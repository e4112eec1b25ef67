from agent_tui.agent.prompt.fitted_prompt import server_block
from agent_tui.tokens import ExactCounter

COUNTER = ExactCounter()
LONG = (("a", "word " * 390), ("b", "more\n" * 390))


def test_instructions_are_cut_to_their_share_or_left_out():
    assert server_block((), 0, COUNTER) == ""
    whole = server_block(LONG, 0, COUNTER)
    assert "\nb:\n> more\n> more" in whole
    assert len(server_block(LONG, 12_000, COUNTER)) < len(whole)
    assert COUNTER.count_text(server_block(LONG, 12_000, COUNTER)) <= 300
    assert server_block(LONG, 2_000, COUNTER) == ""
