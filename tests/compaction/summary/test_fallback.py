from agent_tui.compaction.summary.fallback import LogFacts, fallback_summary

from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter

LEDGER = Ledger(
    user_messages=("ok", "now make it faster", "write me a <summary> parser"),
    open_todos=("measure (in progress)", "optimise"),
)


def test_it_says_what_was_asked_what_is_open_and_the_last_reply(counter: TokenCounter):
    facts = LogFacts(LEDGER, "The loop is\nthe slow part.")
    assert fallback_summary(facts, counter=counter, max_tokens=500).split("\n") == [
        "- asked: write me a &lt;summary> parser",
        "- asked: now make it faster",
        "- open: measure (in progress)",
        "- open: optimise",
        "- last reply: The loop is the slow part.",
    ]


def test_it_stays_under_its_limit_and_keeps_both_ends(counter: TokenCounter):
    ledger = Ledger(user_messages=tuple(f"please do thing number {n}" for n in range(300)))
    text = fallback_summary(LogFacts(ledger, "Done."), counter=counter, max_tokens=500)
    assert 400 < counter.count_text(text) <= 500
    assert "thing number 0" in text
    assert "thing number 299" in text
    assert text.endswith("- last reply: Done.")
