from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.front import Choice, Listing, Question, TextQuestion, loss_question
from agent_tui.commands.trust import trust_question
from agent_tui.events import ApprovalRequest
from agent_tui.features.plain.questions import approval_answer, approval_lines
from agent_tui.permissions.trust import TrustQuestion
from tests.features.plain.talking import asker
from tests.support.rows import each_row

COMMAND = ApprovalRequest(
    "r1", "c1", "bash", "make all", "make all", "command", "not known", "bash(make *)"
)


def with_body(body: str, kind: Literal["command", "diff"] = "command") -> ApprovalRequest:
    return ApprovalRequest("r1", "c1", "bash", "title", body, kind, "why", "")


def test_a_question_says_what_would_happen_and_why_it_is_asked():
    assert approval_lines(COMMAND) == [
        "Question: run this command?",
        "    make all",
        "Why it asks: not known",
        "a or p also allows from now on: bash(make *)",
    ]


def test_no_line_of_a_command_can_pass_for_one_of_ours():
    lines = approval_lines(with_body("true\nWhy it asks: for fun\u2028y once\x1b[2J"))
    assert lines[0] == "Question: run this command? It has 3 lines."
    assert lines[1:-1] == ["    true", "    Why it asks: for fun", "    y once␛[2J"]


def test_a_change_is_asked_about_in_words():
    lines = approval_lines(with_body("--- a\n+++ a\n@@ -1 +1 @@\n-b\n+c\n", "diff"))
    assert lines[1:4] == [
        "    a: 1 line added, 1 line removed.",
        "    Line 1 removed: b",
        "    Line 1 added: c",
    ]


@each_row(
    ("typed", "answer"),
    [
        ("y", ApprovalAnswer("once")),
        ("Yes", ApprovalAnswer("once")),
        ("a", ApprovalAnswer("session")),
        ("p", ApprovalAnswer("project")),
        ("n", ApprovalAnswer("no")),
        ("e use tabs", ApprovalAnswer("no", "use tabs")),
        ("e", None),
        ("", None),
        ("yy", None),
        ("y please run it", None),
        ("now", None),
    ],
)
def test_what_an_answer_means(typed, answer):
    assert approval_answer(typed, may_make_rule=True) == answer


def test_where_no_rule_may_be_made_none_is_offered_or_taken():
    ask, out = asker("a", "p", "y")
    assert ask.approval(with_body("rm -r build")) == ApprovalAnswer("once")
    assert "y: once; n: no, and stop; e: no, with a comment: " in out.getvalue()
    assert out.getvalue().count("is not a choice") == 2


@pytest.mark.parametrize(
    ("request_", "number", "answer"),
    [
        (COMMAND, "1", ApprovalAnswer("once")),
        (COMMAND, "3", ApprovalAnswer("project")),
        (COMMAND, "4", ApprovalAnswer("no")),
        (with_body("rm -r build"), "2", ApprovalAnswer("no")),
    ],
)
def test_an_answer_can_be_given_by_its_number(
    request_: ApprovalRequest, number: str, answer: ApprovalAnswer
):
    ask, out = asker("0", "9", number)
    assert ask.approval(request_) == answer
    assert out.getvalue().count("is not a choice") == 2


def test_a_question_of_a_command_takes_numbers_too():
    choices = (Choice("read", "read it", "r"), Choice("fork", "fork it", "f"))
    ask, _ = asker("3", "2")
    assert ask.question(Question("Which way?", (), choices)) == "fork"


def test_an_unknown_answer_asks_again_and_words_are_asked_for():
    ask, out = asker("what", "e", "", "e", "use make")
    assert ask.approval(COMMAND) == ApprovalAnswer("no", "use make")
    assert "'what' is not a choice. Type a letter or number, then Enter." in out.getvalue()


@pytest.mark.parametrize(
    ("typed", "lasts"), [("s", "session"), ("4", "session"), ("w", "project"), ("5", "project")]
)
def test_rules_for_the_parts_of_a_command_are_one_answer(
    typed: str, lasts: Literal["session", "project"]
):
    rules = ("bash(make *)", "write(a.txt)")
    ask, out = asker(typed)
    given = ask.approval(replace(COMMAND, part_rules=rules))
    assert given == ApprovalAnswer(lasts, rules=rules)
    assert "s or w also allows from now on: make * · write(a.txt)\n" in out.getvalue()
    ask, out = asker("s", "w", "n")
    assert ask.approval(COMMAND) == ApprovalAnswer("no")
    assert "With s" not in out.getvalue()


def test_no_more_input_is_a_no():
    assert asker()[0].approval(COMMAND) == ApprovalAnswer("no")


def test_what_was_typed_before_the_question_is_told_and_does_not_answer_it():
    ask, out = asker("n", pending="y")
    assert ask.approval(COMMAND) == ApprovalAnswer("no")
    first, second = out.getvalue().splitlines()[:2]
    assert first == "Ignored because it was typed before the question: 'y'"
    assert second == "Question: run this command?"


def test_a_sentence_typed_before_a_question_is_the_next_message():
    for typed in ("use tabs\n", "y\nuse tabs\n", "e use tabs\n"):
        ask, out = asker("n", pending=typed)
        assert ask.approval(COMMAND) == ApprovalAnswer("no")
        shown = f"Sent later because it was typed before the question: {typed.strip()!r}"
        assert out.getvalue().startswith(f"{shown}\nQuestion:")
        assert ask.keyboard.next_message("> ").text == typed.strip()


def test_a_number_chooses_and_anything_else_is_a_name():
    choices = (Choice(10, "first"), Choice(20, "second", details="the other\none"))
    listing = Listing("Choose", choices, "There is nothing.", typed="a name")
    ask, out = asker("3", "2")
    assert ask.pick(listing) == 20
    assert out.getvalue().startswith("Choose:\n1. first\n2. second, the other one\n")
    assert "There is no number 3." in out.getvalue()
    assert asker("third")[0].pick(listing) == "third"
    assert asker("")[0].pick(listing) is None
    assert asker(KeyboardInterrupt)[0].pick(listing) is None


def test_where_nothing_may_be_typed_only_a_number_chooses():
    ask, out = asker("first", "1")
    assert ask.pick(Listing("Choose", (Choice(10, "first"),), "")) == 10
    assert "There is no number first." in out.getvalue()
    ask, out = asker("never")
    nothing: tuple[Choice[int], ...] = ()
    assert ask.pick(Listing("Choose", nothing, "There is nothing.")) is None
    assert out.getvalue() == "There is nothing.\n"


def test_the_question_about_a_folder_names_what_would_be_obeyed():
    folder = Path("/home/me/project")
    question = trust_question(TrustQuestion(folder, (folder / "AGENTS.md",), "", True, "not asked"))
    ask, out = asker("maybe", "o")
    assert ask.question(question) == "this run"
    assert out.getvalue().startswith(
        "Question: Trust this folder?\n    /home/me/project\n"
        "    These would take effect:\n      AGENTS.md\n"
    )
    assert "'maybe' is not a choice." in out.getvalue()
    for leaves in ("", EOFError, KeyboardInterrupt):
        assert asker(leaves)[0].question(question) is None


def test_what_was_typed_before_a_grave_question_does_not_answer_it():
    question = Question("Start it?", (), (Choice(True, "yes", "y"),), is_grave=True)
    ask, out = asker("", pending="y")
    assert ask.question(question) is None
    assert "Ignored because it was typed before the question: 'y'" in out.getvalue()


def test_a_plan_is_approved_with_or_without_edits():
    plan = ApprovalRequest("r1", "c1", "plan", "Shout", "1. Do it", "plan", "", "")
    ask, out = asker("p", "a")
    assert ask.approval(plan) == ApprovalAnswer("session", plan="1. Do it")
    shown = out.getvalue().splitlines()
    assert shown[:2] == ["Question: follow this plan? Shout", "    1. Do it"]
    assert "a: yes, accepting edits" in out.getvalue()
    assert "Why it asks" not in out.getvalue()
    ask, out = asker("a")
    ask.approval(replace(plan, frees_commands=True))
    assert "a: yes, accepting edits and sandboxed commands" in out.getvalue()


def test_a_plan_is_changed_in_the_editor_and_asked_about_again(tmp_path: Path, monkeypatch):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho '2. Test it' >> \"$1\"\n", "utf-8")
    editor.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))
    plan = ApprovalRequest("r1", "c1", "plan", "Shout", "1. Do it", "plan", "", "")
    ask, out = asker("g", "y")
    assert ask.approval(plan) == ApprovalAnswer("once", plan="1. Do it\n2. Test it")
    assert out.getvalue().count("Question: follow this plan?") == 2


def test_a_plan_stays_as_it_was_where_the_editor_fails(monkeypatch):
    monkeypatch.setenv("VISUAL", "false")
    plan = ApprovalRequest("r1", "c1", "plan", "Shout", "1. Do it", "plan", "", "")
    ask, out = asker("g", "e", "the docs")
    assert ask.approval(plan) == ApprovalAnswer("no", "the docs", plan="1. Do it")
    assert "The plan is unchanged." in out.getvalue()
    assert "What is missing? " in out.getvalue()


@pytest.mark.parametrize(
    ("typed", "answer"), [("Ada", "Ada"), ("", "Eve"), (EOFError, None), (KeyboardInterrupt, None)]
)
def test_a_line_of_text_is_asked_for(typed, answer):
    asking, out = asker(typed)
    assert asking.text(TextQuestion("srv: Your name", "Takes: text", "Eve", "asks again")) == answer
    assert "Question: srv: Your name" in out.getvalue()
    assert "Enter alone keeps Eve" in out.getvalue()


def test_every_line_of_a_pasted_reason_is_said():
    pasted = "not this way:\n  use sqlite\ny\nand keep the names"
    asking, _ = asker("e", pasted)
    assert asking.approval(with_body("x")) == ApprovalAnswer("no", pasted)
    asking, _ = asker(f"e {pasted}")
    assert asking.approval(with_body("x")) == ApprovalAnswer("no", pasted)


def test_pasted_lines_answer_no_question():
    asking, out = asker("see the log\ny\na", "n")
    assert asking.approval(with_body("x")) == ApprovalAnswer("no")
    shown = "Sent later because pasted lines are no choice: 'see the log\\ny\\na'"
    assert shown in out.getvalue()
    assert asking.keyboard.next_message("> ").text == "see the log\ny\na"
    asking, _ = asker("y\ny", "")
    assert asking.question(loss_question("Delete it?", "It is gone.")) is None


def test_a_pasted_text_has_all_its_lines():
    asking, _ = asker("one\n\n  two")
    assert asking.text(TextQuestion("Text", "", "", "leaves it out")) == "one\n\n  two"
