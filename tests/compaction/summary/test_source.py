import pytest

from agent_tui.compaction.summary.templates import STRUCTURED
from agent_tui.compaction.summary.validate import SummaryJudge, SummarySource, summary_source
from agent_tui.messages import AssistantMessage, TextContent, ToolCall, UserMessage
from agent_tui.providers.client import ModelReply
from agent_tui.tokens import ExactCounter, TokenCounter
from tests.compaction.real_summaries import CLAUDE, PI, real_summaries


def subject() -> SummarySource:
    calls = [
        ToolCall(id=f"c{path}", name="read", arguments={"path": path})
        for path in ("src/lexer.py", "old_grammar.md", *(f"src/part{n}.py" for n in range(12)))
    ]
    said = TextContent(text="I read `scan_line` first.")
    return summary_source(
        (
            UserMessage(content="Please make the tokenizer faster, it is used in src/parser.py"),
            AssistantMessage(content=(said, *calls)),
        ),
        ExactCounter(),
    )


def test_files_that_never_occurred_are_found_when_they_are_most():
    document = "Changed src/app.js and src/index.html; read lib/parser.py."
    assert subject().find_invented_paths(document) == ("src/app.js", "src/index.html")


@pytest.mark.parametrize(
    "document",
    [
        "Changed src/app.js and src/index.html.",
        "Changed src/part1.py, src/part2.py, ../src/lexer.py; next is tests/new_test.py.",
        "Version 1.2.3 of os.path, e.g. self.name, Mr. Smith, https://x.org/a/b.html, i.e. 3.5",
        "old_grammar.md, /project/src/lexer.py and parser.py",
    ],
)
def test_a_few_new_names_and_what_only_looks_like_a_path_are_let_through(document: str):
    assert subject().find_invented_paths(document) == ()


def test_the_more_there_was_the_more_words_there_must_be():
    assert [SummarySource("", n).least_words for n in (0, 2_000, 8_000, 2_000_000)] == [
        0,
        10,
        40,
        40,
    ]


@pytest.mark.parametrize("name", [PI, *CLAUDE])
def test_no_real_summary_is_found_weak(counter: TokenCounter, name: str):
    summaries = real_summaries(name, counter)
    assert summaries
    for real in summaries:
        paragraphs = real.text.split("\n\n")
        half = len(paragraphs) // 2
        document = STRUCTURED.render(
            {
                "## Goal": "\n\n".join(paragraphs[:half]),
                "### Next Steps": "\n\n".join(paragraphs[half:]),
            }
        )
        judging = SummaryJudge(STRUCTURED, real.source, counter, 10_000)
        outcome = judging.judge(ModelReply(document, "stop"))
        assert outcome.problem == ""
        kept = set(outcome.text.split())
        assert len(kept & set(document.split())) > 0.97 * len(set(document.split()))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [PI, *CLAUDE])
def test_the_real_summary_of_another_session_is_refused(counter: TokenCounter, name: str):
    other = CLAUDE[0] if name == PI else PI
    foreign = real_summaries(other, counter)[0]
    for real in real_summaries(name, counter):
        assert real.source.find_invented_paths(foreign.text)
