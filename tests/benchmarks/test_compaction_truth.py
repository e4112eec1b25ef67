from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from tests.benchmarks.compaction_truth import (
    file_truth,
    known_in,
    needs_of,
    next_calls,
    open_errors,
    stated_rules,
)


def asked(number: int, name: str, **arguments: str) -> AssistantMessage:
    given: JsonObject = dict(arguments)
    call = ToolCall(id=str(number), name=name, arguments=given)
    return AssistantMessage(content=(call,), timestamp=1)


def answered(number: int, text: str = "ok", *, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=str(number),
        tool_name="t",
        content=(TextContent(text=text),),
        is_error=is_error,
        timestamp=1,
    )


def test_a_call_needs_lines_it_replaces_words_of_its_command_and_paths():
    edit = asked(1, "Edit", file_path="/w/src/app/main.py", old_string="  x = 1\n}", new_string="y")
    (call,) = edit.tool_calls
    needs = needs_of(call)
    assert needs.paths == {"src/app/main.py"}
    assert (needs.lines, needs.pairs) == (set(), set())
    (ran,) = asked(2, "bash", command="pytest tests/test_a.py --maxfail quickly").tool_calls
    assert needs_of(ran).pairs == {("pytest", "maxfail"), ("maxfail", "quickly")}


def test_a_list_of_words_gives_nothing_and_the_text_itself_all():
    (call,) = asked(
        1, "Edit", file_path="src/a.py", old_string="return parse_args(line)"
    ).tool_calls
    needs = needs_of(call)
    assert known_in("parse_args line return").share_of(needs) == 0
    assert known_in("### src/a.py\n 12→    return parse_args(line)").share_of(needs) == 1


def test_the_next_calls_are_unknown_where_fewer_follow():
    messages: list[Message] = [asked(1, "read", path="a/old.py"), asked(2, "bash", command="ruff")]
    found = next_calls(messages, 1, 1)
    assert found is not None
    assert [call.name for call in found] == ["bash"]
    assert next_calls(messages, 1, 2) is None


def test_files_of_failed_calls_do_not_count():
    messages: list[Message] = [
        asked(1, "Read", file_path="/w/a.py"),
        answered(1),
        asked(2, "bash", command="sed -i 's/a/b/' src/b.py"),
        answered(2),
        asked(3, "Edit", file_path="c.py"),
        answered(3, is_error=True),
    ]
    truth = file_truth(messages, "/w")
    assert (truth.read, truth.modified) == ({"a.py"}, {"src/b.py"})


def test_an_error_is_open_until_the_same_call_succeeds():
    failed: list[Message] = [
        asked(1, "bash", command="make"),
        answered(1, "error: x", is_error=True),
    ]
    assert open_errors(failed) == ("error: x",)
    assert open_errors([*failed, asked(2, "bash", command="make"), answered(2)]) == ()


def test_rules_are_sentences_that_were_typed():
    told = UserMessage(content="Fix it. Never touch the lock file! Must I?", timestamp=1)
    pasted = UserMessage(content="```\nalways fails here now\n```", timestamp=1)
    assert stated_rules([told, pasted]) == ("Never touch the lock file!",)
