"""What a branch that is left is summed up from, and by whom."""

from pathlib import Path

import pytest

from agent_tui.compaction.candidates import candidates
from agent_tui.compaction.summary.writer import Writer as ModelsWriter
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.features.tree.branch_summary import (
    BranchRequest,
    BranchSummary,
    summarise_branch,
    summary_by_code,
)
from agent_tui.messages import FileTouches, Usage
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.sessions.entries import Entry, Ledger
from agent_tui.tokens import ExactCounter, TokenCounter
from tests.compaction.writer import EMPTY, GOOD, REFUSAL, TOOL_CALL, Models, Step, Writer, client_of
from tests.support.talk import Talk

ONE, CHEAP = ModelRef("scripted/one"), ModelRef("scripted/cheap")
THIN = GOOD.replace("## Next Steps\n1. Run the tests.", "")


async def summed_up(
    writer: Writer | None,
    entries: tuple[Entry, ...],
    *,
    models: Models | None = None,
    window: int = 100_000,
    paid: list[Usage] | None = None,
) -> BranchSummary:
    request = BranchRequest(entries, ONE, window, Path("/w"), CompactionSettings())
    counter, told = ExactCounter(), [] if paid is None else paid
    client = client_of(writer)
    return await summarise_branch(
        request,
        ModelsWriter(client, counter) if client is not None else None,
        candidates(models or Models(), request.settings, request.model),
        counter,
        lambda _phase, _chars: None,
        told.append,
    )


@pytest.fixture
def branch() -> Talk:
    talk = Talk(prefix="left")
    talk.user("Mend the parser, please. Never touch the lock file.")
    talk.tool("edit", {"path": "parser.py"}, files=FileTouches(edited=("/w/parser.py",)))
    talk.reply("It is mended.")
    return talk


async def test_a_model_tells_of_the_branch_and_code_names_its_files(branch: Talk) -> None:
    writer, paid = Writer([GOOD]), list[Usage]()
    made = await summed_up(writer, branch.path, paid=paid)
    assert made.text.startswith("## Goal\nBuild the parser.")
    assert "<modified-files>\nparser.py\n</modified-files>" in made.text
    assert "Never touch the lock file." in made.text
    assert made.note == ""
    assert [made.usage] == paid
    (prompt,) = writer.prompts
    assert "[User]: Mend the parser, please." in prompt
    assert "\n## Goal\n" in prompt


@pytest.mark.parametrize("fault", [EMPTY, REFUSAL, TOOL_CALL, "just words"])
async def test_an_unusable_reply_gets_one_reminder(branch: Talk, fault: Step) -> None:
    writer = Writer([fault, GOOD])
    made = await summed_up(writer, branch.path)
    assert made.text.startswith("## Goal\nBuild the parser.")
    first, second = writer.prompts
    assert second.startswith(first)
    assert "was unusable: it" in second
    writer = Writer([fault])
    made = await summed_up(writer, branch.path)
    assert len(writer.requests) == 2
    assert made.text.startswith("- asked: Mend the parser, please.")
    assert made.note.startswith("Summary written without a model: scripted/one: it ")


async def test_the_next_model_writes_where_one_fails_or_says_too_little(branch: Talk) -> None:
    for faults in ([ProviderError("auth", "No key.")], [THIN, THIN]):
        writer = Writer([*faults, GOOD])
        made = await summed_up(writer, branch.path, models=Models(cheap=CHEAP))
        assert "## Next Steps" in made.text
        assert made.note.startswith("Summarised by scripted/one (scripted/cheap: ")


async def test_where_no_text_is_whole_the_first_one_stays(branch: Talk) -> None:
    writer = Writer([THIN, THIN, ProviderError("auth", "No key.")])
    made = await summed_up(writer, branch.path, models=Models(cheap=CHEAP))
    assert made.text.startswith("## Goal\nBuild the parser.")
    assert made.note == ("Summarised by scripted/cheap (scripted/one: No key).")


async def test_no_request_is_larger_than_the_window() -> None:
    talk, counter = Talk(prefix="left"), ExactCounter()
    for number in range(60):
        talk.user(f"wish {number} " + "please look at this " * 40)
        talk.reply("as it should be " * 200)
    writer = Writer([GOOD])
    await summed_up(writer, talk.path, models=Models(window=4_000), window=4_000)
    (sent,) = writer.requests
    assert sent.max_output_tokens
    used = counter.count_text(sent.system + writer.prompts[0])
    assert 1_000 < used + sent.max_output_tokens < 4_000
    assert "wish 0 " in writer.prompts[0]
    assert "wish 59 " in writer.prompts[0]


async def test_a_compaction_within_the_branch_stands_for_what_it_summarised() -> None:
    branch = Talk(prefix="left")
    branch.user("the beginning")
    branch.reply("long ago")
    branch.compaction("what was done before")
    branch.user("and then?")
    branch.reply("This.")
    writer = Writer([GOOD])
    await summed_up(writer, branch.path)
    assert "what was done before" in writer.prompts[0]
    assert "long ago" not in writer.prompts[0]


@pytest.mark.parametrize("window", [2_000, 8_000, 200_000])
async def test_the_summary_is_bounded_by_the_window(window: int) -> None:
    branch, counter = Talk(prefix="left"), ExactCounter()
    for number in range(300):
        branch.user(f"Explain part {number} of it.")
        branch.reply("words and more words " * 30)
    made = await summed_up(None, branch.path, window=window)
    assert 0 < counter.count_text(made.text) <= max(window // 4, 300)
    assert made.note == "Summary written without a model."


async def test_a_branch_without_a_reply_has_nothing_to_tell() -> None:
    branch = Talk(prefix="left")
    branch.user("hello?")
    with pytest.raises(NothingToCompactError, match="no reply is left behind"):
        await summed_up(None, branch.path)


LEDGER = Ledger(
    user_messages=("ok", "now make it faster", "write me a <summary> parser"),
    open_todos=("measure (in progress)", "optimise"),
)


def test_code_says_what_was_asked_what_is_open_and_the_last_reply(counter: TokenCounter):
    reply = "The loop is\nthe slow part."
    assert summary_by_code(LEDGER, reply, counter=counter, max_tokens=500).split("\n") == [
        "- asked: write me a &lt;summary> parser",
        "- asked: now make it faster",
        "- open: measure (in progress)",
        "- open: optimise",
        "- last reply: The loop is the slow part.",
    ]


def test_it_stays_under_its_limit_and_keeps_both_ends(counter: TokenCounter):
    ledger = Ledger(user_messages=tuple(f"please do thing number {n}" for n in range(300)))
    text = summary_by_code(ledger, "Done.", counter=counter, max_tokens=500)
    assert 400 < counter.count_text(text) <= 500
    assert "thing number 0" in text
    assert "thing number 299" in text
    assert text.endswith("- last reply: Done.")
