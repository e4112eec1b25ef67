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
    needed_next,
    open_errors,
    stated_rules,
    terms,
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


def test_terms_are_paths_and_identifiers_without_stop_words():
    assert terms("import parse_args from src/app/main.py if 12345") == {
        "parse_args",
        "src/app/main.py",
        "main",
    }


def test_needed_is_what_the_next_calls_name_and_unknown_where_fewer_follow():
    messages: list[Message] = [asked(1, "read", path="a/old.py"), asked(2, "bash", command="ruff")]
    assert needed_next(messages, 1, 1) == {"ruff"}
    assert needed_next(messages, 1, 2) is None


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
