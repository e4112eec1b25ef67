import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.tools.base import ToolContext
from agent_tui.tools.shorten import MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES, OutputLimits, output_limits
from tests.support.tool_calls import call_tool

_windows = st.integers(1, 2_000_000)


@given(window=_windows, more=st.integers(0, 10_000), calls=st.integers(1, 50))
def test_limits_grow_with_the_window_and_shrink_with_the_calls(window: int, more: int, calls: int):
    limits = output_limits(window, calls)
    assert 300 <= limits.max_bytes <= MAX_OUTPUT_BYTES
    assert 1 <= limits.max_lines <= MAX_OUTPUT_LINES
    assert output_limits(window + more, calls).max_bytes >= limits.max_bytes
    assert output_limits(window, calls + 1).max_bytes <= limits.max_bytes
    assert 2 * limits.max_line_chars <= limits.max_bytes


@given(window=st.integers(2_048, 2_000_000), calls=st.integers(1, 3))
def test_the_calls_of_one_reply_together_take_at_most_two_sevenths(window: int, calls: int):
    assert calls * output_limits(window, calls).max_bytes <= window * 4 * 2 // 7


@pytest.mark.parametrize("window", [0, 87_500, 1_000_000])
def test_large_and_unknown_windows_get_50_kb_and_2000_lines(window: int):
    limits = output_limits(window)
    assert (limits.max_bytes, limits.max_lines, limits.max_line_chars) == (50_000, 2_000, 2_000)
    assert limits == OutputLimits()


@pytest.fixture
def small(context: ToolContext) -> ToolContext:
    """For a window of 2,048 tokens: 1,170 bytes, 46 lines."""
    context.limits = output_limits(2_048)
    return context


async def test_a_file_read_in_parts_comes_back_whole(small: ToolContext, workspace: Path):
    lines = [f"def function_{number}():" for number in range(1, 151)]
    (workspace / "a.py").write_text("\n".join(lines))
    got: list[str] = []
    while len(got) < len(lines):
        output = await call_tool(small, "read", {"path": "a.py", "offset": len(got) + 1})
        assert len(output.for_model) < 1_170 + 130
        body = output.for_model.split("\n")
        if output.for_person.truncated:
            cap = "1,170 bytes or 46 lines a call: the window is 2,048 tokens"
            assert body[-1].endswith(f"; use offset={len(got) + len(body)} for more; cut at {cap}]")
            del body[-1]
        got += [line.partition("\t")[2] for line in body]
    assert got == lines


async def test_lines_asked_for_by_number_come_whole_where_the_context_has_room(
    context: ToolContext, workspace: Path
):
    (workspace / "a.py").write_text("def some_function_or_other(argument):\n" * 1_200)
    context.limits = output_limits(40_000, room_tokens=14_000)
    asked = {"path": "a.py", "offset": 101, "limit": 860}
    output = await call_tool(context, "read", asked)
    assert output.for_model.split("\n")[-2].startswith("960\tdef")
    assert output.for_model.endswith("\n[lines 101-960 of 1200; use offset=961 for more]")
    plain = await call_tool(context, "read", {"path": "a.py", "offset": 101})
    assert len(plain.for_model) < 23_100
    assert plain.for_model.endswith(
        "; cut at 22,857 bytes or 914 lines a call: the window is 40,000 tokens]"
    )
    context.limits = output_limits(40_000, room_tokens=9_000)
    cut = await call_tool(context, "read", asked)
    assert cut.for_model == plain.for_model


def test_what_the_first_calls_leave_is_for_those_that_follow():
    alone = output_limits(40_000).max_bytes
    share = output_limits(40_000, 4).max_bytes
    assert output_limits(40_000, 4, given_bytes=3_000, done=3).max_bytes == alone
    assert output_limits(40_000, 4, given_bytes=3 * share, done=3).max_bytes <= share + 3
    assert output_limits(40_000, 4, given_bytes=500_000, done=3).max_bytes == share


def test_a_range_may_fill_the_room_that_is_left_but_not_more():
    assert output_limits(40_000, 2, room_tokens=8_000).range_bytes == 12_000
    after_one = output_limits(40_000, 2, room_tokens=8_000, given_bytes=20_000, done=1)
    assert after_one.range_bytes == 4_000
    assert output_limits(40_000, room_tokens=100, given_bytes=9_000).range_bytes == 0


async def test_no_single_line_fills_a_small_window(small: ToolContext, workspace: Path):
    (workspace / "a.txt").write_text("x" * 5_000 + "\nafter\n")
    read = await call_tool(small, "read", {"path": "a.txt"})
    assert read.for_model == f"1\t{'x' * 292}… [+4708 characters]\n2\tafter"
    found = await call_tool(small, "grep", {"pattern": "xx"})
    assert len(found.for_model) < 400


async def test_every_tool_keeps_to_a_small_window(small: ToolContext, workspace: Path):
    for number in range(300):
        (workspace / f"file_{number:03}.txt").write_text("needle\n")
    for name, arguments, remark in (
        ("ls", {}, "more entries; use find with a pattern]"),
        ("find", {"pattern": "*.txt"}, "more; narrow the pattern]"),
        ("grep", {"pattern": "needle"}, "[first 200 matches; output cut; narrow the search]"),
        ("bash", {"command": "seq 5000"}, "[exit code 0]"),
    ):
        output = await call_tool(small, name, dict(arguments))
        assert len(output.for_model) < 1_170 + 200, name
        assert output.for_model.endswith(remark)
        assert output.for_person.truncated


async def test_of_a_long_output_the_ends_are_kept_and_the_whole_is_on_the_disk(small: ToolContext):
    output = await call_tool(small, "bash", {"command": "seq 5000"})
    lines = output.for_model.split("\n")
    assert lines[0] == "1"
    assert "5000" in lines
    (kept,) = small.output_dir.iterdir()
    assert kept.read_text().split() == [str(n) for n in range(1, 5_001)]
    cap = "1,170 bytes or 46 lines a call: the window is 2,048 tokens"
    rest = r"; read it with offset=(\d+) limit=(\d+) for the rest"
    note = re.fullmatch(rf"\[whole output: {kept}{rest}; cut at {cap}\]", lines[-2])
    assert note is not None
    first, count = int(note[1]), int(note[2])
    gap = lines.index(f"[... lines {first}-{first + count - 1} of 5000 left out ...]")
    assert (lines[gap - 1], lines[gap + 1]) == (str(first - 1), str(first + count))
