import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.summary.degeneration import (
    PromptEcho,
    copied_sections,
    is_noise,
    is_repetitive,
    says_nothing,
    without_repetition,
)
from agent_tui.compaction.summary.prompts import prompt_words
from agent_tui.compaction.summary.templates import SEVEN_SECTION, STRUCTURED, Template


@pytest.mark.parametrize("body", ["", " \n", "(none)", "- None.", "N/A", "- [ ]", "1.", "...", "—"])
def test_a_body_can_say_nothing_in_many_ways(body: str):
    assert says_nothing(body)


@pytest.mark.parametrize("body", ["a", "- none of the tests pass", "修复解析器", "0 errors"])
def test_few_words_are_not_nothing(body: str):
    assert not says_nothing(body)


@pytest.mark.parametrize(
    "text",
    [
        "The user wants to create a new file. The user wants to create a new file.",
        "\n".join(["- [x] read the main file"] * 4),
        "they want to know how they will finish it, " * 12,
        "Alun, " + ", ".join(str(number) for number in range(14, 80)),
        "the next steps will have the next steps, and so on, and " * 8,
    ],
)
def test_what_goes_in_circles_is_a_loop(text: str):
    assert is_repetitive(text)


@pytest.mark.parametrize(
    "text",
    [
        "(none)\n(none)\n(none)",
        "\n".join(f"- [x] step {number} of the work is done" for number in range(50)),
        "\n".join(f"- `/home/me/project/src/core/part{number}.ts`" for number in range(50)),
        "1. Run the tests\n2. Push",
        "Fix the parser. Then fix the lexer.",
    ],
)
def test_lists_of_like_things_are_no_loop(text: str):
    assert not is_repetitive(text)


@pytest.mark.parametrize("body", ["}]} }}}}]]}{}", "2022-01-22T09:39:32.15381Z", "1.1.3.0", ")"])
def test_brackets_dates_and_numbers_alone_are_noise(body: str):
    assert is_noise(body)
    assert without_repetition({"## Goal": body}) == {"## Goal": ""}


@pytest.mark.parametrize("body", ["", "(none)", "0 errors", "C++", "修复解析器 (a.py)", "x = 1"])
def test_few_letters_are_no_noise(body: str):
    assert not is_noise(body)


def test_a_list_that_ends_in_a_loop_keeps_its_lines_once():
    steps = [f"{n}. do the thing called {name}" for n, name in enumerate("abcd", start=1)]
    body = "\n".join([*steps, *["9. do it again and again"] * 20])
    assert without_repetition({"## Next Steps": body, "## Goal": "so on and on. " * 9}) == {
        "## Next Steps": "\n".join([*steps, "9. do it again and again"]),
        "## Goal": "",
    }


def test_sections_in_nearly_the_same_words_are_copies():
    bodies = {
        "## Goal": "Make the parser faster for large files.",
        "### Done": "The task is done, so just start now, I am ready to start",
        "### Blocked": "The task is already finished, so just start now, I am ready to start",
        "## Next Steps": "1. Make the parser faster for very large files.",
        "## Critical Context": "The parser is in src/parser.py, which the task is about.",
        "## Key Decisions": "(none)",
    }
    assert copied_sections(bodies) == 2


@pytest.mark.parametrize("template", [STRUCTURED, SEVEN_SECTION])
def test_the_form_given_back_leaves_nothing(template: Template):
    echo = PromptEcho(prompt_words(template))
    for section in template.writable:
        assert echo.removed_from(section.guide) == ""


@pytest.mark.parametrize(
    "line",
    [
        "- **Decision**: Why",
        "[insert the goal of the user here]",
        "<what the user wants>",
        "...",
        "Copy file paths, identifiers, commands, versions, numbers and error messages exactly.",
        "Rule: keep the user's rules and corrections in their own words!",
    ],
)
def test_lines_of_the_prompt_and_placeholders_are_taken_out(line: str):
    echo = PromptEcho(prompt_words(STRUCTURED))
    assert echo.removed_from(f"- one\n{line}\n- two") == "- one\n- two"


@pytest.mark.parametrize(
    "line",
    [
        "- **pathlib**: the person prefers it",
        "<div>",
        "[x]",
        "- tests in tests/test_parser.py pass",
        "1. Run the tests",
        "(none)",
    ],
)
def test_lines_of_its_own_stay(line: str):
    assert PromptEcho(prompt_words(STRUCTURED)).removed_from(line) == line


@given(st.text(max_size=400))
def test_taking_loops_out_twice_changes_nothing(text: str):
    once = without_repetition({"": text})
    assert without_repetition(once) == once
