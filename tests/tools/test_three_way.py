import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.features.helpers.three_way import merge

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8).map(b"".join)


@given(LINES, LINES)
def test_a_change_on_one_side_is_taken_and_equal_changes_are_one(base: bytes, changed: bytes):
    assert merge(base, base, changed) == changed
    assert merge(base, changed, base) == changed
    assert merge(base, changed, changed) == changed


@given(LINES, LINES, LINES)
def test_neither_side_has_precedence(base: bytes, ours: bytes, theirs: bytes):
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


@given(LINES, LINES, LINES, LINES)
def test_changes_far_apart_are_both_made(head: bytes, tail: bytes, ours: bytes, theirs: bytes):
    middle = b"one\ntwo\nthree\n"
    merged = merge(head + middle + tail, ours + middle + tail, head + middle + theirs)
    assert merged == ours + middle + theirs


@settings(max_examples=40)
@given(base=LINES, ours=LINES, theirs=LINES)
def test_what_git_calls_a_conflict_is_one(
    tmp_path_factory: pytest.TempPathFactory, base: bytes, ours: bytes, theirs: bytes
):
    folder = tmp_path_factory.mktemp("merge")
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(text)
    argv = ["git", "merge-file", "-p", "--diff3", "ours", "base", "theirs"]
    done = subprocess.run(argv, cwd=folder, capture_output=True)
    merged = merge(base, ours, theirs)
    if done.returncode and ours != theirs:
        assert merged is None


def test_the_last_line_may_lack_its_end():
    assert merge(b"a\nb\nc\nd", b"A\nb\nc\nd", b"a\nb\nc\nD") == b"A\nb\nc\nD"


def test_a_long_text_changed_on_both_sides_is_left_to_the_user():
    lines = [b"%d\n" % number for number in range(10_000)]
    ours, theirs = [b"x\n", *lines], [*lines, b"y\n"]
    assert merge(b"".join(lines), b"".join(ours), b"".join(theirs)) is None
