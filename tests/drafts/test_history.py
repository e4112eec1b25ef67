import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_tui.drafts import history as history_module
from agent_tui.drafts.draft import Draft
from agent_tui.drafts.history import HistoryWalk, PromptHistory


def test_the_file_is_private_and_read_again(tmp_path: Path):
    path = tmp_path / "project" / "history.jsonl"
    history = PromptHistory(path)
    history.add(Draft("one"))
    history.add(Draft("see [paste #1 +11 lines]", {1: "pasted"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = PromptHistory(path)
    again.load()
    assert again.drafts == (Draft("one"), Draft("see [paste #1 +11 lines]", {1: "pasted"}))


def test_a_text_sent_twice_is_kept_once_as_the_newest(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    history = PromptHistory(path)
    for text in ("one", "two", "one"):
        history.add(Draft(text))
    again = PromptHistory(path)
    again.load()
    assert (
        [draft.text for draft in again.drafts]
        == ["two", "one"]
        == [draft.text for draft in history.drafts]
    )


def test_damaged_lines_are_skipped(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"text": 3}\n\xff\xfe\n{"text": "also')
    history = PromptHistory(path)
    history.load()
    assert history.drafts == (Draft("good"),)


def test_what_was_sent_before_the_file_was_read_stays_newest(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"text": "old"}\n{"text": "fresh"}\n{"text": "older"}\n', encoding="utf-8")
    history = PromptHistory(path)
    history.add(Draft("fresh"))
    history.load()
    assert [draft.text for draft in history.drafts] == ["old", "older", "fresh"]


def test_the_file_is_shortened_when_it_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history_module, "MAX_DRAFTS", 50)
    path = tmp_path / "history.jsonl"
    lines = [f'{{"text": "prompt {n}"}}\n' for n in range(100)]
    path.write_text("".join(lines), encoding="utf-8")
    history = PromptHistory(path)
    history.load()
    assert len(history.drafts) == 50
    history.add(Draft("newest"))
    kept = path.read_text(encoding="utf-8").splitlines()
    assert len(kept) == 51
    assert "newest" in kept[-1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_large_pastes_do_not_make_the_file_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(history_module, "MAX_BYTES", 10_000)
    history = PromptHistory(tmp_path / "history.jsonl")
    for number in range(12):
        history.add(Draft(f"{number} [paste #1 2,000 chars]", {1: "x" * 2_000}))
    again = PromptHistory(tmp_path / "history.jsonl")
    again.load()
    assert len(again.drafts) == 12
    assert (tmp_path / "history.jsonl").stat().st_size <= 10_000
    again.load()
    assert [draft.text[:2] for draft in again.drafts][-4:] == ["8 ", "9 ", "10", "11"]


def test_a_line_that_was_cut_off_does_not_spoil_the_next_one(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"text": "one"}\n{"text": "half', encoding="utf-8")
    PromptHistory(path).add(Draft("two"))
    history = PromptHistory(path)
    history.load()
    assert [draft.text for draft in history.drafts] == ["one", "two"]


def test_several_programs_that_write_and_shorten_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(history_module, "MAX_DRAFTS", 400)
    path = tmp_path / "history.jsonl"

    def work(name: str) -> None:
        for number in range(20):
            own = PromptHistory(path)
            own.add(Draft(f"{name} {number}", {1: "x" * 5_000}))
            own._shorten(path)

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, "abcd"))
    history = PromptHistory(path)
    history.load()
    expected = {f"{name} {number}" for name in "abcd" for number in range(20)}
    assert {draft.text for draft in history.drafts} == expected


def test_a_walk_comes_back_to_the_draft_and_keeps_what_was_changed_on_the_way():
    walk = HistoryWalk([Draft("one"), Draft("two")], Draft("my draft"))
    assert walk.older(Draft("my draft")) == Draft("two")
    assert walk.older(Draft("two, changed")) == Draft("one")
    assert walk.older(Draft("one")) is None
    assert walk.newer(Draft("one")) == Draft("two, changed")
    assert walk.newer(Draft("two, changed")) == Draft("my draft")
    assert walk.newer(Draft("my draft")) is None


def test_only_what_a_line_editor_can_show_comes_back_in_one(tmp_path: Path):
    history = PromptHistory(tmp_path / "history.jsonl")
    for draft in (Draft("one"), Draft("[paste #1 ]", {1: "x"}), Draft("a\nb"), Draft("two")):
        history.add(draft)
    history.add(Draft("one"))
    assert history.single_lines == ["two", "one"]


def test_values_of_other_kinds_and_depths_are_skipped_and_a_missing_file_is_empty(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"text": 1}\n[]\n\xff\n' + b"[" * 100_000)
    history = PromptHistory(path)
    history.load()
    assert history.drafts == (Draft("good"),)
    missing = PromptHistory(tmp_path / "none")
    missing.load()
    assert missing.drafts == ()


def test_a_file_that_cannot_be_written_is_told_once_and_tried_again(tmp_path: Path):
    path = tmp_path / "project" / "history.jsonl"
    path.parent.write_text("")
    history = PromptHistory(path)
    with pytest.raises(FileExistsError):
        history.add(Draft("one"))
    history.add(Draft("two"))
    path.parent.unlink()
    history.add(Draft("three"))
    assert [draft.text for draft in history.drafts] == ["one", "two", "three"]
    again = PromptHistory(path)
    again.load()
    assert again.drafts == (Draft("three"),)
