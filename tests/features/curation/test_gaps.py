"""A model that leaves room is told once what the log has and its answer lacks; it can only add."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.curation.answer import KeepChoice, Pick, tokens_of
from agent_tui.compaction.curation.ask import Ask, Staying, TokenBudget
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.request import Asking, CompactionRequest, ContextSizes
from agent_tui.compaction.summary.templates import STRUCTURED
from agent_tui.config import CompactionSettings
from agent_tui.features.curation import curator
from agent_tui.features.curation.gaps import find_gaps, free_tokens, with_additions
from agent_tui.messages import JsonObject, ToolDetails
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.sessions.context import build_context
from agent_tui.tokens import ExactCounter
from tests.compaction.sections.scene import numbered
from tests.compaction.writer import CUT_OFF, EMPTY, GOOD, REFUSAL, TOOL_CALL, Step, Writer, compact
from tests.support.talk import Talk

COUNTER = ExactCounter()
MODEL = ModelRef("scripted/one")
ERROR = "mill.c:12:3: error: unknown type name 'grist_t'"
NOTES = GOOD.replace("## Next Steps", "### Next Steps")
ANSWER = f"<notes>\n{NOTES}\n</notes>\n<keep>\n#3 1-3\n</keep>"
ADDED = "- `make mill` failed: unknown type name 'grist_t'; include grist.h first"
MORE = f"""\
<notes>
## Errors and fixes
{ADDED}
</notes>
<keep>
#2
#3 200-203
</keep>"""


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("Please mend the mill.")
    lines = [f"value_{number} = {number}" for number in range(1, 301)]
    talk.tool("read", {"path": "a.py"}, numbered(lines))
    talk.tool("write", {"path": "b.py", "content": "import mill\n\nmill.turn()\n" * 5}, "Written.")
    talk.tool("write", {"path": "/tmp/try.py", "content": "import mill\n" * 9}, "Written.")
    failed = ToolDetails(exit_code=2)
    talk.tool("bash", {"command": "make mill"}, f"cc mill.c\n{ERROR}\n", details=failed)
    talk.tool("edit", {"path": "mill.c", "old": "", "new": "#include <grist.h>"}, "Edited.")
    talk.tool("bash", {"command": "make mill"}, "cc mill.c", details=ToolDetails(exit_code=0))
    talk.reply("Two ways are left:\n1. Grind it twice, which takes long.\n2. Sieve it first.\n" * 3)
    talk.user("Please look at both of them once more.")
    for number in range(12):
        talk.reply(f"answer {number} of the mill " + "as it should be " * 90)
        talk.user(f"question {number} of the mill")
    return talk


def request_of(talk: Talk) -> CompactionRequest:
    live = ModelRequest(
        model=MODEL,
        system="You are a coding agent.",
        messages=tuple(item.message for item in build_context(talk.path).messages),
    )
    return CompactionRequest(
        path=talk.path,
        previous=None,
        model=MODEL,
        cwd=Path("/project"),
        settings=CompactionSettings(),
        sizes=ContextSizes(window=100_000, used=12_000, target=5_000),
        asking=Asking(live=live),
        occasion="new session",
    )


def ask_of(talk: Talk) -> Ask:
    request = request_of(talk)
    return make_ask(request, make_draft(request, counter=COUNTER), counter=COUNTER)


def choice_of(ask: Ask, notes: str, *numbers: int) -> KeepChoice:
    picks = (Pick(piece) for piece in ask.pieces if piece.number in numbers)
    return KeepChoice(notes, tuple(picks), MODEL)


def test_an_edit_that_soon_passed_is_no_gap() -> None:
    talk = Talk()
    talk.user("Please mend the mill.")
    edit: JsonObject = {"path": "mill.c", "old": "turn", "new": "grind"}
    outdated = "mill.c has changed since you read it. old is not in mill.c."
    talk.tool("edit", edit, outdated, is_error=True)
    talk.tool("edit", edit, "Edited.")
    for number in range(12):
        talk.reply(f"answer {number} of the mill " + "as it should be " * 90)
        talk.user(f"question {number} of the mill")
    ask = ask_of(talk)
    assert ask.failures
    reply = next(piece for piece in ask.pieces if piece.kind == "reply")
    assert "Failures" not in "".join(find_gaps(choice_of(ask, NOTES, reply.number), ask))


def test_what_the_log_has_and_the_answer_lacks_is_named_with_its_number(talk: Talk) -> None:
    ask = ask_of(talk)
    (make,) = (p for p in ask.pieces if p.label == "$ make mill" and p.remark)
    (reply,) = (p for p in ask.pieces if p.label.startswith('you replied "Two ways'))
    (written,) = (p for p in ask.pieces if p.path == "b.py")
    (read,) = (p for p in ask.pieces if p.path == "a.py")
    gaps = find_gaps(choice_of(ask, NOTES, reply.number + 1), ask)
    assert gaps[0] == "Failures that your notes do not tell:"
    assert f"- $ make mill: passed later (#{make.number})" in gaps
    assert f"  {ERROR}" in gaps
    assert not {read.line, written.line} & set(gaps), "neither is named as next"
    assert "/tmp/try.py" not in "\n".join(gaps)
    assert reply.line in gaps
    told = NOTES.replace("Run the tests.", "Look at a.py, as `make mill` may fail again.")
    told += f"\n\n## Errors and fixes\n- {ERROR}: the header was missing"
    left = find_gaps(choice_of(ask, told, written.number, reply.number), ask)
    heading = "Files that your notes name for the next steps, and of which you keep nothing:"
    assert left == [heading, read.line, *left[2:]]
    assert not {f"  {ERROR}", written.line, reply.line} & set(left)


def test_nothing_is_missed_in_an_answer_that_uses_its_space_or_lacks_a_part(talk: Talk) -> None:
    ask = ask_of(talk)
    (make,) = (p for p in ask.pieces if p.label == "$ make mill" and p.remark)
    answer = choice_of(ask, NOTES, make.number)
    assert find_gaps(answer, ask)
    assert not find_gaps(replace(answer, picks=()), ask)
    assert not find_gaps(replace(answer, problem="it lacked a goal"), ask)
    long = replace(answer, notes=f"{NOTES}\n" + "and so on " * ask.budget.free)
    assert not find_gaps(long, ask)


async def test_what_is_missing_is_asked_for_behind_the_answer_and_added(talk: Talk) -> None:
    paths = [piece.path for piece in ask_of(talk).pieces[:3]]
    assert paths == ["/tmp/try.py", "b.py", "a.py"]
    writer = Writer([ANSWER, MORE])
    phases: list[str] = []
    result = await compact(writer, COUNTER, request_of(talk), phases=phases)
    one, two = writer.requests
    assert two.messages[: len(one.messages)] == one.messages
    assert replace(two, messages=()) == replace(one, messages=())
    said, more = two.messages[len(one.messages) :]
    assert (said.role, said.text) == ("assistant", ANSWER)
    assert f"\n  {ERROR}\n" in more.text
    notes = result.summary.partition("<kept>")[0]
    assert "Build the parser." in notes
    assert ADDED in notes
    assert "value_1 = 1\nvalue_2 = 2\n" in result.summary
    assert "value_4 = 4" not in result.summary
    assert "value_203 = 203" in result.summary
    assert "mill.turn()" in result.summary
    assert result.usage is not None
    assert (result.usage.input, result.usage.output) == (140, 60), "both answers are paid"
    assert phases[-1] == "asking what is missing"


@pytest.mark.parametrize(
    "heading", ["Errors and fixes", "Errors and fixes:", "**Errors and fixes**", ""]
)
async def test_added_notes_whose_heading_lacks_its_mark_are_kept(talk: Talk, heading: str) -> None:
    more = f"<notes>\n{heading}\n{ADDED}\n\nState\n- 15 errors before any change\n</notes>"
    result = await compact(Writer([ANSWER, more]), COUNTER, request_of(talk))
    notes = result.summary.partition("<kept>")[0]
    place = "Errors and fixes" if heading else "Critical Context"
    body = notes.partition(f"## {place}\n")[2].partition("\n## ")[0]
    assert ADDED in body
    assert "15 errors" in notes.partition("## State\n")[2]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(EMPTY, id="empty"),
        pytest.param(REFUSAL, id="a refusal"),
        pytest.param(TOOL_CALL, id="a call"),
        pytest.param(CUT_OFF, id="cut off"),
        pytest.param("I have nothing to add.", id="words"),
        pytest.param("<notes>\n</notes>\n<keep>\n</keep>", id="nothing to add"),
        pytest.param(f"{MORE}\n#901\n#902\n#903\n#904\n", id="other numbers"),
        pytest.param(ANSWER, id="the same again"),
        pytest.param(ProviderError("auth", "No key."), id="an error"),
    ],
)
async def test_a_second_answer_that_cannot_be_used_changes_nothing(
    talk: Talk, second: Step
) -> None:
    if "#901" in str(second):
        second = str(second).replace("</keep>", "") + "</keep>"
    writer = Writer([ANSWER, second])
    result = await compact(writer, COUNTER, request_of(talk))
    assert len(writer.requests) == 2
    alone = await compact(Writer([ANSWER, EMPTY]), COUNTER, request_of(talk))
    assert (result.summary, result.note) == (alone.summary, "")
    assert ADDED not in result.summary


async def test_a_second_answer_that_is_late_is_not_waited_for(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(_request: ModelRequest) -> str:
        writer.hangs = True
        return MORE

    monkeypatch.setattr(curator, "_LATEST_S", 0)
    writer = Writer([ANSWER, hang])
    result = await compact(writer, COUNTER, request_of(talk))
    assert len(writer.requests) == 2
    assert writer.closed == 2
    assert "Build the parser." in result.summary
    assert ADDED not in result.summary


LINES = (
    "- the mill stands still",
    "- grist.h comes first, as mill.c uses it",
    "```",
    "",
    "1. Mill.",
)
HEADINGS = st.sampled_from(STRUCTURED.headings)
DOCUMENTS = st.dictionaries(
    HEADINGS, st.lists(st.sampled_from(LINES) | st.text(max_size=30), min_size=1), max_size=5
).map(lambda bodies: STRUCTURED.render({h: "\n".join(lines) for h, lines in bodies.items()}))
PIECES = tuple(
    Piece(n, f"e{n}", "result", f"$ make {n}", ("cc",) * 10 * n, n, 50 * n) for n in range(1, 6)
)
PICKS = st.lists(
    st.builds(
        Pick,
        st.sampled_from(PIECES),
        st.sampled_from([(), ((5, 9),), ((6, 6), (8, 10))]),
    ),
    max_size=6,
    unique=True,
).map(tuple)


@given(
    notes=DOCUMENTS,
    picks=PICKS,
    added=DOCUMENTS,
    more=PICKS,
    free=st.integers(0, 900),
    data=st.data(),
)
def test_additions_take_nothing_away_and_stay_within_the_space(
    notes: str,
    picks: tuple[Pick, ...],
    added: str,
    more: tuple[Pick, ...],
    free: int,
    data: st.DataObject,
) -> None:
    most = data.draw(st.integers(0, free))
    ask = Ask(
        units=(),
        pieces=PIECES,
        staying=Staying({}, (), frozenset()),
        budget=TokenBudget(9_000, 2_000, most, most, free, 500),
        template=STRUCTURED,
        counter=COUNTER,
    )
    before = KeepChoice(notes, picks, MODEL)
    after = with_additions(before, added, more, ask)
    assert after.picks[: len(picks)] == picks
    assert set(after.picks) <= {*picks, *more}
    known, new = STRUCTURED.parse(notes), STRUCTURED.parse(after.notes)
    assert all(new[heading].startswith(body) for heading, body in known.items())
    count = COUNTER.count_text
    assert count(after.notes) <= max(count(notes), most)
    assert free_tokens(after, ask) >= min(free_tokens(before, ask), 0)


def test_lines_that_are_chosen_twice_count_once() -> None:
    piece = replace(PIECES[0], lines=("cc",) * 10, first=1, tokens=100)
    assert tokens_of([Pick(piece, ((1, 5),)), Pick(piece, ((3, 7), (6, 6)))]) == 70
    assert tokens_of([Pick(piece), Pick(piece, ((2, 3),)), Pick(PIECES[1])]) == 200
