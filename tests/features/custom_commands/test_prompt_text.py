import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.agent.prompt.prompt_files import MAX_FILE_BYTES, PromptFileError
from agent_tui.features.custom_commands.prompt_text import (
    PromptText,
    expand_prompt,
    parse_prompt_file,
)
from tests.support.rows import each_row


def parsed(text: str) -> PromptText:
    return parse_prompt_file(text.encode())


def test_a_plain_file_is_described_by_its_first_line():
    assert parsed("\n## Review  the diff\n\nBe strict.\n") == PromptText(
        "Review the diff", "", "## Review  the diff\n\nBe strict."
    )


def test_front_matter_describes_and_stays_out_of_the_body():
    said = parsed('---\ndescription: "Look: closely"\nargument-hint: <path>\n---\n\nReview $1.\n')
    assert said == PromptText("Look: closely", "<path>", "Review $1.")


def test_front_matter_of_other_agents_is_passed_over():
    said = parsed(
        "---\n# theirs\nallowed-tools:\n  - Bash(git:*)\n- Read\nmodel: x\n\ndescription: Mine\n"
        "---\nGo."
    )
    assert (said.description, said.body) == ("Mine", "Go.")


def test_a_file_with_places_says_that_it_takes_arguments():
    assert parsed("Review $ARGUMENTS now.").argument_hint == "[arguments]"
    assert parsed("It costs $10 or $ARGUMENTS_LIST.").argument_hint == ""


def test_windows_line_ends_and_a_byte_order_mark_are_no_matter():
    said = parse_prompt_file("\ufeff---\r\ndescription: Mine\r\n---\r\na\r\nb\r\n".encode())
    assert said == PromptText("Mine", "", "a\nb")


@pytest.mark.parametrize("mark", ["|", ">-", '"Look', "Look"])
def test_a_description_may_go_on_over_several_lines(mark: str):
    end = '"' * mark.startswith('"')
    said = parsed(
        f"---\nlicense: MIT\ndescription: {mark}\n  and   see\n\n  more: of it{end}\n---\nGo."
    )
    first = "Look " if "Look" in mark else ""
    assert said.description == f"{first}and see more: of it"


@each_row(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"---\ndescription: x\n---\n \n", "is empty"),
        (b"a\0b", "is binary"),
        (b"caf\xe9", r"is not UTF-8 text \(byte 3\)"),
        (b"x" * (MAX_FILE_BYTES + 1), "is larger than 100,000 bytes"),
        (b"---\ndescription: x\n", "no closing ---"),
        (b"---\njust words\n---\nGo.", "line 2: front matter must be key: value lines"),
        (b"---\ndescription: x\n- more\n---\nGo.", "line 3"),
        (b"---\ndescription: x\ndescription: y\n---\nGo.", "line 3: description appears twice"),
    ],
)
def test_what_cannot_be_used_says_why(data: bytes, why: str):
    with pytest.raises(PromptFileError, match=why):
        parse_prompt_file(data)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"---\n{text}".encode()))
def test_no_content_does_more_than_be_refused(data: bytes):
    with contextlib.suppress(PromptFileError):
        said = parse_prompt_file(data)
        assert said.body.strip()
        assert "\n" not in said.description


@each_row(
    ("body", "argument", "message"),
    [
        ("Review.", "", "Review."),
        ("Review.", "src only", "Review.\n\nsrc only"),
        ("Review $ARGUMENTS now.", "a  b", "Review a  b now."),
        ("Review $@ now.", "", "Review  now."),
        ("From $1 to $2$3.", 'a "b c"', "From a to b c."),
        ("$1: don't stop", "don't go", "don't: don't stop"),
        ("It costs $10, $0 or $HOME.", "", "It costs $10, $0 or $HOME."),
        ("Fix $ARGUMENTS_LIST.", "x", "Fix $ARGUMENTS_LIST.\n\nx"),
        ("Say $1", "$2 $ARGUMENTS", "Say $2"),
        ("Say $@", "$1 $@", "Say $1 $@"),
    ],
)
def test_what_is_put_in_its_place(body: str, argument: str, message: str):
    assert expand_prompt(body, argument) == message
