"""What a branch that is left is summed up from."""

from pathlib import Path

import pytest

from agent_tui.compaction.branch import BranchDraft, BranchRequest, draft_branch
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import FileTouches
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter
from tests.support.talk import Talk


def draft(entries: tuple[Entry, ...], window: int = 100_000) -> BranchDraft:
    return draft_branch(
        BranchRequest(entries, ModelRef("scripted/test"), window, Path("/w"), CompactionSettings()),
        counter=TokenCounter(),
    )


def test_it_tells_of_the_branch_and_names_its_files() -> None:
    branch = Talk(prefix="left")
    branch.user("Mend the parser, please.")
    branch.tool("edit", {"path": "parser.py"}, files=FileTouches(edited=("/w/parser.py",)))
    branch.reply("It is mended.")
    made = draft(branch.path)
    assert "Mend the parser, please." in made.log_facts.ledger.user_messages
    assert made.log_facts.last_reply == "It is mended."
    assert "parser.py" in made.fact_blocks
    assert made.job.previous_prose == ""
    assert made.job.messages[0].text == "Mend the parser, please."


def test_a_compaction_within_the_branch_stands_for_what_it_summarised() -> None:
    branch = Talk(prefix="left")
    branch.user("the beginning")
    branch.reply("long ago")
    branch.compaction("what was done before")
    branch.user("and then?")
    branch.reply("This.")
    made = draft(branch.path)
    texts = [message.text for message in made.job.messages]
    assert "what was done before" in texts[0]
    assert "long ago" not in texts


@pytest.mark.parametrize("window", [2_000, 8_000, 200_000])
def test_the_summary_is_bounded_by_the_window_and_by_what_it_is_of(window: int) -> None:
    branch = Talk(prefix="left")
    branch.user("Explain all of it.")
    branch.reply("words and more words " * 3_000)
    large = draft(branch.path, window).job
    assert 0 < large.wanted_tokens <= large.max_tokens <= max(window // 6, 200)
    short = Talk(prefix="left")
    short.user("Explain.")
    short.reply("No.")
    assert draft(short.path, window).job.max_tokens <= 200


def test_a_branch_without_a_reply_has_nothing_to_tell() -> None:
    branch = Talk(prefix="left")
    branch.user("hello?")
    with pytest.raises(NothingToCompactError, match="no reply is left behind"):
        draft(branch.path)
