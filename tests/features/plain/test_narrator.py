import io

from agent_tui.events import (
    AgentEvent,
    BashFinished,
    BashStarted,
    CompactionFinished,
    CompactionProgress,
    ContextWarning,
    CutReplyDropped,
    Notice,
    ReplyAwaited,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnRecorded,
    TurnStarted,
    UserMessageAdded,
)
from agent_tui.features.plain.narrator import Narrator
from agent_tui.features.plain.voice import FIRST_AFTER_S, LineWriter, Progress
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    TextContent,
    Todo,
    ToolDetails,
    ToolResultMessage,
    TurnFacts,
)
from agent_tui.tokens import ContextUsage

DIFF = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new\n"


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def told(
    *events: AgentEvent,
    typed: str = "",
    shows_thinking: bool = False,
) -> list[str]:
    out = io.StringIO()
    narrator = Narrator(LineWriter(out, lambda: ("s3cret",)), Progress(Clock()))
    narrator.shows_thinking = shows_thinking
    narrator.begin(typed)
    for event in events:
        narrator.tell(event)
    narrator.end()
    return out.getvalue().splitlines()


def reply(error: str | None = None) -> ReplyFinished:
    reason = "error" if error else "stop"
    return ReplyFinished("e1", AssistantMessage(stop_reason=reason, error_message=error))


def tool_ended(name: str, text: str, **details: object) -> ToolFinished:
    message = ToolResultMessage(
        tool_call_id="c1",
        tool_name=name,
        content=(TextContent(text=text),),
        is_error=text.startswith("Error"),
        details=ToolDetails.model_validate(details).model_dump(mode="json"),
    )
    return ToolFinished("e2", "c1", message)


def test_a_reply_has_a_speaker_and_is_what_the_model_wrote():
    assert told(
        TurnStarted(),
        UserMessageAdded("e0", "hello"),
        ReplyStarted("m"),
        TextDelta("\n\nHi. How"),
        TextDelta(" are you?\n- one\n"),
        reply(),
        TurnFinished("done"),
        typed="hello",
    ) == ["agent-tui: Hi. How are you?", "- one"]


def test_a_message_that_was_not_typed_at_the_prompt_is_told():
    assert told(UserMessageAdded("e0", "round two"), typed="hello") == ["You: round two"]


def test_thinking_is_told_only_if_wanted():
    events = (ThinkingDelta("Hm. Yes."), TextDelta("Yes."), reply())
    assert told(*events) == ["agent-tui: Yes."]
    assert told(*events, shows_thinking=True) == ["Thinking: Hm. Yes.", "agent-tui: Yes."]


def test_a_tool_call_is_one_line():
    started = ToolStarted("c1", "read", {}, "read a.py")
    assert told(started, tool_ended("read", "x", summary="6 lines")) == [
        "Tool read: a.py: 6 lines."
    ]
    failed = tool_ended("read", "Error: a.py does not exist.\nmore")
    assert told(started, failed) == ["Tool read failed: a.py: Error: a.py does not exist."]


def test_a_change_that_nobody_was_asked_about_is_told_in_words():
    started = ToolStarted("c1", "edit", {}, "edit a.py (+1 -1)")
    assert told(started, tool_ended("edit", "ok", summary="+1 -1", diff=DIFF)) == [
        "Tool edit: a.py (+1 -1).",
        "    a.py: 1 line added, 1 line removed.",
        "    Line 1 removed: old",
        "    Line 1 added: new",
    ]


def test_a_plan_is_told_when_it_has_changed():
    plan = (Todo(text="Read", status="completed"), Todo(text="Write", status="in_progress"))
    further = (plan[0], Todo(text="Write", status="completed"))
    lines = told(TodosChanged(plan), TodosChanged(plan), TodosChanged(further), TodosChanged(()))
    assert lines == [
        "Plan: 1 of 2 done. Now: Write.",
        "    [x] Read",
        "    [>] Write",
        "Plan: 2 of 2 done.",
    ]


def test_the_end_of_a_turn_is_told_in_a_sentence():
    facts = TurnFacts(elapsed_ms=125_000, changed=("a.py", "b.py"), more=3)
    lines = told(TurnRecorded("e", facts), TurnRecorded("e", TurnFacts(changed=("a.py",))))
    assert lines == ["Took 2m 05s; changed a.py, b.py +3.", "Changed a.py."]


def test_an_error_is_told_once_and_with_the_way_on():
    ended = TurnFinished("error", "The server is away.", can_continue=True)
    assert told(reply("The server is away."), ended) == [
        "Error: The server is away. /retry continues."
    ]
    assert told(ReplyDiscarded(), ended) == ["Error: The server is away. /retry continues."]


def test_why_it_is_tried_again_is_told_once():
    lines = told(
        RetryScheduled(1, 9, 2.0, "It is busy."),
        RetryScheduled(2, 9, 4.0, "It is busy."),
        RetryScheduled(3, 9, 8.0, "It is away."),
        RetryScheduled(1, 9, 2.0, "It is away."),
    )
    assert lines == [
        "It is busy. Retrying in 2s (2 of 10).",
        "Retrying in 4s (3 of 10).",
        "It is away. Retrying in 8s (4 of 10).",
        "It is away. Retrying in 2s (2 of 10).",
    ]


def test_what_no_longer_counts_is_told_where_it_was_read_already():
    assert told(ReplyDiscarded()) == []
    words = TextDelta("Hi.")
    assert "starting over" in told(words, ReplyDiscarded(was_shown=True))[1]


def test_a_reply_that_comes_by_several_tries_is_read_once():
    cut = AssistantMessage(content=(TextContent(text="The sky is "),), stop_reason="error")
    retry = RetryScheduled(1, 9, 2.0, "It broke off.")
    assert told(
        TurnStarted(),
        ReplyStarted("m"),
        TextDelta("The sky is "),
        ReplyFinished("e1", cut),
        retry,
        ReplyStarted("m"),
        TextDelta("The "),
        ReplyDiscarded(was_shown=True),
        retry,
        ReplyStarted("m"),
        TextDelta("The "),
        TextDelta("sky"),
        CutReplyDropped(("e1",)),
        TextDelta(" is blue."),
        reply(),
    ) == [
        "agent-tui: The sky is ",
        "It broke off. Retrying in 2s (2 of 10).",
        "It broke off. Retrying in 2s (2 of 10).",
        "agent-tui: blue.",
    ]


def test_what_else_happens_is_a_line_each():
    lines = told(
        RetryScheduled(1, 5, 2.0, "Too many requests."),
        CompactionProgress("summarising", 100),
        CompactionFinished("e", "manual", "s", 9_000, 2_000, "", is_fallback=True),
        Notice("info", "Saved."),
        TurnFinished("aborted", can_continue=True),
        TurnFinished("length"),
    )
    assert lines == [
        "Too many requests. Retrying in 2s (2 of 6).",
        "Context compacted from 9,000 to 2,000 tokens. The summary was written without a model.",
        "Saved.",
        "Stopped. /retry continues.",
        "The reply was cut off at the model's output limit.",
    ]


def test_lines_of_the_persons_command_come_as_they_are_whole():
    out = io.StringIO()
    narrator = Narrator(LineWriter(out, tuple), Progress(Clock()))
    narrator.tell(BashStarted("c1", "make"))
    narrator.tell(ToolOutputDelta("c1", "50%\r100%\none\ntw"))
    assert out.getvalue() == "100%\none\n"
    ended = BashExecutionMessage(command="make", output="whole", exit_code=2)
    narrator.tell(BashFinished("e1", "c1", ended))
    assert out.getvalue() == "100%\none\ntw\nThe command exited with code 2.\n"


def test_a_filling_context_is_told_of_where_the_person_can_do_something():
    usage = ContextUsage(81, 100, is_estimate=False)
    alone = (ContextWarning(usage, "warn", 85), ContextWarning(usage, "trigger", 85))
    by_itself = "Compacts automatically at 85%; /compact does it now."
    assert told(*alone) == [f"Context window 81% full. {by_itself}"]
    asked = (ContextWarning(usage, "warn"), ContextWarning(usage, "trigger"))
    assert told(*asked) == ["Context window 81% full. /compact frees space."] * 2


def test_long_work_is_told_of_while_nothing_else_comes():
    out, clock = io.StringIO(), Clock()
    narrator = Narrator(LineWriter(out, tuple), Progress(clock))
    clock.now_s = 100.0
    narrator.begin()
    narrator.tell(ToolStarted("c1", "bash", {}, "make all"))
    for clock.now_s in (100.0, 100.0 + FIRST_AFTER_S, 200.0):
        narrator.tick()
    assert out.getvalue() == "Running bash: make all\n"
    narrator.note_input()
    narrator.tell(ToolOutputDelta("c1", "abc"))
    narrator.tick()
    assert out.getvalue() == "Running bash: make all\n"


def test_nothing_steers_the_terminal_and_no_key_is_shown():
    lines = told(TextDelta("\x1b[2J\x9b1m\u202e s3cret"), reply(), Notice("info", "s3cret\x07"))
    assert "s3cret" not in "".join(lines)
    assert all(line.isprintable() for line in lines)


def test_words_that_are_long_in_coming_are_told():
    waits = (ReplyStarted("m"), ReplyAwaited(125.0, True), ReplyAwaited(185.0, False))
    assert told(*waits) == [
        "The model has been thinking for 2m 05s; its server is connected.",
        "No data from the model's server for 3m 05s. Still waiting.",
    ]
