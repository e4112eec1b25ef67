"""Compaction with models that have little room or write little sense."""

import pytest

from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.compaction.summary.prompts import SummaryPrompt
from agent_tui.compaction.summary.templates import SEVEN_SECTION, STRUCTURED
from agent_tui.config import CompactionSettings
from agent_tui.messages import ToolCall
from agent_tui.providers.base import FinishChunk, ModelRef, ProviderError, TextChunk
from agent_tui.tokens import TokenCounter
from tests.compaction.test_service import request, work
from tests.compaction.writer import GOOD, Models, Writer, compact
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
    assert 'lacked "## Next Steps"' in writer.prompts[1]
    bodies = STRUCTURED.parse(without_fact_blocks(result.summary))
    assert bodies["## Goal"] == "Build the parser."
    assert bodies["### Done"].startswith("- [x] looked through the questions")
    assert "## Next Steps" not in bodies
    assert (result.is_fallback, result.summarised_by) == (False, "scripted/one")
    assert result.note.startswith("The summary by scripted/one is incomplete: ")
    assert result.note.count("lacked") == 1, "both tries had the same fault"
    assert "question 0" in result.summary
    assert "\n" not in result.note


async def test_of_two_tries_the_better_one_is_completed(counter: TokenCounter):
    writer = Writer([THIN, SAME])
    result = await compact(writer, counter, request(work(Talk()).path))
    assert not result.is_fallback
    assert without_fact_blocks(result.summary).startswith("## Goal\nBuild the parser.")


async def test_a_thin_summary_gives_way_to_a_whole_one_of_the_next_model(counter: TokenCounter):
    writer = Writer([THIN, THIN, GOOD])
    models = Models(cheap=ModelRef("scripted/cheap"))
    result = await compact(writer, counter, request(work(Talk()).path), models=models)
    assert result.summarised_by == "scripted/one"
    assert "scripted/cheap: it lacked" in result.note
    assert result.usage is not None
    assert result.usage.context_tokens == 300


async def test_without_another_model_the_first_draft_is_completed(counter: TokenCounter):
    writer = Writer([THIN, THIN, SAME])
    models = Models(cheap=ModelRef("scripted/cheap"))
    result = await compact(writer, counter, request(work(Talk()).path), models=models)
    assert (result.is_fallback, result.summarised_by) == (False, "scripted/cheap")
    assert "scripted/one: its summary was unusable" in result.note


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
    models = Models(window=8_192, max_output=8_192)
    asked = request(work(Talk(), 8).path, window=8_192)
    result = await compact(writer, counter, asked, models=models)
    assert (result.is_fallback, result.summarised_by) == (True, "")
    assert "scripted/one: its summary was unusable: it" in result.note
    assert without_fact_blocks(result.summary) == ""
    assert "question 0" in result.summary


async def test_brackets_and_dates_are_not_taken_for_a_goal(counter: TokenCounter):
    writer = Writer([(TextChunk(BRACKETS[:-4]), FinishChunk("length"))])
    models = Models(window=8_192, max_output=8_192)
    result = await compact(writer, counter, request(work(Talk(), 8).path), models=models)
    assert "{}" not in result.summary


@pytest.mark.thorough
@pytest.mark.parametrize("window", [2_048, 4_096, 8_192])
@pytest.mark.parametrize("template", ["structured", "seven-section"])
async def test_in_a_small_window_the_requests_are_few_and_fit(
    counter: TokenCounter, window: int, template: str
):
    talk = Talk()
    talk.user("Never push. Always ask before you delete a file of the parser.")
    for n in range(60):
        talk.user(f"wish {n} for the parser " + "please look at this " * 20)
        call = ToolCall(id=f"r{n}", name="read", arguments={"path": f"src/file{n}.py"})
        talk.reply(f"I look at file{n}.py " + "as it should be " * 60, call)
        talk.result(call, "text of the file " * 400)
    settings = CompactionSettings.model_validate({"template": template})
    reply = GOOD if template == "structured" else _as_seven(GOOD)
    writer = Writer([reply])
    models = Models(window=window, max_output=window)
    asked = request(talk.path, window=window, tokens_before=100_000, focus="the parser " * 2_000)
    result = await compact(writer, counter, asked, models=models, settings=settings)
    assert len(writer.requests) == 1
    for sent, prompt in zip(writer.requests, writer.prompts, strict=True):
        assert sent.max_output_tokens
        size = counter.count_text(sent.system + prompt)
        assert size <= 0.85 * (window - sent.max_output_tokens)
    assert not result.is_fallback
    assert "messages, oldest tool results first, did not fit" in result.note
    assert "Never push." in result.summary
    assert counter.count_text(result.summary) <= window // 3


def _as_seven(document: str) -> str:
    return document.replace("## Goal", "## TASK STATE").replace("## Critical Context", "## FILES")


@pytest.mark.parametrize("template", [STRUCTURED, SEVEN_SECTION])
def test_the_short_wording_names_every_section_too(counter: TokenCounter, template):
    long, short = (
        SummaryPrompt(template, "", "x", "", 300, is_short=is_short).text
        for is_short in (False, True)
    )
    assert counter.count_text(short) < 0.7 * counter.count_text(long)
    assert all(section.title in short for section in template.writable)
