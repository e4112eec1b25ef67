import pytest

from agent_tui.compaction.summary.degeneration import is_echo, is_noise, is_repetitive, says_nothing
from agent_tui.compaction.summary.templates import SEVEN_SECTION, STRUCTURED, Template
from tests.support.rows import each_row


@each_row("body", ["", " \n", "(none)", "- None.", "N/A", "- [ ]", "1.", "...", "—"])
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


PROMPT = f"Copy exact paths, versions and messages.\n{STRUCTURED.form}"


@pytest.mark.parametrize("body", ["}]} }}}}]]}{}", "2022-01-22T09:39:32.15381Z", "1.1.3.0", ")"])
def test_brackets_dates_and_numbers_alone_are_noise(body: str):
    assert is_noise(body)


@each_row("body", ["", "(none)", "0 errors", "C++", "修复解析器 (a.py)", "x = 1"])
def test_few_letters_are_no_noise(body: str):
    assert not is_noise(body)


@pytest.mark.parametrize("template", [STRUCTURED, SEVEN_SECTION])
def test_the_form_given_back_is_an_echo(template: Template):
    for heading in template.headings:
        assert is_echo(template.guides[heading], template.form)


@pytest.mark.parametrize(
    "body",
    [
        "- **Decision**: Why, and which other options were laid out",
        "[insert the goal of the user here]\n- and one line",
        "...\n<what the user wants>",
        "Copy exact paths, versions and messages.",
    ],
)
def test_lines_of_the_prompt_and_placeholders_are_an_echo(body: str):
    assert is_echo(body, PROMPT)


@pytest.mark.parametrize(
    "body",
    [
        "- **pathlib**: the person prefers it",
        "- tests in tests/test_parser.py pass\n- [a note]\n- a third line",
        "1. Run the tests",
        "(none)",
    ],
)
def test_what_a_model_says_itself_is_no_echo(body: str):
    assert not is_echo(body, PROMPT)
