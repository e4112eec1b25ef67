import pytest

from agent_tui.compaction.model_client import ModelReply
from agent_tui.compaction.summary.fallback import (
    LogFacts,
    fallback_summary,
)
from agent_tui.compaction.summary.source import summary_source
from agent_tui.compaction.summary.templates import SEVEN_SECTION, STRUCTURED, Template
from agent_tui.compaction.summary.validate import AcceptedSummary, SummaryJudge
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter

LEDGER = Ledger(
    user_messages=("ok", "now make it faster", "write me a parser"),
    pinned=("never push",),
    modified_files=("a.py",),
    errors=("$ make => error",),
    commands=("make", "ls"),
    open_todos=("measure (in progress)", "optimise"),
    decisions=("yes (asked: Use a lexer?)",),
)


def fallback(
    counter: TokenCounter,
    ledger: Ledger = LEDGER,
    *,
    template: Template = STRUCTURED,
    previous: str = "",
    max_tokens: int = 4_000,
) -> str:
    return fallback_summary(
        LogFacts(ledger, previous, "The loop is the slow part."),
        template=template,
        counter=counter,
        max_tokens=max_tokens,
    )


def test_the_facts_stand_under_their_headings(counter: TokenCounter):
    bodies = STRUCTURED.parse(fallback(counter))
    assert bodies["## Goal"] == "- asked: write me a parser\n- asked: now make it faster"
    assert "changed 1 files" in bodies["### Done"]
    assert bodies["### In Progress"] == "- [ ] measure (in progress)"
    assert bodies["## Next Steps"] == "1. measure (in progress)\n2. optimise"
    assert "Use a lexer?" in bodies["## Key Decisions"]
    assert "The loop is the slow part." in bodies["## Critical Context"]


def test_without_a_plan_the_next_step_is_the_newest_real_request(counter: TokenCounter):
    ledger = LEDGER.model_copy(update={"open_todos": ()})
    bodies = STRUCTURED.parse(fallback(counter, ledger))
    assert bodies["## Next Steps"] == "1. Continue with the newest request: now make it faster"


@pytest.mark.parametrize("template", [STRUCTURED, SEVEN_SECTION])
def test_it_passes_the_same_checks_as_a_models_summary(counter: TokenCounter, template: Template):
    document = fallback(counter, template=template)
    source = summary_source((), previous_prose="", ledger=LEDGER, tokens=3_000)
    judging = SummaryJudge(template, source, counter, 4_000)
    outcome = judging.judge(ModelReply(document, "stop"))
    assert outcome == AcceptedSummary(document)


def test_a_models_earlier_summary_is_kept_in_it(counter: TokenCounter):
    previous = STRUCTURED.render(
        {"## Goal": "Ship version two.", "### Done": "- [x] lexer", "## Next Steps": "1. old step"}
    )
    bodies = STRUCTURED.parse(fallback(counter, previous=previous))
    assert bodies["## Goal"].startswith("Ship version two.\n- asked:")
    assert "- [x] lexer" in bodies["### Done"]
    assert "old step" not in bodies["## Next Steps"]


def test_an_earlier_summary_in_another_form_is_kept_as_context(counter: TokenCounter):
    bodies = STRUCTURED.parse(fallback(counter, previous="# Checkpoint\n## Goal\nport to Rust"))
    assert "port to Rust" in bodies["## Critical Context"]


def test_written_again_over_itself_it_does_not_grow(counter: TokenCounter):
    once = fallback(counter)
    twice = fallback(counter, previous=once)
    assert sorted(twice.split("\n")) == sorted(once.split("\n"))


def test_it_stays_under_its_limit(counter: TokenCounter):
    ledger = Ledger(user_messages=tuple(f"please do thing number {n}" for n in range(300)))
    document = fallback(counter, ledger, max_tokens=500)
    assert counter.count_text(document) <= 500
    assert "thing number 0" in document
    assert "thing number 299" in document
