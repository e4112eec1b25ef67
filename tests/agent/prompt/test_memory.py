import os
import stat
from pathlib import Path

import pytest

from agent_tui.agent.prompt.context_files import (
    ContextFile,
    add_line,
    own_file,
    project_file,
    why_not_obeyed,
    with_line,
)
from agent_tui.errors import ConfigError
from agent_tui.features.memory.changes import changes_on_disk, files_in_force
from agent_tui.permissions.trust import FolderTrust, TrustFile
from tests.support.rows import each_row


@pytest.fixture
def proj(tmp_path: Path) -> Path:
    made = tmp_path / "proj"
    (made / "src").mkdir(parents=True)
    (made / ".git").mkdir()
    return made


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@each_row(
    ("present", "text", "after"),
    [
        ("", "Use tabs.", "- Use tabs.\n"),
        ("\n\n", "Use tabs.", "- Use tabs.\n"),
        ("# Rules", "Use tabs.", "# Rules\n\n- Use tabs.\n"),
        ("# Rules\n\n- One.\n\n\n", "Two.", "# Rules\n\n- One.\n- Two.\n"),
        ("* One.\n", "- Two.", "* One.\n* Two.\n"),
        ("- One,\n  of two lines.\n", "Two.", "- One,\n  of two lines.\n\n- Two.\n"),
        ("```sh\nmake\n", "Two.", "```sh\nmake\n```\n\n- Two.\n"),
        ("~~~~\r\n- b", "Two.", "~~~~\r\n- b\r\n~~~~\r\n\r\n- Two.\r\n"),
        ("```\nmake\n```\n", "Two.", "```\nmake\n```\n\n- Two.\n"),
        ("a\r\n- b\r\n", "c", "a\r\n- b\r\n- c\r\n"),
        ("", " one\n two ", "- one two\n"),
        ("", "caf\udce9", "- caf\ufffd\n"),
    ],
)
def test_a_line_more_fits_in_with_those_that_are_there(present: str, text: str, after: str):
    assert with_line(present, text) == after


def test_a_file_that_is_not_there_is_made(tmp_path: Path):
    file = tmp_path / "config" / "AGENTS.md"
    add_line(file, "Be brief.")
    assert file.read_text() == "- Be brief.\n"
    assert names_in(file.parent) == ["AGENTS.md"]


def test_mode_and_links_of_a_file_stay(proj: Path):
    real = proj / "src" / "rules.md"
    real.write_text("# Rules\n")
    real.chmod(0o640)
    (proj / "AGENTS.md").symlink_to(real)
    add_line(proj / "AGENTS.md", "Be brief.")
    assert (proj / "AGENTS.md").is_symlink()
    assert real.read_text() == "# Rules\n\n- Be brief.\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_file_that_is_no_utf_8_is_left_as_it_is(proj: Path):
    (proj / "AGENTS.md").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError, match=r"AGENTS.md is not UTF-8 text. Edit it with /memory"):
        add_line(proj / "AGENTS.md", "x")
    assert (proj / "AGENTS.md").read_bytes() == b"caf\xe9"


@pytest.mark.parametrize("failing", ["fsync", "fchmod", "replace"])
def test_a_write_that_fails_leaves_the_file_and_nothing_else(
    proj: Path, failing: str, monkeypatch: pytest.MonkeyPatch
):
    (proj / "AGENTS.md").write_text("# Rules\n")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path if failing == "replace" else os, failing, refuse)
    with pytest.raises(ConfigError, match=r"AGENTS.md cannot be written: No space left"):
        add_line(proj / "AGENTS.md", "x")
    assert (proj / "AGENTS.md").read_text() == "# Rules\n"
    assert names_in(proj) == [".git", "AGENTS.md", "src"]


def test_what_another_program_wrote_meanwhile_is_not_written_over(
    proj: Path, monkeypatch: pytest.MonkeyPatch
):
    file = proj / "AGENTS.md"
    file.write_text("# Rules\n")
    synced = os.fsync

    def write_between(descriptor: int) -> None:
        file.write_text("# Theirs\n")
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", write_between)
    with pytest.raises(ConfigError, match=r"changed in the meantime; nothing was added. Try again"):
        add_line(file, "x")
    assert file.read_text() == "# Theirs\n"
    assert names_in(proj) == [".git", "AGENTS.md", "src"]


def test_the_project_s_file_is_the_nearest_one_or_the_first_at_the_root(proj: Path):
    assert project_file(proj / "src") == proj / "AGENTS.md"
    (proj / "CLAUDE.md").write_text("There.")
    assert project_file(proj / "src") == proj / "CLAUDE.md"
    (proj / "src" / "AGENTS.md").write_text("Near.")
    assert project_file(proj / "src") == proj / "src" / "AGENTS.md"
    assert own_file(proj) == proj / "CLAUDE.md"
    assert own_file(proj / "none") == proj / "none" / "AGENTS.md"


def test_why_a_project_s_file_would_not_be_obeyed(proj: Path, tmp_path: Path):
    trust = FolderTrust(TrustFile(tmp_path / "trust.json"), home=proj.parent)
    file = proj / "AGENTS.md"
    assert why_not_obeyed(file, trust) == ""  # the person is asked when it is there
    assert why_not_obeyed(proj.parent / "AGENTS.md", trust).endswith("too broad to be trusted")
    trust.decide(proj, "not trusted")
    assert why_not_obeyed(file, trust) == f"{proj} is not trusted"
    file.write_text("x")
    assert why_not_obeyed(file, trust) == "the folder is not trusted"
    trust.decide(proj, "trusted")
    assert why_not_obeyed(file, trust) == ""


def test_what_changed_since_it_was_read():
    a, b, c = (Path(name, "AGENTS.md") for name in "abc")
    before = (ContextFile(a, "one"), ContextFile(b, "two"))
    now = (ContextFile(a, "ONE"), ContextFile(c, "three"))
    assert changes_on_disk(before, now) == ((a, "changed"), (b, "gone"), (c, "new"))
    assert changes_on_disk(before, before) == ()


def test_sizes_are_counted_file_by_file():
    files = (ContextFile(Path("a"), "one"), ContextFile(Path("b"), "three"))
    assert [one.tokens for one in files_in_force(files, len)] == [3, 5]
