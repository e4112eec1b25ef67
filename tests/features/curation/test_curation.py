"""The model of the conversation is asked on the request that its provider has cached."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.compaction.curation.answer import KeepChoice, Pick
from agent_tui.compaction.curation.ask import Ask
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.request import (
    Asking,
    CompactionRequest,
    ContextSizes,
    Occasion,
    Selection,
)
from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.config import CompactionSettings
from agent_tui.features.curation.curator import ModelCurator
from agent_tui.features.curation.reading import read_answer
from agent_tui.features.curation.wording import ask_text
from agent_tui.messages import JsonObject, ToolCall, UserMessage
from agent_tui.providers.base import (
    ModelRef,
    ModelRequest,
    ProviderError,
    ToolSpec,
)
from agent_tui.providers.client import RequestTracker, ignore_usage, unseen
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Carryover, Handover, TaskText
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import in_place
from tests.compaction.sections.scene import numbered
from tests.compaction.writer import (
    EMPTY,
    GOOD,
    TOOL_CALL,
    Models,
    Step,
    Writer,
    client_of,
    compact,
    no_wait,
)
from tests.support.talk import Talk

LINES = [f"value_{number} = {number}" for number in range(1, 301)]
ANSWER = f"<notes>\n{GOOD}\n</notes>\n<keep>\n#1 200-203\n#2 1-2\n#77\n</keep>"
MODEL = ModelRef("scripted/one")


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("Please mend the parser of a.py.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    talk.tool("bash", {"command": "pytest -q"}, "\n".join(f"{n} failed" for n in range(300)))
    for number in range(12):
        talk.reply(f"answer {number} of the parser " + "as it should be " * 40)
        talk.user(f"question {number} of the parser " + "please look at this " * 30)
    return talk


def live_of(talk: Talk) -> ModelRequest:
    return ModelRequest(
        model=MODEL,
        system="You are a coding agent.",
        messages=tuple(item.message for item in build_context(talk.path).messages),
        tools=(ToolSpec(name="read", description="Reads.", parameters={"type": "object"}),),
        max_output_tokens=8_000,
        thinking="medium",
        cache_key="session",
    )


def request_of(talk: Talk, *, target: int = 3_000, focus: str = "") -> CompactionRequest:
    return CompactionRequest(
        path=talk.path,
        previous=None,
        model=MODEL,
        cwd=Path("/project"),
        settings=CompactionSettings(),
        sizes=ContextSizes(window=100_000, used=12_000, target=target),
        asking=Asking(focus=focus, live=live_of(talk)),
        occasion="new session",
    )


def ask_of(request: CompactionRequest, *, counter: TokenCounter) -> Ask:
    return make_ask(request, make_draft(request, counter=counter), counter=counter)


async def test_one_message_is_put_behind_the_next_request_and_nothing_else_changes(
    talk: Talk, counter: TokenCounter
) -> None:
    writer = Writer([ANSWER])
    request = request_of(talk, focus="the <focus> parser")
    assert request.asking.live is not None
    result = await compact(writer, counter, request)
    (sent,) = writer.questions
    *before, ask = sent.messages
    assert tuple(before) == request.asking.live.messages
    assert replace(sent, messages=()) == replace(
        request.asking.live, messages=(), purpose="summary"
    )
    assert isinstance(ask, UserMessage)
    assert "#1 file a.py 1-300, " in ask.text
    assert "#2 $ pytest -q 1-300, " in ask.text
    assert "the &lt;focus> parser" in ask.text
    form = "<keep>\n#NUMBER FIRST-LAST, FIRST-LAST\n#NUMBER\n</keep>"
    assert form in ask.text
    pieces = ask_of(request, counter=counter).pieces
    assert read_answer(form, pieces).picks == ()  # a model that copies it chooses nothing
    assert result.summarised_by == MODEL.name
    assert result.note == ""


async def test_a_message_that_fills_the_window_is_not_shown_to_the_model_that_summarizes(
    talk: Talk, counter: TokenCounter
) -> None:
    talk.reply("Well.")
    talk.user("See these files. " + "please look at all of this " * 1_000)
    request, writer = request_of(talk), Writer([ANSWER])
    live = request.asking.live
    assert live is not None
    sizes = replace(request.sizes, window=40_000, used=39_000)
    result = await compact(writer, counter, replace(request, sizes=sizes))
    (sent,) = writer.questions
    assert sent.messages[:-1] == live.messages[:-1]
    assert result.summarised_by == MODEL.name


def test_the_model_is_offered_the_room_that_the_newest_exchange_leaves(
    talk: Talk, counter: TokenCounter
) -> None:
    before = ask_of(request_of(talk), counter=counter).budget
    talk.reply("please look at all of this " * 300)
    after = ask_of(request_of(talk), counter=counter).budget
    assert after.target == before.target
    assert after.free < before.free


def test_the_newest_exchange_is_not_offered_as_it_stays(talk: Talk, counter: TokenCounter) -> None:
    talk.tool("bash", {"command": "make"}, "\n".join(f"built part {n}" for n in range(90)))
    ask = ask_of(request_of(talk), counter=counter)
    newest = ask.pieces[-1]
    assert newest.label.startswith("$ make")
    assert ask.stays(newest)
    assert newest.line not in ask_text(ask)


async def test_of_the_task_only_what_was_chosen_stands_there(
    talk: Talk, counter: TokenCounter
) -> None:
    item = "\n".join(f"Part {n} has to do what it should." for n in range(80))
    talk.tool("bash", {"command": "gh issue view 12"}, item)
    for number in range(4):
        talk.reply(f"answer {number} of the printer " + "as it should be " * 40)
        talk.user(f"question {number} of the printer " + "please look at this " * 30)
    request = request_of(talk)

    async def summary_of(wanted: str) -> str:
        answer = f"<notes>\n{GOOD}\n</notes>\n<keep>\n{wanted}\n</keep>"
        return (await compact(Writer([answer]), counter, request)).summary

    assert "Part 0 has" not in await summary_of("#1 1-20")
    (shown,) = (p for p in ask_of(request, counter=counter).pieces if "gh" in p.label)
    summary = await summary_of(f"#{shown.number} 5-9")
    assert "Part 4 has" in summary
    assert "<task-text>" not in summary


def test_a_task_of_an_earlier_session_can_be_chosen(talk: Talk, counter: TokenCounter) -> None:
    item = TaskText(item="12", text="Do all of this.\n" * 20, entry_id="gone")
    previous = Carryover(handover=Handover(tasks=(item,)))
    ask = ask_of(replace(request_of(talk), previous=previous), counter=counter)
    assert "the task 12 1-21, " in ask_text(ask)


def test_beside_notes_stand_failures_that_they_do_not_name(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please mend the parser of a.py.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))

    def run(command: str, output: str, code: int = 0) -> None:
        talk.tool("bash", {"command": command}, output, is_error=code > 0, exit_code=code)

    run("make one", "error: the first part is broken", 2)
    run("make one", "done")
    run("make two", "error: the second part is broken", 2)
    for number in range(12):
        talk.reply(f"answer {number} of the parser " + "as it should be " * 40)
        talk.user(f"question {number} of the parser " + "please look at this " * 30)
    request = request_of(talk)
    through = talk.path[-1].id
    (file,) = (p for p in ask_of(request, counter=counter).pieces if p.path == "a.py")
    notes = f"{GOOD}\n- make two: the second part is broken"
    choice = KeepChoice(notes, (Pick(file, ((1, 5),)),), MODEL, through)
    run("make three", "error: the third part is broken", 2)
    run("make three", "done")
    for number in range(40):
        talk.reply(f"answer {number} of the printer " + "as it should be " * 40)
        talk.user(f"question {number} of the printer " + "please look at this " * 30)
    after = replace(request_of(talk, target=9_000), asking=Asking(), occasion="threshold")
    alone = make_draft(after, counter=counter).after_notes
    assert [f"the {n} part" in alone for n in ("first", "second", "third")] == [True] * 3
    noted = make_draft(replace(after, selection=Selection(choice=choice)), counter=counter)
    shown = noted.after_notes
    assert [f"the {n} part" in shown for n in ("first", "second", "third")] == [True, False, True]


async def test_a_document_of_the_task_that_was_chosen_does_not_stand_twice(
    talk: Talk, counter: TokenCounter
) -> None:
    talk.user("Do what plan.md says.")
    text = "\n".join(f"{n}\tPart {n} has to do what it should." for n in range(1, 90))
    path = str(request_of(talk).cwd / "plan.md")
    talk.tool("read", {"path": path}, text)
    talk.tool("edit", {"path": path, "old": "Part 7 has", "new": "Part 7 always has"}, "ok")
    for number in range(4):
        talk.reply(f"answer {number} of the printer " + "as it should be " * 40)
        talk.user(f"question {number} of the printer " + "please look at this " * 30)
    (plan,) = (p for p in ask_of(request_of(talk), counter=counter).pieces if p.path == "plan.md")
    answer = f"<notes>\n{GOOD}\n</notes>\n<keep>\n#{plan.number} 5-9\n</keep>"
    summary = (await compact(Writer([answer]), counter, request_of(talk))).summary
    assert "Part 7 always has" in summary
    assert "<task-text>" not in summary


async def test_notes_what_was_chosen_and_what_code_knows_stand_together(
    talk: Talk, counter: TokenCounter
) -> None:
    result = await compact(Writer([ANSWER]), counter, request_of(talk))
    summary = result.summary
    assert without_fact_blocks(summary).startswith("## Goal\nBuild the parser.")
    assert summary.endswith("</messages-below>")
    assert "\n".join(LINES[199:203]) in summary
    assert LINES[198] not in summary.split("\n")
    assert "0 failed\n1 failed\n</excerpt>" in summary
    assert "(1) Please mend the parser of a.py." in summary
    order = [summary.index(mark) for mark in ("<said-by", "## Goal", "<kept>", "<work-state>")]
    assert order == sorted(order)
    assert "<way-so-far>" not in summary  # the notes tell it
    notes_alone = await compact(Writer([f"<notes>\n{GOOD}\n</notes>"]), counter, request_of(talk))
    assert "<way-so-far>" in notes_alone.summary


async def test_a_task_that_the_model_wants_whole_is_not_cut(counter: TokenCounter) -> None:
    items = [f"## Item {n}\nMake part {n} do what it should do, {n} times." for n in range(60)]
    talk = Talk()
    talk.user("Work through BACKLOG.md.")
    talk.tool("read", {"path": "BACKLOG.md"}, numbered("\n".join(items).split("\n")))
    talk.tool("bash", {"command": "ls"}, "\n".join(f"file_{n}.py" for n in range(800)))
    for number in range(12):
        talk.reply(f"answer {number} of the parser " + "as it should be " * 40)
        talk.user(f"question {number} of the parser " + "please look at this " * 30)
    cut = (await compact(Writer([f"<notes>\n{GOOD}\n</notes>"]), counter, request_of(talk))).summary
    assert "part 59" not in cut
    answer = f"<notes>\n{GOOD}\n</notes>\n<keep>\n#1\n</keep>"
    summary = (await compact(Writer([answer]), counter, request_of(talk, target=6_000))).summary
    assert "part 59" in summary
    assert summary.count("## Item 7\n") == 1


async def test_committed_files_come_after_those_that_are_not(counter: TokenCounter) -> None:
    def talk_with(command: str) -> Talk:
        talk = Talk()
        talk.user("Please write a.py and b.py.")
        bodies = {n: "".join(f"{n}_{line} = {line}\n" for line in range(40)) for n in "ab"}
        talk.tool("write", {"path": "a.py", "content": bodies["a"]}, "Created.")
        talk.tool("bash", {"command": command}, "")
        talk.tool("write", {"path": "b.py", "content": bodies["b"]}, "Created.")
        talk.tool("read", {"path": "a.py"}, numbered(bodies["a"].split("\n")))
        for number in range(12):
            talk.reply(f"answer {number} of the parser " + "as it should be " * 40)
            talk.user(f"question {number} of the parser " + "please look at this " * 30)
        return talk

    async def are_in_order(command: str) -> bool:
        writer = Writer([f"<notes>\n{GOOD}\n</notes>"])
        request = request_of(talk_with(command), target=4_000)
        summary = (await compact(writer, counter, request)).summary
        return summary.index("a_3 = 3") < summary.index("b_3 = 3")

    assert await are_in_order("git commit --dry-run"), "the one touched last comes first"
    assert not await are_in_order("git add -A && git commit -qm 'a'")


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (TOOL_CALL, "it called a tool"),
        (EMPTY, "it was empty"),
        ("Sure, I will.", "it lacked"),
        (f"<notes>\n{GOOD}\n</notes>\n<keep>\n#1\n#171\n#180 2-5\n</keep>", "most numbers"),
    ],
)
async def test_what_is_no_answer_is_asked_for_once_more(
    talk: Talk, counter: TokenCounter, first: Step, problem: str
) -> None:
    writer = Writer([first, ANSWER])
    result = await compact(writer, counter, request_of(talk))
    one, two = writer.questions
    assert two.messages[:-1] == one.messages[:-1]
    assert f"could not be used: {problem}" in two.messages[-1].text
    assert "<kept>" in result.summary
    assert result.usage is not None


async def test_notes_without_a_list_are_a_summary(talk: Talk, counter: TokenCounter) -> None:
    writer = Writer([GOOD])
    result = await compact(writer, counter, request_of(talk))
    assert len(writer.requests) == 1
    assert "Build the parser." in result.summary
    assert "<kept>" not in result.summary


async def test_a_model_that_never_answers_leaves_it_to_code(
    talk: Talk, counter: TokenCounter
) -> None:
    result = await compact(Writer([TOOL_CALL]), counter, request_of(talk))
    assert result.is_fallback
    assert "it called a tool" in result.note
    failing = Writer([ProviderError("auth", "No key.")])
    result = await compact(failing, counter, request_of(talk))
    assert result.is_fallback
    assert "No key" in result.note


async def test_a_model_that_never_answered_is_asked_again_only_if_the_user_asks(
    talk: Talk, counter: TokenCounter
) -> None:
    writer = Writer([TOOL_CALL, TOOL_CALL, ANSWER])
    client = client_of(writer, no_wait)
    assert client is not None
    curator = ModelCurator(client, counter, Models())

    async def answer(occasion: Occasion) -> bool:
        request = replace(request_of(talk), occasion=occasion)
        ask = ask_of(request, counter=counter)
        choice = await curator.choose(request, ask, RequestTracker(unseen, ignore_usage))
        return isinstance(choice, KeepChoice)

    assert not await answer("due")
    assert not await answer("due")
    assert len(writer.questions) == 2
    assert await answer("asked")
    assert await answer("due"), "a model that answered again is asked again"
    assert len(writer.questions) == 4


@pytest.mark.parametrize(("ratio", "is_asked"), [(1.1, True), (2.9, True), (1.0, False)])
async def test_a_window_is_small_by_the_tokens_that_its_model_counts(
    ratio: float, is_asked: bool, talk: Talk, counter: TokenCounter
) -> None:
    writer = Writer([ANSWER])
    sizes = ContextSizes(round(32_000 / max(ratio, 1.1)), 12_000, target=3_000, ratio=ratio)
    request = replace(request_of(talk), sizes=sizes)
    await compact(writer, counter, request)
    assert bool(writer.requests) is is_asked


async def test_a_model_reads_the_conversation_as_text_where_the_question_does_not_fit_behind_it(
    talk: Talk, counter: TokenCounter
) -> None:
    writer = Writer([GOOD])
    request = replace(request_of(talk), sizes=ContextSizes(33_000, 32_000, target=3_000))
    await compact(writer, counter, request)
    (sent,) = writer.requests
    assert sent.tools == ()


async def test_files_and_repeated_lines_stand_once_in_a_conversation_as_text(
    talk: Talk, counter: TokenCounter
) -> None:
    edit: JsonObject = {"oldText": "value_200 = 200", "newText": "value_200 = None\nadded = 1"}
    talk.tool("edit", {"path": "a.py", "edits": [edit]}, "Edited.")
    for count in (20, 40):
        log = "\n".join(f"built part {number}" for number in range(count))
        talk.tool("TaskOutput", {"task_id": "1", "timeout": count}, log)
    writer = Writer([ANSWER])
    await compact(writer, counter, replace(request_of(talk), asking=Asking()))
    text = writer.prompts[0]
    assert text.count("value_150 = 150") == 1
    assert "#1 file a.py 1-301, " in text
    assert "200\tvalue_200 = None\n201\tadded = 1\n202\tvalue_201 = 201" in text
    assert "Result: (file a.py, as it is now: #1)" in text
    assert text.count("built part 7\n") == 1
    assert "timeout=20\n(lines 1-20 shown in #" in text
    assert "that you have not seen under these numbers" not in text


async def test_shorter_notes_are_asked_for_where_the_window_has_less_room(
    talk: Talk, counter: TokenCounter
) -> None:
    asked = ask_of(request_of(talk), counter=counter)
    needed = 12_000 + counter.count_text(ask_text(asked)) + 2_000
    writer = Writer([GOOD])
    sizes = ContextSizes(40_000, 40_000 - needed + 12_000 - 800, target=3_000)
    request = replace(request_of(talk), sizes=sizes)
    await compact(writer, counter, request)
    (sent,) = writer.requests
    assert sent.tools
    found = re.search(r"notes of at most (\d+) tokens", sent.messages[-1].text)
    assert found is not None
    assert 750 <= int(found[1]) <= 850


async def test_notes_that_are_too_long_shorten_the_end_of_the_list(
    talk: Talk, counter: TokenCounter
) -> None:
    request = request_of(talk, target=6_000)
    budget = ask_of(request, counter=counter).budget
    assert budget.notes < budget.most_notes < budget.free

    async def summary_with(notes_tokens: int) -> str:
        line = "- the parser of a.py answers question {n} as it should, in line {n} of it\n"
        many = "".join(line.format(n=n) for n in range(1_000, 1_000 + notes_tokens // 24))
        notes = f"## Goal\nBuild it.\n\n### Done\n{many}\n### Next Steps\n1. Test it."
        answer = f"<notes>\n{notes}\n</notes>\n<keep>\n#2 1-2\n#1\n</keep>"
        return (await compact(Writer([answer]), counter, request)).summary

    short, long = await summary_with(300), await summary_with(9_000)
    assert short.count("value_") > long.count("value_") > 0
    assert "1 failed" in short
    assert "1 failed" in long
    notes = long[long.index("## Goal") : long.index("<kept>")]
    assert budget.notes < counter.count_text(notes) <= budget.most_notes + 20


async def test_what_was_kept_is_offered_again_and_can_be_kept_again(
    talk: Talk, counter: TokenCounter
) -> None:
    first = await compact(Writer([ANSWER]), counter, request_of(talk))
    talk.put(first.entry("threshold"))
    for number in range(20):
        talk.reply(f"another answer {number} " + "as it should be " * 40)
        talk.user(f"another question {number} " + "please look at this " * 30)
    ask = ask_of(request_of(talk), counter=counter)
    file, output = ask.pieces[:2]
    assert file.line.startswith("#1 file a.py 1-300, ")
    assert file.line.endswith("kept by the last compaction: 200-203")
    assert output.line.startswith("#2 $ pytest -q 1-2, ")
    assert output.line.endswith("kept by the last compaction")
    writer = Writer([f"<notes>\n{GOOD}\n</notes>\n<keep>\n#1 200-203\n</keep>"])
    second = await compact(writer, counter, request_of(talk))
    assert "\n".join(LINES[199:203]) in second.summary
    assert "1 failed" not in second.summary


async def test_what_the_person_always_keeps_outlasts_compactions_until_it_is_dropped(
    talk: Talk, counter: TokenCounter
) -> None:
    request = request_of(talk)
    ask = ask_of(request, counter=counter)
    marked = (Pick(ask.pieces[0], ((200, 203),), is_lasting=True),)
    request = replace(request, selection=Selection(marked=marked))
    for answer in (GOOD, GOOD, TOOL_CALL):  # notes alone, and no answer at all
        result = await compact(Writer([answer]), counter, request)
        assert "\n".join(LINES[199:203]) in result.summary
        talk.put(result.entry("threshold"))
        for number in range(20):
            talk.reply(f"another answer {number} " + "as it should be " * 40)
            talk.user(f"another question {number} " + "please look at this " * 30)
        request = request_of(talk)
    released = tuple(p for p in ask_of(request, counter=counter).pieces if p.is_lasting)
    assert len(released) == 1
    asked = replace(request, selection=Selection(released=released))
    result = await compact(Writer([GOOD]), counter, asked)
    assert LINES[200] not in result.summary


async def test_results_that_the_model_has_not_seen_stay_whole(
    talk: Talk, counter: TokenCounter
) -> None:
    call = ToolCall(id="new", name="bash", arguments={"command": "make"})
    talk.reply("", call)
    output = "\n".join(f"made part {number}" for number in range(80))
    talk.result(call, output)
    result = await compact(Writer([ANSWER]), counter, request_of(talk))
    talk.put(result.entry("threshold"))
    assert any(output in item.message.text for item in build_context(talk.path).messages)


async def test_the_newest_messages_do_not_repeat_lines_that_were_chosen(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("Please mend the parser.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    talk.tool("bash", {"command": "make"}, "\n".join(f"{n} built" for n in range(600)))
    old, new = "\n".join(LINES[100:130]), "\n".join(f"new_{n} = 1" for n in range(30))
    talk.tool("edit", {"path": "a.py", "old": old, "new": new}, "Edited.")
    talk.tool("read", {"path": "a.py"}, numbered([*LINES[:100], *new.split("\n"), *LINES[130:]]))
    talk.tool("edit", {"path": "a.py", "old": "new_29 = 1", "new": "new_29 = 2"}, "Edited.")
    for number in range(3):
        talk.reply(f"answer {number} " + "as it should be " * 20)
        talk.user(f"question {number}")
    request = replace(request_of(talk, target=9_000), occasion="threshold")
    (file,) = (p for p in ask_of(request, counter=counter).pieces if p.path == "a.py")
    answer = f"<notes>\n{GOOD}\n</notes>\n<keep>\n#{file.number} 1-300\n</keep>"
    result = await compact(Writer([answer]), counter, request)
    after = "\n".join(
        item.message.text for item in build_context(in_place(talk.path, result)).messages
    )
    for line in (LINES[0], LINES[299], "new_28 = 1"):
        assert after.count(f"{line}\n") == 1, line
    assert "a.py is shown in the summary" in after


async def test_beside_a_choice_the_newest_messages_take_no_more_than_their_share(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("Please mend the parser.")
    talk.tool(
        "read",
        {"path": "a.py"},
        numbered([f"{line}  # and so it stays as it is, and so it is" for line in LINES]),
    )
    for number in range(40):
        talk.reply(f"answer {number} " + "as it should be " * 90)
        talk.user(f"question {number}")
    request = replace(request_of(talk, target=9_000), occasion="threshold")
    (file,) = (p for p in ask_of(request, counter=counter).pieces if p.path == "a.py")
    sizes: list[int] = []
    for keep in ("1-240", "1-150", "1-2"):  # the last one says next to nothing
        answer = f"<notes>\n{GOOD}\n</notes>\n<keep>\n#{file.number} {keep}\n</keep>"
        result = await compact(Writer([answer, EMPTY]), counter, request)
        after = build_context(in_place(talk.path, result)).messages
        sizes.append(sum(item.message.text.startswith("answer") for item in after))
    full, most, lazy = sizes
    assert 0 < full == most < lazy / 4
