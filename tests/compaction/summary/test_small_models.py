"""Compaction with models that have little room or write little sense."""

import pytest

from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.compaction.summary.templates import STRUCTURED
from agent_tui.providers.base import FinishChunk, ProviderError, TextChunk
from agent_tui.tokens import TokenCounter
from tests.compaction.test_summary import request, work
from tests.compaction.writer import GOOD, Writer, compact
from tests.support.talk import Talk


def document(bodies: dict[str, str]) -> str:
    return "\n\n".join(f"## {title}\n{body}" for title, body in bodies.items())


THIN = GOOD.replace("## Next Steps\n1. Run the tests.", "")

LOOPING = document(
    {
        "Goal": "The goal is to finish the project.",
        "Done": "The conversation will continue with a list of files read and changed.",
        "In Progress": "The conversation will continue with a list of files read and changed.",
        "Next Steps": "The conversation will continue with a list of files read and changed.",
        "Critical Context": "The next steps will have the next steps, and so on.",
    }
)
BRACKETS = document(
    {
        "Goal": "2022-01-22T09:39:32.15381684308184869Z",
        "Constraints & Preferences": "1.1.3.0",
        "In Progress": "}]} }}}}}}}}}}}]}}}]}}]]}]]]}}]{}]}]]{}}]]{}}{}}{}}]{}}]]{}]{}{}{}}{}",
        "Blocked": "Finished work: 2022-01-22T09:39:32.15381684308184869Z",
        "Key Decisions": "1.1.3.0.0.0/2022-01-22T17:14:35.0.630714.0.69510.0.2073.72.21.0.2869.15",
        "Next Steps": ")]{}}{}{}{}{}",
    }
)
COUNTING = "## Goal\n" + ", ".join(map(str, range(14, 90))) + "\n\n## Next Steps\n1. 91, 92"
SAME = (
    "## Goal\nThe user wants to create a new file. The user wants to create a new file.\n\n"
    "## Next Steps\n1. The user wants to create a new file."
)


async def test_a_bad_request_is_not_repeated(counter: TokenCounter):
    writer = Writer([ProviderError("bad_request", "no", status=400)])
    result = await compact(writer, counter, request(work(Talk()).path))
    assert len(writer.requests) == 1
    assert result.is_fallback


async def test_a_thin_summary_stands_beside_the_record(counter: TokenCounter):
    writer = Writer([THIN])
    result = await compact(writer, counter, request(work(Talk()).path))
    assert len(writer.requests) == 2
    assert 'lacked "### Next Steps"' in writer.prompts[1]
    bodies = STRUCTURED.parse(without_fact_blocks(result.summary))
    assert bodies["## Goal"] == "Build the parser."
    assert bodies["### Done"].startswith("- [x] looked through the questions")
    assert "### Next Steps" not in bodies
    assert (result.is_fallback, result.summarised_by) == (False, "scripted/one")
    assert result.note == "", "the user can do nothing about a section that may be empty"
    assert "question 0" in result.summary
    assert "\n" not in result.note


async def test_of_two_tries_the_better_one_is_completed(counter: TokenCounter):
    writer = Writer([THIN, SAME])
    result = await compact(writer, counter, request(work(Talk()).path))
    assert not result.is_fallback
    assert without_fact_blocks(result.summary).startswith("## Goal\nBuild the parser.")


async def test_a_reply_cut_off_twice_keeps_what_came(counter: TokenCounter):
    writer = Writer([(TextChunk(GOOD), FinishChunk("length"))])
    result = await compact(writer, counter, request(work(Talk()).path))
    assert not result.is_fallback
    assert "is incomplete" in result.note
    assert "cut off" in result.note
    assert without_fact_blocks(result.summary).startswith("## Goal\nBuild the parser.")


@pytest.mark.parametrize("junk", [LOOPING, COUNTING, SAME])
async def test_what_a_very_small_model_wrote_gives_way_to_the_record(
    counter: TokenCounter, junk: str
):
    writer = Writer([junk])
    result = await compact(writer, counter, request(work(Talk(), 8).path))
    assert (result.is_fallback, result.summarised_by) == (True, "")
    assert "scripted/one: it" in result.note
    assert without_fact_blocks(result.summary) == ""
    assert "question 0" in result.summary


async def test_brackets_and_dates_are_not_taken_for_a_goal(counter: TokenCounter):
    writer = Writer([(TextChunk(BRACKETS[:-4]), FinishChunk("length"))])
    result = await compact(writer, counter, request(work(Talk(), 8).path))
    assert "{}" not in result.summary
