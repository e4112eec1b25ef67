"""What the question names as staying stays, whatever the answer is."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import strategies as st

from agent_tui.compaction.conversation import text_of
from agent_tui.compaction.curation.answer import KeepChoice, Pick
from agent_tui.compaction.curation.ask import Ask
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import draft_choice, make_draft
from agent_tui.compaction.plan import LiveEntry
from agent_tui.compaction.request import Answered, Asking, CompactionRequest, ContextSizes
from agent_tui.compaction.sections.file_views import plain_lines
from agent_tui.compaction.sections.history import Said, read_history
from agent_tui.compaction.transcript import escape_tags
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.features.curation.wording import ask_text
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import in_place
from tests.compaction.sections.scene import numbered
from tests.compaction.writer import GOOD, Writer, compact
from tests.support.histories import SOME_OR_ALL, changed_histories, for_every
from tests.support.talk import Talk

MODEL = ModelRef("scripted/one")
NOTE = "- the parser of a.py answers question {0} as it should, in line {0} of it"


@dataclass(frozen=True)
class Case:
    """A session, the target, and an answer: the pieces it names, and how long its notes are."""

    path: tuple[Entry, ...] = field(repr=False)
    target: int
    named: Sequence[int]
    notes: int


CASES = st.builds(
    Case,
    changed_histories(),
    st.sampled_from([300, 600, 1_200, 2_500]),
    st.lists(st.integers(0, 12), max_size=8),
    st.sampled_from([0, 10, 60, 300]),
)


def request_of(
    path: Sequence[Entry], target: int, asking: Asking | None = None
) -> CompactionRequest:
    return CompactionRequest(
        path=tuple(path),
        previous=None,
        model=MODEL,
        cwd=Path("/project"),
        settings=CompactionSettings(),
        sizes=ContextSizes(window=100_000, used=12_000, target=target),
        asking=asking or Asking(),
        occasion="new session",
    )


def ask_of(request: CompactionRequest, counter: TokenCounter) -> Ask:
    return make_ask(request, make_draft(request, counter=counter), counter=counter)


def lines_of(*texts: str) -> Iterator[str]:
    """The lines that are not blank, without numbers and indentation."""
    for line in escape_tags("\n".join(texts)).split("\n"):
        (_, plain), *_ = plain_lines(re.sub(r"^\(\d+\) ", "", line))
        if plain.strip():
            yield plain.strip()


def context_after(request: CompactionRequest, answer: str, counter: TokenCounter) -> set[str]:
    """The lines of the context after a model gave `answer`; none if that was of no use."""
    result = asyncio.run(compact(Writer([answer]), counter, request))
    after = build_context(in_place(request.path, result)).messages
    lines = set(lines_of(*(text_of(item.message) for item in after)))
    return lines if result.summarised_by else set()


def answer_of(case: Case, ask: Ask) -> str:
    """Notes, and the list of those pieces that the question offered."""
    offered = [piece for piece in ask.pieces if not ask.stays(piece)]
    named = dict.fromkeys(offered[n % len(offered)].number for n in case.named if offered)
    notes = "\n".join((GOOD, *map(NOTE.format, range(1_000, 1_000 + case.notes))))
    keep = "\n".join(f"#{number}" for number in named)
    return f"<notes>\n{notes}\n</notes>\n<keep>\n{keep}\n</keep>"


def assert_kept(ask: Ask, path: Sequence[Entry], context: set[str]) -> None:
    for event in read_history(path):
        if isinstance(event, Said) and ask.promise.said.get(event.entry_id):
            assert context.issuperset(lines_of(event.text)), event.text
    for piece in ask.promise.pieces:
        assert context.issuperset(lines_of(*piece.lines)), piece


@SOME_OR_ALL
def test_what_was_said_to_stay_stays(examples: int, counter: TokenCounter) -> None:
    def check(case: Case) -> None:
        request = request_of(case.path, case.target)
        try:
            ask = ask_of(request, counter)
            context = context_after(request, answer_of(case, ask), counter)
        except CompactionError:
            return
        if context:
            assert_kept(ask, case.path, context)

    for_every(CASES, examples, check)


def a_day() -> Talk:
    """A session of many small steps, most of which fit in no context."""
    talk = Talk()
    talk.user("Please mend the parser.")
    talk.tool("read", {"path": "a.py"}, numbered([f"value_{n} = {n}" for n in range(900)]))
    for number in range(90):
        if number % 5 == 0:
            talk.user(f"Question {number}: " + "what does the parser do? " * (number % 4 * 8 + 1))
        talk.reply(f"Answer {number}: " + f"it does what it should in part {number}. " * 9)
        output = "\n".join(f"part {number}.{line} was built" for line in range(24))
        talk.tool("bash", {"command": f"make part-{number}"}, output)
    return talk


@pytest.mark.parametrize("notes", [0, 300])
@pytest.mark.parametrize("target", [6_000, 10_000])
def test_longer_notes_and_texts_than_expected_leave_what_was_said_to_stay(
    target: int, notes: int, counter: TokenCounter
) -> None:
    request = request_of(a_day().path, target)
    ask = ask_of(request, counter)
    assert len(ask.promise.pieces) > 4
    assert sum(ask.promise.said.values()) > 4
    answer = answer_of(Case(request.path, target, range(40), notes), ask)
    assert_kept(ask, request.path, context_after(request, answer, counter))


def test_steps_made_since_leave_what_was_said_to_stay(counter: TokenCounter) -> None:
    talk = a_day()
    ask = ask_of(request_of(talk.path, 10_000), counter)
    choice = KeepChoice(GOOD, (), MODEL, ask.through, ask.promise)
    talk.tool("read", {"path": "b.py"}, numbered([f"other_{n} = {n}" for n in range(150)]))
    talk.reply("Read.")

    async def ahead() -> Answered:
        return choice

    request = request_of(talk.path, 10_000, Asking(ahead=ahead))
    assert_kept(ask, talk.path, context_after(request, "", counter))


def test_the_newest_messages_are_those_that_the_question_names(counter: TokenCounter) -> None:
    talk = a_day()
    talk.tool("edit", {"path": "a.py", "old": "value_3 = 3", "new": "value_3 = 4"}, "Edited.")
    talk.tool(
        "read", {"path": "package.json"}, numbered(["{", '"name": "the parser of a.py"', "}"])
    )
    talk.tool("bash", {"command": "npm install left-pad"}, "added 1 package")
    talk.tool("read", {"path": "a.py", "offset": 500}, numbered(["x = 1"] * 90, 500))
    for number in range(4):
        talk.tool("bash", {"command": f"make last-{number}"}, "built " * 50)
        talk.reply(f"Part {number} was built as it should be. " * 4)
    request = request_of(talk.path, 6_000)
    ask = ask_of(request, counter)
    stays = "file package.json 1-3, perhaps older than this change: npm install left-pad"
    assert stays in ask_text(ask).partition("(Not offered")[2]
    file = next(piece for piece in ask.pieces if piece.path == "a.py")
    outputs = tuple(Pick(piece) for piece in ask.pieces if piece.kind == "result")
    for picks in ((Pick(file, ((1, 400),)),), outputs):
        choice = KeepChoice(GOOD, picks, MODEL, ask.through, ask.promise)
        draft, _ = draft_choice(request, choice, counter=counter)
        kept = {entry.id for entry in draft.plan.kept_entries if isinstance(entry, LiveEntry)}
        assert kept & {u.entry_id for u in ask.units} == ask.staying.entries | {
            *ask.staying.shortened
        }
        assert "they were before a change: package.json (perhaps older than" in draft.summary
        assert draft.tokens_after(request, counter) <= 6_000


def test_a_file_is_said_to_be_below_as_it_was_only_if_it_is(counter: TokenCounter) -> None:
    talk = a_day()
    manifest = ["{", *(f'  "name_{number}": "the parser of a.py",' for number in range(30)), "}"]
    talk.tool("read", {"path": "package.json"}, numbered(manifest))
    talk.tool("bash", {"command": "npm install left-pad"}, "added 1 package")
    for number in range(4):
        talk.tool("bash", {"command": f"make last-{number}"}, "built " * 50)
        talk.reply(f"Part {number} was built as it should be. " * 4)
    notes = GOOD.replace("1. Run the tests.", "1. Commit package.json.")
    said = 0
    for target in range(9_000, 12_000, 500):
        request = request_of(talk.path, target)
        ask = ask_of(request, counter)
        picks = tuple(Pick(piece) for piece in ask.pieces if piece.path == "a.py")
        choice = KeepChoice(notes, picks, MODEL, ask.through, ask.promise)
        draft, _ = draft_choice(request, choice, counter=counter)
        is_below = '"name_7"' in str([message.text for message in draft.plan.left.values()])
        is_said = "as they were before a change: package.json" in draft.summary
        said += is_said
        assert is_below or not is_said
    assert said
