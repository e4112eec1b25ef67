"""The state of a file is read and restored where it was judged, whatever becomes of its folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.sessions.file.kept_files import KeptFiles, digest_of
from agent_tui.sessions.replay.file_changes import FileVersion
from agent_tui.tools.files.versions import FILE, LINK, make_so, text_of_version, version_of


@pytest.fixture
def swap(tmp_path: Path) -> Callable[[], None]:
    """Puts a link to another folder in the place of ``sub``, as a background job might."""
    for name in ("sub", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)

    def swap() -> None:
        (tmp_path / "sub").rename(tmp_path / "was")
        (tmp_path / "sub").symlink_to(tmp_path / "outside")

    return swap


def test_what_is_behind_a_link_does_not_exist(tmp_path: Path, swap: Callable[[], None]):
    path, kept = tmp_path / "sub/a", KeptFiles(tmp_path / "kept")
    before = version_of(path, kept)
    assert text_of_version(before, path) == "sub"
    swap()
    assert version_of(path, kept) == FileVersion()
    assert text_of_version(before, path) is None
    assert kept.content(digest_of(b"outside")) is None


@pytest.mark.parametrize("mode", [FILE, LINK])
def test_a_link_that_comes_while_a_file_is_restored_leads_to_no_other(
    tmp_path: Path, swap: Callable[[], None], mode: int, monkeypatch: pytest.MonkeyPatch
):
    path, kept = tmp_path / "sub/a", KeptFiles(tmp_path / "kept")
    wanted = FileVersion(digest=digest_of(b"x"), mode=mode, is_kept=kept.keep(b"x"))
    content = kept.content

    def swapped(digest: str) -> bytes | None:
        swap()
        return content(digest)

    monkeypatch.setattr(kept, "content", swapped)
    with pytest.raises(OSError, match="Not a directory"):
        make_so(path, wanted, kept)
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["a"]
    assert (tmp_path / "outside/a").read_text() == "outside"
