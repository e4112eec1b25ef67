"""The unsent draft in its file: private, whole, for one program at a time."""

import stat
from pathlib import Path
from threading import Event, Thread

import pytest

from agent_tui.drafts import kept_drafts
from agent_tui.drafts.draft import Draft, DraftImage
from agent_tui.drafts.kept_drafts import MOST_CHARS, KeptDraft, draft_file, take_left_draft
from agent_tui.tools.files.images import ImageFile

PASTED = Draft("see [paste #1 +99 lines] now", {1: "line\n" * 100})


def leave(session: Path, draft: Draft) -> None:
    """Keep `draft` as a program that is killed then."""
    kept = KeptDraft()
    kept.write(draft, session)
    kept.release()


def test_a_left_draft_is_whole_and_private(tmp_path: Path):
    session = tmp_path / "folder" / "s.jsonl"
    leave(session, PASTED)
    assert take_left_draft(session) == (PASTED, draft_file(session))
    assert stat.S_IMODE(draft_file(session).stat().st_mode) == 0o600
    assert not session.exists()
    assert [path.name for path in session.parent.iterdir()] == ["s.draft"]


def test_an_image_is_kept_as_a_mention(tmp_path: Path):
    image = ImageFile("shot.png", "image/png", "AAAA", 1, 1)
    leave(
        tmp_path / "s.jsonl", Draft("[image #1 shot.png 1x1]", {}, {1: DraftImage("a.png", image)})
    )
    left = take_left_draft(tmp_path / "s.jsonl")
    assert left is not None
    assert left[0] == Draft('@"a.png"')


def test_pastes_that_are_too_large_are_named(tmp_path: Path):
    draft = Draft("[paste #1 +1 lines] [paste #2 +1 lines]", {1: "x" * MOST_CHARS, 2: "y\n"})
    leave(tmp_path / "s.jsonl", draft)
    left = take_left_draft(tmp_path / "s.jsonl")
    assert left is not None
    assert left[0] == Draft(
        "(8,000,000 pasted characters: not kept) [paste #2 +1 lines]", {2: "y\n"}
    )


def test_only_marks_of_pastes_that_are_not_kept_are_replaced(tmp_path: Path):
    others = "[image #1 a.png 1x1] [paste #9 +1 lines]"
    text = f"[paste #1 +1 lines] {others} [paste #2 +1 lines]"
    large = "x" * (MOST_CHARS + 1)
    leave(tmp_path / "s.jsonl", Draft(text, {1: large, 2: large, 3: "y"}))
    left = take_left_draft(tmp_path / "s.jsonl")
    assert left is not None
    gone = "(8,000,001 pasted characters: not kept)"
    assert left[0] == Draft(f"{gone} {others} {gone}", {3: "y"})


def test_a_draft_that_is_removed_while_it_is_written_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    replace, begun, go_on = kept_drafts.replace_private_file, Event(), Event()

    def replace_slowly(path: Path, content: bytes) -> None:
        begun.set()
        go_on.wait()
        replace(path, content)

    kept = KeptDraft()
    monkeypatch.setattr(kept_drafts, "replace_private_file", replace_slowly)
    writes = Thread(target=kept.write, args=(PASTED, tmp_path / "s.jsonl"))
    removes = Thread(target=kept.remove)
    writes.start()
    begun.wait()
    removes.start()
    removes.join(0.05)  # it ends at once only if it does not wait for its turn
    go_on.set()
    writes.join()
    removes.join()
    assert list(tmp_path.iterdir()) == []


def test_a_draft_whose_file_is_gone_is_removed(tmp_path: Path):
    kept = KeptDraft()
    kept.write(PASTED, tmp_path / "s.jsonl")
    draft_file(tmp_path / "s.jsonl").unlink()
    kept.remove()
    assert not kept.is_there


def test_a_draft_in_a_running_program_is_not_taken(tmp_path: Path):
    kept = KeptDraft()
    kept.write(PASTED, tmp_path / "s.jsonl")
    assert take_left_draft(tmp_path / "s.jsonl") is None
    assert take_left_draft(tmp_path / "other.jsonl", of_folder=True) is None
    KeptDraft().write(Draft("from elsewhere"), tmp_path / "s.jsonl")
    kept.release()
    assert take_left_draft(tmp_path / "s.jsonl") == (PASTED, tmp_path / "s.draft")


def test_one_program_keeps_one_draft(tmp_path: Path):
    kept = KeptDraft()
    kept.write(PASTED, tmp_path / "s.jsonl")
    kept.write(PASTED, tmp_path / "t.jsonl")
    assert not draft_file(tmp_path / "s.jsonl").exists()
    kept.remove()
    assert not kept.is_there
    assert list(tmp_path.iterdir()) == []


def test_a_folder_gives_its_newest_draft_and_skips_what_is_none(tmp_path: Path):
    leave(tmp_path / "s.jsonl", Draft("older"))
    leave(tmp_path / "t.jsonl", Draft("newer"))
    (tmp_path / "u.draft").write_text("[]")
    (tmp_path / "v.draft").symlink_to("nowhere")
    leave(tmp_path / ".hidden.jsonl", Draft("a file that is being written"))
    left = take_left_draft(tmp_path / "new.jsonl", of_folder=True)
    assert left is not None
    assert left[0] == Draft("newer")
    assert take_left_draft(tmp_path / "new.jsonl") is None
    assert take_left_draft(tmp_path / "u.jsonl") is None
    assert take_left_draft(tmp_path / "no folder" / "u.jsonl", of_folder=True) is None
