"""What each tier does to which message, told by small sessions."""

import base64

import pytest

from agent_tui.compaction.tiers.forms import keep_ends
from agent_tui.config import CompactionSettings
from agent_tui.messages import (
    AssistantMessage,
    FileTouches,
    ImageContent,
    JsonObject,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Carryover, CustomMessageEntry, Entry, MessageEntry
from agent_tui.tokens import ExactCounter, TokenCounter
from agent_tui.tools.edit import EditArguments
from agent_tui.tools.write import WriteArguments
from tests.compaction.compacting import edited, size
from tests.compaction.tiers.planning import Tier, planned, protected_ids, text_of
from tests.support.rows import each_row
from tests.support.talk import MODEL, Talk

KEEP_LITTLE = CompactionSettings(keep_recent_tokens=200, protected_messages=2)
LOG = "".join(f"{n:05d} compiling module number {n}\n" for n in range(1_000))
SOURCE = "".join(f"def function_{n}(value):\n    return value + {n}\n" for n in range(40))


def ended(talk: Talk) -> tuple[Entry, ...]:
    """The session with an end that takes all protection for itself."""
    talk.user("go on")
    talk.reply("All done.")
    return talk.path


def result_ids(path: tuple[Entry, ...], tool: str) -> list[str]:
    return [
        entry.id
        for entry in path
        if isinstance(entry, MessageEntry)
        and isinstance(entry.message, ToolResultMessage)
        and entry.message.tool_name == tool
    ]


def read(talk: Talk, text: str = SOURCE, **arguments: int | str) -> None:
    asked: JsonObject = {"path": "src/a.py", **arguments}
    talk.tool("read", asked, text, files=FileTouches(read=("/project/src/a.py",)))


def test_a_read_that_a_later_read_shows_again_becomes_a_pointer(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("read it twice")
    read(talk)
    talk.tool("Read", {"file_path": "/project/src/a.py"}, SOURCE, is_foreign=True)
    path = ended(talk)
    plan = planned(path, counter, up_to=0, settings=KEEP_LITTLE)
    first, second = result_ids(path, "read")[0], result_ids(path, "Read")[0]
    assert [edit.target_id for edit in plan.edits] == [first]
    pointer = text_of(edited(path, plan), first)
    assert second in pointer
    assert pointer.endswith(f"[recall {first}]")
    assert "\n" not in pointer


@each_row(
    ("earlier", "later", "is_superseded"),
    [
        ({}, {}, True),
        ({"offset": 5, "limit": 20}, {}, True),
        ({}, {"offset": 5, "limit": 20}, False),
        ({"offset": 5, "limit": 20}, {"offset": 1, "limit": 60}, True),
        ({"offset": 5, "limit": 20}, {"offset": 6, "limit": 60}, False),
        ({"offset": 30}, {"offset": 20}, True),
        ({"offset": 20}, {"offset": 30}, False),
    ],
)
def test_only_a_read_of_at_least_the_same_lines_supersedes(
    earlier: dict[str, int], later: dict[str, int], is_superseded: bool, counter: TokenCounter
) -> None:
    def shown(asked: dict[str, int]) -> str:
        first = asked.get("offset", 1)
        last = min(first + asked.get("limit", 200) - 1, 200)
        return "\n".join(f"{n}\tline {n} of the file, with words" for n in range(first, last + 1))

    talk = Talk()
    talk.user("read")
    read(talk, shown(earlier), **earlier)
    read(talk, shown(later), **later)
    path = ended(talk)
    plan = planned(path, counter, up_to=0, settings=KEEP_LITTLE)
    assert bool(plan.edits) is is_superseded


def test_a_later_read_that_failed_or_was_cut_short_supersedes_nothing(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("read")
    read(talk)
    talk.tool("read", {"path": "src/a.py"}, "no such file " * 50, is_error=True)
    cut = f"{SOURCE[:300]}\n[lines 1-12 of 80; use offset=13 for more]"
    talk.tool("read", {"path": "/project/src/a.py"}, cut, is_foreign=True)
    path = ended(talk)
    assert planned(path, counter, up_to=0, settings=KEEP_LITTLE).edits == ()


def test_the_same_output_of_the_same_command_stays_once(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("test")
    for command in ("pytest -q", "make", "pytest -q"):
        talk.tool("bash", {"command": command}, "12 passed in 0.1 s\n" * 30)
    path = ended(talk)
    plan = planned(path, counter, up_to=0, settings=KEEP_LITTLE)
    assert [edit.target_id for edit in plan.edits] == result_ids(path, "bash")[:1]


def test_display_only_messages_go_and_those_for_the_model_stay(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("hello")
    for name, display in (("shown", True), ("hidden", False)):
        entry = CustomMessageEntry(id=name, content=f"a note that is {name}", display=display)
        talk.entries.append(entry)
    path = ended(talk)
    plan = planned(path, counter, up_to=0, settings=KEEP_LITTLE)
    assert [(edit.target_id, edit.replacement) for edit in plan.edits] == [("shown", None)]


def test_thinking_goes_signed_or_not_and_text_and_calls_stay_in_order(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("think")
    thought = ThinkingContent(thinking="a long thought " * 20, signature="signed")
    call = ToolCall(id="c1", name="ls", arguments={"path": "."})
    for parts in ((thought, TextContent(text="So:"), call), (call, TextContent(text="And:"))):
        content = (*parts, thought)
        talk.message(
            lambda ms, content=content: AssistantMessage(
                content=content, provider="scripted", model=MODEL, timestamp=ms
            )
        )
        talk.result(call, "a.py")
    path = ended(talk)
    after = edited(path, planned(path, counter, up_to=0, settings=KEEP_LITTLE))
    kinds = [
        [part.type for part in item.message.content]
        for item in build_context(after).messages
        if isinstance(item.message, AssistantMessage)
    ]
    assert kinds == [["text", "toolCall"], ["toolCall", "text"], ["text"]]


def test_a_long_output_keeps_both_ends_and_says_how_much_went(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("build")
    talk.tool("bash", {"command": "make"}, LOG)
    path = ended(talk)
    plan = planned(path, counter, up_to=1, settings=KEEP_LITTLE)
    (entry_id,) = result_ids(path, "bash")
    text = text_of(edited(path, plan), entry_id)
    head, _, rest = text.partition("\n[... ")
    remark, _, tail = rest.partition("\n")
    assert LOG.startswith(head)
    assert LOG.endswith(tail)
    assert 180 <= counter.count_text(head) <= 280
    assert 180 <= counter.count_text(tail) <= 280
    assert remark.endswith(f"tokens left out ...] [recall {entry_id}]")
    left_out = int(remark.split()[0].replace(",", ""))
    assert left_out == pytest.approx(counter.count_text(LOG) - 500, rel=0.02)


@pytest.mark.parametrize("text", ["x" * 60_000, "字" * 9_000, "ab " * 9_000 + "字" * 4_000])
def test_a_single_huge_line_is_cut_too(text: str, counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("build")
    talk.tool("bash", {"command": "make"}, text)
    path = ended(talk)
    plan = planned(path, counter, up_to=1, settings=KEEP_LITTLE)
    cut = text_of(edited(path, plan), result_ids(path, "bash")[0])
    assert counter.count_text(cut) < 650
    assert cut.startswith(text[:50])
    assert cut.endswith(text[-50:])


def test_an_output_within_the_limit_is_left_alone_by_tier_1(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("read")
    read(talk)
    assert planned(ended(talk), counter, up_to=1, settings=KEEP_LITTLE).edits == ()


def test_cut_arguments_still_fit_their_tools(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("write")
    talk.tool("write", {"path": "src/a.py", "content": SOURCE}, "Created src/a.py.")
    talk.tool("edit", {"path": "src/a.py", "edits": [{"old": SOURCE, "new": LOG}]}, "Edited.")
    talk.tool("bash", {"command": f"cat > b.py <<'EOF'\n{SOURCE}EOF", "timeout": 5}, "")
    path = ended(talk)
    plan = planned(path, counter, up_to=1, settings=KEEP_LITTLE)
    calls = [
        call
        for item in build_context(edited(path, plan)).messages
        if isinstance(item.message, AssistantMessage)
        for call in item.message.tool_calls
    ]
    written = WriteArguments.model_validate(calls[0].arguments)
    assert written.path == "src/a.py"
    assert written.content.startswith("[... ")
    assert written.content.endswith("]")
    assert counter.count_text(written.content) < 30
    change = EditArguments.model_validate(calls[1].arguments).edits[0]
    assert "tokens left out" in change.old
    assert "tokens left out" in change.new
    assert calls[2].arguments["timeout"] == 5
    assert str(calls[2].arguments["command"]).startswith("[... ")


def test_a_giant_list_of_arguments_keeps_its_ends(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("many")
    talk.tool("delete", {"paths": [f"src/generated/file_{n}.py" for n in range(5_000)]}, "done")
    path = ended(talk)
    plan = planned(path, counter, up_to=1, settings=KEEP_LITTLE)
    assert plan.tokens_after < 500


def test_a_giant_paste_keeps_its_ends_and_every_rule(counter: TokenCounter) -> None:
    talk = Talk()
    rule = "You must never delete the migrations."
    pasted = f"It fails, see the log.\n\n{LOG}{rule}\n{LOG}\n\nPrefer small changes."
    dense = f"{'a1 b2 c3 ' * 270}. {rule} {'a1 b2 c3 ' * 3_000}"
    first, second = talk.user(pasted), talk.user(dense)
    talk.user(LOG[:4_000])
    path = ended(talk)
    plan = planned(path, counter, up_to=2, settings=KEEP_LITTLE)
    assert [(edit.target_id, edit.tier) for edit in plan.edits] == [(first.id, 1), (second.id, 1)]
    after = text_of(edited(path, plan), first.id)
    assert after.startswith("It fails, see the log.")
    assert after.endswith("Prefer small changes.")
    assert rule in text_of(edited(path, plan), second.id)


def test_what_was_typed_between_giant_pastes_stays(counter: TokenCounter) -> None:
    talk = Talk()
    typed = ("It fails.", "The tests are slow, so run one file.", "Begin.")
    text = f"\n{LOG * 2}\n".join(typed)
    said = talk.message(lambda ms: UserMessage(content=text, typed=typed, timestamp=ms))
    talk.user(LOG[:4_000])
    path = ended(talk)
    plan = planned(path, counter, up_to=2, settings=KEEP_LITTLE)
    after = text_of(edited(path, plan), said.id)
    assert all(part in after for part in typed)
    assert 1_500 < counter.count_text(after) < 2_300


def test_images_outlive_tier_1_and_become_words_in_tier_2(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("look")
    call = ToolCall(id="c1", name="read", arguments={"path": "a.png"})
    talk.reply("", call)
    image = ImageContent(data=base64.b64encode(b"pixels").decode(), mime_type="image/png")
    talk.message(
        lambda ms: ToolResultMessage(
            tool_call_id="c1",
            tool_name="read",
            content=(TextContent(text=LOG), image),
            timestamp=ms,
        )
    )
    path = ended(talk)
    tiers: tuple[tuple[Tier, bool], ...] = ((1, True), (2, False))
    for tier, has_image in tiers:
        plan = planned(path, counter, up_to=tier, settings=KEEP_LITTLE)
        results = [
            item.message
            for item in build_context(edited(path, plan)).messages
            if isinstance(item.message, ToolResultMessage)
        ]
        assert (image in results[0].content) is has_image


def test_old_outputs_become_lines_made_from_metadata(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("work")
    read(talk)
    talk.tool("Edit", {"file_path": "src/a.py"}, f"The file was updated.\n{SOURCE}")
    talk.tool("execute_bash", {"command": "cd /project && pytest -q"}, LOG, exit_code=0)
    failure = f"{LOG}E   ValueError: bad value\n[exit code 1]"
    talk.tool("bash", {"command": "pytest -x"}, failure, is_error=True, exit_code=1)
    talk.tool("grep", {"pattern": "def build", "path": "src"}, "src/a.py:3:def build():\n" * 30)
    path = ended(talk)
    after = edited(path, planned(path, counter, settings=KEEP_LITTLE))
    lines = {tool: text_of(after, result_ids(path, tool)[0]) for tool in _TOOLS}
    assert "(read src/a.py; edited since; 80 lines; def function_0(value):)" in lines["read"]
    assert "(Edit src/a.py; 81 lines; The file was updated.)" in lines["Edit"]
    assert "($ pytest -q; exit 0; 1,000 lines; 00000 compiling" in lines["execute_bash"]
    assert "($ pytest -x; exit 1; " in lines["bash"]
    assert "ValueError: bad value" in lines["bash"]
    assert "grep def build src; 30 lines; src/a.py:3:def build():" in lines["grep"]
    for tool, text in lines.items():
        assert text.endswith(f"[recall {result_ids(path, tool)[0]}]")
        assert "\n" not in text


_TOOLS = ("read", "Edit", "execute_bash", "bash", "grep")


def test_results_that_come_as_the_users_messages_are_described(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("<returncode>0</returncode> is what I see, why?")
    talk.reply("THOUGHT: I look.\n\n```bash\ncd /project && cat src/a.py\n```")
    observed = talk.user(f"<returncode>0</returncode>\n<output>\n{SOURCE}</output>")
    path = ended(talk)
    plan = planned(path, counter, settings=KEEP_LITTLE)
    assert [edit.target_id for edit in plan.edits] == [observed.id]
    line = text_of(edited(path, plan), observed.id)
    assert line.startswith("($ cat src/a.py; exit 0; ")
    assert "def function_0(value):" in line


def test_a_command_of_the_persons_keeps_its_text_and_a_line_of_output(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("look")
    ran = talk.bash("make all", LOG, exit_code=2)
    path = ended(talk)
    text = text_of(edited(path, planned(path, counter, settings=KEEP_LITTLE)), ran.id)
    assert text.startswith("$ make all\n($ make all; exit 2; ")
    assert len(text) < 500


def test_what_a_reply_says_on_the_way_is_shortened_and_an_answer_is_not(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("work")
    call = ToolCall(id="c1", name="ls", arguments={})
    noted = talk.reply(LOG, call)
    talk.result(call)
    answered = talk.reply(LOG)
    path = ended(talk)
    plan = planned(path, counter, settings=KEEP_LITTLE)
    assert [edit.target_id for edit in plan.edits] == [noted.id]
    assert text_of(edited(path, plan), answered.id) == LOG


def test_the_run_stops_at_the_target_and_takes_the_large_and_old_first(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("work")
    for number, length in enumerate((4_000, 24_000, 24_000, 4_000)):
        talk.tool("bash", {"command": f"make {number}"}, f"{number} {LOG}"[:length])
    path = ended(talk)
    ids = result_ids(path, "bash")
    whole, one = size(path, counter), counter.count_text(LOG[:24_000]) - 700
    plan = planned(path, counter, target=whole - one, settings=KEEP_LITTLE)
    assert [(edit.target_id, edit.tier) for edit in plan.edits] == [(ids[1], 1)]
    assert plan.tokens_after <= whole - one
    plan = planned(path, counter, target=whole - 2 * one, settings=KEEP_LITTLE)
    assert [edit.target_id for edit in plan.edits] == ids[1:3]


def test_a_later_batch_goes_on_where_the_first_one_stopped(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("work")
    talk.tool("bash", {"command": "make"}, LOG)
    path = ended(talk)
    first = edited(path, planned(path, counter, up_to=1, settings=KEEP_LITTLE))
    plan = planned(first, counter, settings=KEEP_LITTLE)
    whole = planned(path, counter, settings=KEEP_LITTLE)
    assert [edit.tier for edit in plan.edits] == [2]
    assert plan.edits[0].replacement == whole.edits[0].replacement
    assert plan.tokens_after == whole.tokens_after


def test_the_newest_results_and_the_last_request_are_protected_whatever_their_size(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    request = talk.user(LOG)
    for number in range(3):
        talk.tool("bash", {"command": f"make {number}"}, LOG)
    calls = [ToolCall(id=f"n{n}", name="bash", arguments={"command": "make"}) for n in range(2)]
    newest = talk.reply("Both.", *calls)
    results = [talk.result(call, LOG) for call in calls]
    protected = protected_ids(talk.path, counter, KEEP_LITTLE)
    assert protected == {request.id, newest.id, *(result.id for result in results)}


def test_a_protected_tail_over_the_target_has_its_outputs_shortened(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("work")
    call = ToolCall(id="n", name="bash", arguments={"command": SOURCE})
    reply = talk.reply("", call)
    result = talk.result(call, LOG)
    whole = size(talk.path, counter)
    plan = planned(talk.path, counter, target=2_000, settings=KEEP_LITTLE)
    assert [(edit.target_id, edit.tier) for edit in plan.edits] == [(result.id, 1)]
    assert text_of(edited(talk.path, plan), reply.id) == text_of(talk.path, reply.id)
    roomy = planned(talk.path, counter, target=whole, settings=KEEP_LITTLE)
    assert roomy.edits == ()
    assert planned(talk.path, counter, target=0, up_to=0, settings=KEEP_LITTLE).edits == ()


def test_an_empty_session_has_nothing_to_give(counter: TokenCounter) -> None:
    plan = planned((), counter)
    assert (plan.edits, plan.tokens_before, plan.tokens_after) == ((), 0, 0)


def test_changes_of_a_file_that_the_summary_shows_as_it_was_stay(counter: TokenCounter) -> None:
    summary = "<files-now>\n### src/a.py (changed; whole)\nold = 1\n</files-now>"
    talk = Talk()
    talk.user("change both")
    for path in ("/project/src/a.py", "/project/src/b.py"):
        talk.tool("write", {"path": path, "content": f"# {path}\n{SOURCE}"}, "Wrote.")
    carried = Carryover(lastSummary=summary)
    path = ended(talk)
    plan = planned(path, counter, settings=KEEP_LITTLE, previous=carried)
    after = str([item.message for item in build_context(edited(path, plan)).messages])
    assert "# /project/src/a.py" in after
    assert "# /project/src/b.py" not in after


def test_a_cut_within_a_line_falls_between_words() -> None:
    text = " ".join(f"sentence{n:04}" for n in range(400))
    counter = ExactCounter()
    tokens = counter.count_text(text)
    words = set(text.split())
    for end in range(20, 40):
        cut = keep_ends(text, tokens=tokens, end_tokens=end, entry_id="e", counter=counter)
        head, _, tail = cut.split("\n")
        assert {*head.split(), *tail.split()} <= words
