from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.omissions import omission_mark, recall_mark
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.text_files import decode
from tests.support.rows import each_row
from tests.support.tool_calls import call_tool, intent_of

_SOURCE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


@pytest.fixture
def source(context: ToolContext, workspace: Path) -> Path:
    return _seen(context, workspace / "a.py", _SOURCE.encode())


def _seen(context: ToolContext, path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    context.files.seen[path] = digest_of(content)
    return path


def _edit(*pairs: tuple[str, str], **more: bool) -> JsonObject:
    return {"path": "a.py", "edits": [{"old": old, "new": new, **more} for old, new in pairs]}


async def test_several_edits_apply_at_once(context: ToolContext, source: Path):
    output = await call_tool(context, "edit", _edit(("return 2", "return 22"), ("f()", "h()")))
    assert source.read_text() == _SOURCE.replace("f()", "h()").replace("return 2", "return 22")
    assert output.for_person.summary == "+2 -2"
    assert output.for_model == "Edited a.py: 2 places, +2 -2 lines, at 1, 6."
    assert output.for_person.files.edited == (str(source),)


async def test_edits_are_matched_against_the_file_as_it_was(context: ToolContext, source: Path):
    await call_tool(context, "edit", _edit(("f()", "g2()"), ("g()", "f()")))
    assert "def g2():" in source.read_text()
    assert "def f():" in source.read_text()


async def test_one_bad_edit_leaves_the_file_alone(context: ToolContext, source: Path):
    with pytest.raises(ToolError, match=r"edits\[1\] is not in a.py"):
        await call_tool(context, "edit", _edit(("return 2", "return 3"), ("return 7", "x")))
    assert source.read_text() == _SOURCE


async def test_an_ambiguous_edit_names_the_lines(context: ToolContext, source: Path):
    with pytest.raises(ToolError, match=r"occurs 2 times in a.py, at lines 2, 6"):
        await call_tool(context, "edit", _edit(("return", "yield")))
    await call_tool(context, "edit", _edit(("return", "yield"), all=True))
    assert source.read_text().count("yield") == 2


async def test_an_empty_first_line_counts_among_the_lines_named(
    context: ToolContext, workspace: Path
):
    _seen(context, workspace / "a.py", b"\nx\nx\n")
    with pytest.raises(ToolError, match="at lines 2, 3"):
        await call_tool(context, "edit", _edit(("x", "y")))


@pytest.mark.parametrize(
    ("old", "advice"),
    [
        ("def f( ):\n    return 1", "Only whitespace within lines differs"),
        ("def F():\n    return 1", "Only upper and lower case differ"),
        ("def f():\n    return 1234", "Line 2 of the text you gave, '    return 1234', differs"),
        ("import numpy as np, pandas as pd, os, sys", "Nothing similar is in it"),
    ],
)
async def test_a_miss_shows_the_nearest_text_and_the_difference(
    context: ToolContext, source: Path, old: str, advice: str
):
    with pytest.raises(ToolError) as caught:
        await call_tool(context, "edit", _edit((old, "x")))
    assert advice in str(caught.value)
    if "Nothing" not in advice:
        assert "Nearest text, lines 1-2:\n1\tdef f():\n2\t    return 1" in str(caught.value)
    assert source.read_text() == _SOURCE


async def test_a_miss_of_one_line_shows_the_nearest_line(context: ToolContext, source: Path):
    with pytest.raises(ToolError, match=r"Nearest text, line 6:\n6\t    return 2"):
        await call_tool(context, "edit", _edit(("    return 2222", "x")))


async def test_a_miss_that_holds_a_mark_of_text_left_out_says_so(
    context: ToolContext, source: Path
):
    old = f"def f():\n{omission_mark('187 tokens')}\n    return 2"
    with pytest.raises(ToolError, match="placeholder for text left out of this"):
        await call_tool(context, "edit", _edit((old, "x")))


@pytest.mark.parametrize(
    ("old", "new", "after", "but_for"),
    [
        ("def f():  \n    return 1", "def f():\n    return 3", "3", "spaces at line ends"),
        ("1\tdef f():\n2\t    return 1", "def f():\n    return 3", "3", "line numbers"),
        ("1:def f():\n2:    return 1", "1:def f():\n2:    return 3", "3", "line numbers"),
        ("def f():\\n    return 1", "def f():\\n    return 3", "3", "extra backslashes"),
        ("def f():\n\treturn 1", "def f():\n\treturn 3", "3", "indentation"),
        ("def f():\n\treturn 1", "def f():\n    return 3", "3", "indentation"),
        ("def f():\n  return 1", "def f():\n  if 1:\n    return 3", None, "indentation"),
        ("def  f():\n    return  1", "def f():\n    return 3", "3", "spaces within lines"),
    ],
)
async def test_a_text_copied_with_small_slips_is_found_and_the_slips_are_not_written(
    context: ToolContext, source: Path, old: str, new: str, after: str | None, but_for: str
):
    output = await call_tool(context, "edit", _edit((old, new)))
    wanted = f"return {after}" if after else "if 1:\n        return 3"
    assert source.read_text() == _SOURCE.replace("return 1", wanted)
    assert f"at line 1, ignoring {but_for}" in output.for_model


@each_row(
    ("before", "old", "new", "after"),
    [
        ("x = “a” - b’s  \ny = 1\n", "x = \"a\" – b's\ny = 1", "x = \"a\" – b's\ny = 2",
         "x = “a” - b’s  \ny = 2\n"),
        ("say(\"it\")\n", "say(“it”)", "say(“it”, “now”)", 'say("it", "now")\n'),
        ("a… b\n", "a... b", "a... c", "a... c\n"),
        ("if x:\n\tf()\n", "if x:\n    f()", "if x:\n    f()\n    if y:\n        g()",
         "if x:\n\tf()\n\tif y:\n\t\tg()\n"),
        ("class A:\n    def f(self):\n        g()\n", "def f(self):\n    g()",
         "def f(self):\n    g()\n\ndef h(self):\n    g()",
         "class A:\n    def f(self):\n        g()\n\n    def h(self):\n        g()\n"),
        ("if a:\n  b()\n  if c:\n    d()\n", "if a:\n    b()\n    if c:\n        d()",
         "if a:\n    while e:\n        if c:\n            d()",
         "if a:\n  while e:\n    if c:\n      d()\n"),
        ("a\tb  c\nd\n", "a b c\nd", "a b c\ne", "a\tb  c\ne\n"),
        ('print("a\\n")\n', 'print(\\"a\\\\n\\")', 'print(\\"b\\\\n\\")', 'print("b\\n")\n'),
        ("say('a')\n", "say(\\'a\\')", "say('b\\n')", "say('b\\n')\n"),
    ],
)  # fmt: skip
async def test_what_new_repeats_stays_as_the_file_has_it(
    context: ToolContext, workspace: Path, before: str, old: str, new: str, after: str
):
    path = _seen(context, workspace / "a.py", before.encode())
    await call_tool(context, "edit", _edit((old, new)))
    assert path.read_text() == after


@pytest.mark.parametrize(
    ("before", "old"),
    [
        ("return10\n", "return "),  # blanks that are lost are at the end of a line in the file
        ("f(x)\n", "  x"),  # or at its beginning
        ("a\nb\n", "1\t"),
        ("a\nb\n", "   "),
        ("7\tx\n", "3\tx\n5\ty"),
    ],
)
async def test_no_slip_is_seen_where_there_is_another_text(
    context: ToolContext, workspace: Path, before: str, old: str
):
    path = _seen(context, workspace / "a.py", before.encode())
    with pytest.raises(ToolError, match=r"is not in a\.py"):
        await call_tool(context, "edit", _edit((old, "new")))
    assert path.read_text() == before


async def test_a_slip_that_fits_two_places_is_refused_with_their_lines(
    context: ToolContext, workspace: Path
):
    path = _seen(context, workspace / "a.py", b"if a:\n\tf()\nif a:\n        f()\n")
    with pytest.raises(ToolError, match=r"2 times in a\.py, ignoring indentation, at lines 1, 3"):
        await call_tool(context, "edit", _edit(("if a:\n    f()", "x")))
    await call_tool(context, "edit", _edit(("if a:\n    f()", "if a:\n    g()"), all=True))
    assert path.read_text() == "if a:\n\tg()\nif a:\n        g()\n"


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([("return 1", "return 1")], "old and new are the same"),
        ([("", "x")], "old is empty"),
        ([("f():\n    return", "x"), ("return 1", "y")], "overlap at line 2"),
        ([("1", "2"), ("2", "1")], None),
    ],
)
async def test_edits_that_make_no_sense_are_refused(
    context: ToolContext, source: Path, edits: list[tuple[str, str]], why: str | None
):
    if why is None:
        await call_tool(context, "edit", _edit(*edits))
        return
    with pytest.raises(ToolError, match=why):
        await call_tool(context, "edit", _edit(*edits))
    assert source.read_text() == _SOURCE


async def test_in_a_file_not_known_as_it_is_only_what_is_there_to_the_letter_is_edited(
    context: ToolContext, source: Path
):
    source.write_text(_SOURCE + "# more\n")
    for old, why in (
        ("return  1", "old is only in it ignoring spaces within lines. Read it first"),
        ("def h():", "old is not in a.py. Line 1 of the text"),
        ("return", "old occurs 2 times in a.py, at lines 2, 6"),
    ):
        with pytest.raises(ToolError, match=f"a.py has changed since you read it. {why}"):
            await call_tool(context, "edit", _edit((old, "return 3")))
    output = await call_tool(context, "edit", _edit(("def", "async def"), all=True))
    assert "2 places" in output.for_model
    source.write_text(_SOURCE + "# more\n")
    output = await call_tool(context, "edit", _edit(("return 1", "return 3")))
    assert "a.py has changed since you read it" in output.for_model
    again = await call_tool(context, "edit", _edit(("return 3", "return 4")))
    assert "changed since" not in again.for_model
    assert source.read_text() == _SOURCE.replace("return 1", "return 4") + "# more\n"
    context.files.seen.clear()
    output = await call_tool(context, "edit", _edit(("return 4", "return 5")))
    assert "read it" not in output.for_model  # a command has shown it: the text was right


async def test_edits_may_follow_each_other_without_reading_again(
    context: ToolContext, source: Path
):
    await call_tool(context, "edit", _edit(("return 1", "return 3")))
    await call_tool(context, "edit", _edit(("return 3", "return 4")))
    assert "return 4" in source.read_text()


async def test_line_endings_and_byte_order_mark_are_kept(context: ToolContext, workspace: Path):
    path = _seen(context, workspace / "a.py", b"\xef\xbb\xbfa\r\nb\r\nc\nd\r\n")
    output = await call_tool(context, "edit", _edit(("b\nc", "B\nX\nC")))
    assert output.for_person.summary == "+3 -2"  # lines that stay are no part of the change
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\nB\r\nX\r\nC\nd\r\n"


async def test_new_text_with_other_line_endings_gets_those_of_the_file(
    context: ToolContext, workspace: Path
):
    unix = _seen(context, workspace / "a.py", b"a\nb\nc\n")
    await call_tool(context, "edit", _edit(("b", "B\r\nX")))
    assert unix.read_bytes() == b"a\nB\nX\nc\n"
    windows = _seen(context, workspace / "a.py", b"a\r\nb\r\nc\r\n")
    await call_tool(context, "edit", _edit(("b", "B\r\nX")))
    assert windows.read_bytes() == b"a\r\nB\r\nX\r\nc\r\n"


async def test_the_encoding_is_kept_and_a_character_it_lacks_is_refused(
    context: ToolContext, workspace: Path
):
    text = "das ist käse und größe, überall schöne äpfel für jeden\n"
    path = _seen(context, workspace / "a.py", text.encode("cp1252"))
    await call_tool(context, "edit", _edit(("ist", "war")))
    assert path.read_bytes() == text.replace("ist", "war").encode("cp1252")
    with pytest.raises(ToolError, match="which cannot represent '漢'"):
        await call_tool(context, "edit", _edit(("war", "漢")))


async def test_a_mark_for_text_left_out_is_only_kept_where_it_stood(
    context: ToolContext, source: Path
):
    mark = f"{omission_mark('187 tokens')} {recall_mark('0000001a')}"
    with pytest.raises(ToolError, match=r"^new contains .*187 tokens left out"):
        await call_tool(context, "edit", _edit(("return 1", f"return 3\n{mark}")))
    assert source.read_text() == _SOURCE
    _seen(context, source, f"{mark}\nreturn 1\n".encode())
    await call_tool(context, "edit", _edit((f"{mark}\nreturn 1", f"{mark}\nreturn 3")))
    assert source.read_text() == f"{mark}\nreturn 3\n"


def test_the_intent_shows_the_diff_and_changes_nothing(context: ToolContext, source: Path):
    intent = intent_of(context, "edit", _edit(("return 1", "return 3")))
    assert intent.title == "edit a.py (+1 -1)"
    assert "-    return 1\n+    return 3" in intent.body
    assert source.read_text() == _SOURCE


@given(
    st.lists(st.sampled_from(["a", "b", "é", "\r\n", "\n", "\r"]), min_size=1, max_size=40),
    st.data(),
)
def test_replacing_keeps_every_byte_outside_the_span(pieces: list[str], data: st.DataObject):
    raw = "".join(pieces)
    file = decode(raw.encode())
    assert file is not None
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    changed = file.replace_spans([(start, end, "NEW")])
    before, _, after = changed.partition("NEW")
    assert raw.startswith(before)
    assert raw.endswith(after)
    assert before.replace("\r\n", "\n") == file.text[:start]
    assert after.replace("\r\n", "\n") == file.text[end:]
