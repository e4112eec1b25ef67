import os
from pathlib import Path

import pytest

from agent_tui.agent.prompt.prompt_files import MAX_FILE_BYTES
from agent_tui.errors import ConfigError
from agent_tui.features.custom_commands.library import (
    MAX_DEPTH,
    MAX_FILES,
    FoundPrompts,
    LeftOut,
    PromptLibrary,
)
from agent_tui.permissions.trust import FolderTrust, TrustFile


class Place:
    """A person's folder, a repository with prompt files, and the library of both."""

    def __init__(self, root: Path) -> None:
        self.user = root / "config"
        self.proj = root / "proj"
        self.src = self.proj / "src"
        (self.proj / ".git").mkdir(parents=True)
        self.src.mkdir()
        self.trust = FolderTrust(TrustFile(root / "trust.json"))
        self.library = PromptLibrary(self.user, self.trust, frozenset({"compact"}))

    def write(self, folder: Path, name: str, content: str | bytes = "Do it.") -> Path:
        own = "commands" if folder == self.user else ".agent-tui/commands"
        path = folder / own / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def look(self) -> FoundPrompts:
        return self.library.find(self.src)

    def message(self, name: str, argument: str = "") -> str | None:
        return self.library.message(name, argument, self.src)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.trust.decide(made.proj, "trusted")
    return made


def names(found: FoundPrompts) -> list[str]:
    return [f"{file.source} {file.name}" for file in found.files]


def reasons(found: FoundPrompts) -> dict[str, str]:
    return {one.path.name: one.why for one in found.left_out}


def test_files_of_the_person_and_the_project_are_commands_named_by_their_folders(place: Place):
    place.write(place.user, "Review.md", "---\ndescription: Look\n---\nReview $1.")
    place.write(place.proj, "git/commit.md")
    place.write(place.src, "a/b/c/deep.md")
    place.write(place.user, ".hidden.md")
    place.write(place.user, "notes.txt")
    found = place.look()
    assert names(found) == ["project a:b:c:deep", "project git:commit", "user review"]
    assert found.left_out == ()
    assert (review := found.find_file("REVIEW")) is not None
    assert (review.description, review.argument_hint) == ("Look", "[arguments]")
    assert place.message("review", "src") == "Review src."


def test_nowhere_to_look_is_no_fault(place: Place):
    assert place.look() == FoundPrompts()


@pytest.mark.parametrize("decision", [None, "not trusted"])
def test_nothing_of_a_project_that_is_not_trusted_is_listed_or_read(
    tmp_path: Path, decision, monkeypatch: pytest.MonkeyPatch
):
    place = Place(tmp_path)
    if decision:
        place.trust.decide(place.proj, decision)
    place.write(place.proj, "review.md", b"\0")
    place.write(place.user, "mine.md")
    listed: list[Path] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    found = place.look()
    assert names(found) == ["user mine"]
    assert found.left_out == ()
    file = place.proj / ".agent-tui/commands/review.md"
    why = "is ignored: the folder is not trusted. /trust changes that"
    assert place.library.find_withheld("review", place.proj) == LeftOut(file, why, "review")
    assert place.library.find_withheld("mine", place.proj) is None
    assert listed == [place.user / "commands", place.user / "skills"]


def test_trust_that_is_taken_back_takes_the_commands_along(place: Place):
    place.write(place.proj, "review.md")
    assert place.message("review") == "Do it."
    place.trust.decide(place.proj, "not trusted")
    assert place.message("review") is None


def test_the_program_wins_over_files_the_project_over_the_person_and_the_nearest_over_all(
    place: Place,
):
    place.write(place.proj, "compact.md")
    place.write(place.user, "review.md", "Mine.")
    place.write(place.proj, "review.md", "Root's.")
    place.write(place.src, "review.md", "Near.")
    found = place.look()
    assert names(found) == ["project review"]
    assert place.message("review") == "Near."
    assert [(one.name, one.why) for one in found.left_out] == [
        ("compact", "is ignored: /compact is a built-in command"),
        ("review", "is overridden by /review of this project"),
        ("review", "is overridden by /review of a nearer folder"),
    ]


def test_one_bad_file_hides_no_other(place: Place):
    place.write(place.user, "big.md", b"x" * (MAX_FILE_BYTES + 1))
    place.write(place.user, "binary.md", b"\0")
    place.write(place.user, "latin.md", b"caf\xe9")
    place.write(place.user, "two words.md")
    place.write(place.user, "REVIEW.md")
    place.write(place.user, "review.md")
    place.write(place.user, "front.md", "---\nno end")
    os.mkfifo(place.user / "commands" / "pipe.md")
    (place.user / "commands" / "round.md").symlink_to("round.md")
    found = place.look()
    assert names(found) == ["user review"]
    assert reasons(found) == {
        "big.md": "is larger than 100,000 bytes",
        "binary.md": "is binary, not text",
        "latin.md": "is not UTF-8 text (byte 3)",
        "front.md": "begins with --- but has no closing ---",
        "review.md": "is ignored: REVIEW.md is already /review",
        "two words.md": "needs a name made of letters, digits, - and _ to be a command",
    }


def test_what_cannot_be_read_is_named(place: Place, monkeypatch: pytest.MonkeyPatch):
    path = place.write(place.user, "review.md")
    place.write(place.user, "other.md")
    opened = os.open

    def refuse(asked, *rest, **named):
        if Path(asked) == path:
            raise PermissionError(13, "Permission denied", str(asked))
        return opened(asked, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    found = place.look()
    assert names(found) == ["user other"]
    assert reasons(found) == {"review.md": "cannot be read: Permission denied"}


def test_a_link_of_the_project_that_leads_elsewhere_is_not_read(place: Place, tmp_path: Path):
    (tmp_path / "secret.md").write_text("sk-canary")
    inside = place.write(place.proj, "inside.md")
    (inside.parent / "out.md").symlink_to(tmp_path / "secret.md")
    (inside.parent / "same.md").symlink_to("inside.md")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.md").write_text("sk-canary")
    (inside.parent / "folder").symlink_to(tmp_path / "elsewhere")
    found = place.look()
    assert names(found) == ["project inside", "project same"]
    assert reasons(found) == {
        "out.md": f"is ignored: it is a link to {tmp_path / 'secret.md'}",
        "folder": "is ignored: the folder is not trusted",
    }


def test_the_person_may_keep_files_elsewhere_and_link_to_them(place: Place, tmp_path: Path):
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "review.md").write_text("Mine.")
    place.user.mkdir()
    (place.user / "commands").symlink_to(tmp_path / "dotfiles")
    assert place.message("review") == "Mine."


def test_folders_that_lead_back_into_themselves_come_to_an_end(place: Place):
    folder = place.write(place.user, "a.md").parent
    (folder / "loop").symlink_to(folder)
    found = place.look()
    assert len(found.files) == MAX_DEPTH
    (deep,) = found.left_out
    assert deep.why == f"is more than {MAX_DEPTH} folders deep"


def test_there_is_an_end_to_what_one_folder_brings(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent_tui.features.custom_commands.library.MAX_FILES", 3)
    for number in range(5):
        place.write(place.user, f"p{number}.md")
    place.write(place.proj, "review.md")
    found = place.look()
    assert len(found.files) == 3 + 1
    assert reasons(found) == {"commands": "has more than 3 prompt files"}


def test_only_what_changed_is_read_again(place: Place, monkeypatch: pytest.MonkeyPatch):
    paths = [place.write(place.user, f"p{number}.md", "One.") for number in range(3)]
    place.look()
    opened: list[Path] = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **named: opened.append(path) or real(path, *rest, **named)
    )
    paths[1].write_text("Another.")
    paths[2].unlink()
    place.write(place.user, "new.md")
    found = place.look()
    read = sorted(path for path in opened if path.suffix == ".md")
    assert read == [paths[1].with_name("new.md"), paths[1]]
    assert [file.description for file in found.files] == ["Do it.", "One.", "Another."]


def test_a_command_is_sent_as_its_file_is_now(place: Place):
    path = place.write(place.user, "review.md", "One.")
    place.look()
    path.write_text("Two.")
    assert place.message("review") == "Two."
    path.write_bytes(b"\0")
    with pytest.raises(ConfigError, match=r"review.md is binary, not text\."):
        place.message("review")
    path.unlink()
    assert place.message("review") is None


def test_a_file_with_a_name_of_the_program_s_is_no_command_of_its_own(place: Place):
    place.write(place.user, "compact.md")
    assert place.message("compact") is None


def test_what_comes_out_empty_is_not_sent(place: Place):
    place.write(place.user, "say.md", "$1")
    with pytest.raises(ConfigError, match=r"/say needs an argument. Usage: /say"):
        place.message("say")


def test_a_thousand_files_are_fewer_than_allowed():
    assert MAX_FILES >= 1_000


def test_there_is_an_end_to_folders_too(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent_tui.features.custom_commands.library.MAX_FOLDERS", 3)
    for number in range(6):
        place.write(place.user, f"f{number}/p.md")
    found = place.look()
    assert [file.name for file in found.files] == ["f0:p", "f1:p"]
    assert reasons(found) == {"f2": "is ignored, as are all others: only 3 folders are read"}


@pytest.mark.parametrize("mention", ["@~/.ssh/id_rsa", "@$1/id_rsa", '@"~/.ssh/id_rsa"', "@.env"])
def test_a_project_cannot_send_what_the_person_did_not_name(
    place: Place, tmp_path: Path, mention: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("sk-canary")
    (place.src / ".env").write_text("KEY=sk-canary")
    (place.src / "app.py").write_text("x")
    place.write(place.proj, "help-me.md", f"Look at {mention} and @app.py.")
    place.write(place.user, "mine.md", f"Look at {mention}.")
    with pytest.raises(ConfigError, match=r"help-me.md was not sent: it would attach .*(rsa|env)"):
        place.message("help-me", "~/.ssh")
    assert place.message("mine", "~/.ssh")
    assert place.message("help-me", "~/.ssh @~/.ssh/id_rsa @.env")
    place.write(place.proj, "fine.md", "Look at @app.py, @.. and @missing.")
    assert place.message("fine") == "Look at @app.py, @.. and @missing."
