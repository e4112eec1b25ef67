from collections.abc import Callable

import pytest

from agent_tui.compaction.strategies.agent.checks import edits_problem, is_sendable, text_problem
from agent_tui.messages import TextContent
from agent_tui.sessions.entries import ContextEditEntry, Entry
from agent_tui.sessions.replay.normalise import ContextMessage
from agent_tui.tokens import TokenCounter
from tests.compaction.strategies.agent.scene import RULE, Scene
from tests.support.session_values import reply, result, user

ORIGINAL = (
    user("Look at src/parse.py and /srv/data/in.csv, then at https://example.org/docs.html"),
    reply("I have read src/parse.py line by line."),
)


@pytest.mark.parametrize(
    "text",
    [
        "It was asked to look at src/parse.py, which was read.",
        "parse.py was read, and so was ./src/parse.py.",
        "The table /srv/data/in.csv is next; see https://example.org/other.html for it.",
        "Either/or, and/or, 1/2, e.g. this: nothing of that is a path.",
        "Wie gewünscht wurde src/parse.py gelesen.",
    ],
)
def test_a_text_that_names_what_occurs_is_taken(text: str) -> None:
    assert text_problem(text, ORIGINAL, 400) == ""


@pytest.mark.parametrize(
    "path", ["src/lexer.py", "lib/parse.py", "/srv/data/out.csv", "/srv/other/folder", "a.toml"]
)
def test_a_path_that_does_not_occur_is_found(path: str) -> None:
    text = f"It was asked to look at src/parse.py and at {path} too."
    assert path in text_problem(text, ORIGINAL, 400)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it says nothing"),
        ("(none)", "it says nothing"),
        ("1 2 3 4 5 6 7 8 9", "it says nothing"),
        ("As an AI, I do not do that.", "it is a refusal"),
        ("It was read. " * 9, "it repeats itself"),
        ("All of it was read.", "5 words are too few for 4,000 tokens"),
    ],
)
def test_a_text_that_says_nothing_is_found(text: str, problem: str) -> None:
    assert text_problem(text, ORIGINAL, 4_000) == problem


def edit_of(target_id: str, replacement: str | None) -> ContextEditEntry:
    return ContextEditEntry(target_id=target_id, replacement=replacement, tier=3, batch="b")


def problem(counter: TokenCounter, edits: Callable[[tuple[Entry, ...]], list[ContextEditEntry]]):
    scene = Scene(counter, [])
    protected = frozenset(entry.id for entry in scene.path[-6:])
    return edits_problem(scene.request, edits(scene.path), protected)


def test_edits_that_keep_the_rest_pass(counter: TokenCounter) -> None:
    assert problem(counter, lambda path: []) == ""
    assert problem(counter, lambda path: [edit_of(path[2].id, "short")]) == ""
    assert problem(counter, lambda path: [edit_of(e.id, None) for e in path[:6]]) == ""


def test_an_edit_of_a_protected_message_is_found(counter: TokenCounter) -> None:
    found = problem(counter, lambda path: [edit_of(path[-1].id, "short")])
    assert found == "a protected message was changed"


def test_a_reply_left_out_without_its_result_is_found(counter: TokenCounter) -> None:
    found = problem(counter, lambda path: [edit_of(path[1].id, None)])
    assert found == "messages that had to stay unchanged were changed"


def test_a_rule_that_would_be_lost_is_found(counter: TokenCounter) -> None:
    assert problem(counter, lambda p: [edit_of(p[6].id, "x")]) == "one of your rules would be lost"
    assert problem(counter, lambda path: [edit_of(path[6].id, f"said: {RULE}")]) == ""


CALLS = reply("", ("c1", "read"), ("c2", "read"))
UNSENDABLE = [
    [],
    [reply("I begin.")],
    [user("go"), CALLS, result("c1")],
    [user("go"), CALLS, result("c2"), result("c1")],
    [user("go"), CALLS, result("c1"), user("wait"), result("c2")],
    [user("go"), result("c1")],
    [user("go"), reply(" ")],
    [user("go"), CALLS, result("c1"), result("c2"), CALLS, result("c1"), result("c2")],
]


@pytest.mark.parametrize("messages", UNSENDABLE)
def test_what_no_service_takes_is_not_sendable(messages: list) -> None:
    assert not is_sendable([ContextMessage("e", message) for message in messages])


def test_a_conversation_is_sendable() -> None:
    messages = [user("go"), CALLS, result("c1"), result("c2"), reply("Done."), reply("Really.")]
    assert is_sendable([ContextMessage("e", message) for message in messages])
    assert TextContent(text="Done.") in messages[4].content
