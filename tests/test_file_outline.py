"""The parts of a file are found by headings or by indentation."""

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.file_outline import block_around, outline, titles_above

BODY = ["    a = 1", "", "    if a:", "        a = 2", "    return a"]
CODE = [
    "import os",
    "",
    "class Reader:",
    "    def read(",
    "        self, path: str",
    "    ) -> str:",
    *(f"    {line}" for line in BODY),
    "",
    *(f"    value_{number} = {number}" for number in range(40)),
    "",
    "def write() -> int:",
    *BODY,
]


def everything(lines: list[str], first: int = 1) -> frozenset[int]:
    return frozenset(range(first, first + len(lines)))


def test_blocks_of_code_have_the_numbers_that_they_have_now() -> None:
    lines = [*CODE, "", "# the end"]
    assert outline("a.py", 11, lines, everything(lines, 11)) == (
        "13-62 class Reader",
        "14-21 def read(",
        "64-69 def write() -> int",
    )
    lines = CODE[:2] + CODE[2:12] * 8
    assert outline("a.py", 1, lines, everything(lines))[:2] == (
        "3-11 class Reader",
        "13-21 class Reader",
    )


def test_a_brace_belongs_to_the_block_that_it_ends() -> None:
    lines = [
        "func Read(",
        "\tpath string,",
        ") error {",
        "\tif path {",
        "\t\treturn nil",
        "\t}",
        "}",
    ]
    assert outline("a.go", 1, lines, everything(lines)) == ("1-7 func Read(",)


def test_a_large_block_is_divided_and_a_small_one_is_not() -> None:
    loop = ["    for a in b:", *(f"        c_{number}()" for number in range(9))]
    small, large = ["def small():", *loop], ["def large():", *loop * 5]
    lines = [*small, *large]
    assert outline("a.py", 1, lines, everything(lines))[:3] == (
        "1-11 def small()",
        "12-62 def large()",
        "13-22 for a in b",
    )


def test_markdown_has_headings_and_not_those_in_examples() -> None:
    part = ["text", "```", "# no heading", "```", "- item", "  - item", "    more", ""]
    lines = ["# Plan", "", "## One", *part, "## Two #2", *part, *part]
    assert outline("docs/plan.md", 1, lines, everything(lines)) == ("1-27 # Plan",)
    lines *= 2
    assert outline("docs/plan.md", 1, lines, everything(lines)) == ("1-27 # Plan", "29-55 # Plan")


def test_parts_that_are_known_are_left_out() -> None:
    assert outline("a.py", 1, CODE, frozenset({56})) == ("54-59 def write() -> int",)
    assert outline("a.py", 1, CODE, frozenset()) == ()


@given(st.lists(st.text("ab {}()\t#\n", max_size=12), max_size=80), st.booleans())
def test_parts_are_in_order_and_inside_of_the_file(lines: list[str], is_markdown: bool) -> None:
    name = "a.md" if is_markdown else "a.py"
    spans = [
        part.split(" ")[0].split("-") for part in outline(name, 5, lines, everything(lines, 5))
    ]
    starts = [int(start) for start, _ in spans]
    assert starts == sorted(starts)
    assert all(5 <= int(start) < int(end) < 5 + len(lines) for start, end in spans)


def test_a_line_is_inside_of_the_blocks_that_began_above_it() -> None:
    assert (
        titles_above("a.py", CODE, CODE.index("            a = 2"), set())
        == "class Reader: > def read("
    )
    assert titles_above("a.py", CODE, 2, set()) == titles_above("a.py", CODE, 0, set()) == ""
    assert titles_above("a.py", CODE, 1, set()) == ""  # the next line begins the class
    assert titles_above("a.py", CODE, 5, set()) == "class Reader: > def read("
    seen = {2}
    assert titles_above("a.py", CODE, 5, seen) == "def read("
    assert seen == {2, 3}
    guide = ["# Guide", "text", "## Setup", "text", "```", "# a comment", "```", "more"]
    assert titles_above("a.md", guide, 7, set()) == "# Guide > ## Setup"
    assert titles_above("a.md", guide, 2, set()) == "# Guide"


def test_the_block_around_lines_is_the_largest_that_is_not_too_large() -> None:
    body = CODE.index("        a = 1")
    assert block_around("a.py", CODE, body, body, 10) == (3, 10)
    assert block_around("a.py", CODE, body, body, 60) == (2, 51)
    assert block_around("a.py", CODE, body, body, 2) == (body, body)
    assert block_around("a.py", CODE, 3, 20, 10) == (3, 20)
    last = CODE.index("def write() -> int:")
    assert block_around("a.py", CODE, last, last, 10) == (last, len(CODE) - 1)


@given(st.lists(st.sampled_from(["", "a:", "  b:", "    c", "  )", "# d"])), st.data())
def test_a_block_around_lines_has_them(lines: list[str], data: st.DataObject) -> None:
    last = data.draw(st.integers(0, max(len(lines) - 1, 0)))
    first = data.draw(st.integers(0, last))
    titles_above("a.py", lines, first, set())
    start, end = block_around("a.py", lines, first, last, 5)
    assert start <= first <= last <= end
    assert (start, end) == (first, last) or end < min(len(lines), start + 5)
