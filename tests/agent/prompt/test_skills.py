"""Which skills are in force, and what a SKILL.md says of itself."""

from pathlib import Path

import pytest

from agent_tui.agent.prompt.prompt_files import (
    FoundSkills,
    PromptFileError,
    find_skills,
    parse_skill,
)
from agent_tui.permissions.trust import FolderTrust, TrustFile


class Place:
    """A home folder, a repository in it, and the folder that is worked in."""

    def __init__(self, root: Path) -> None:
        self.home, self.config = root / "home", root / "config"
        self.project = self.home / "proj"
        self.cwd = self.project / "src"
        (self.project / ".git").mkdir(parents=True)
        self.cwd.mkdir()
        self.trust = FolderTrust(TrustFile(root / "trust.json"), home=self.home)
        self.trust.decide(self.project, "trusted")

    def write(
        self, folder: Path, name: str, text: str = "---\ndescription: One\n---\nDo it."
    ) -> Path:
        path = folder / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def look(self) -> FoundSkills:
        return find_skills(self.cwd, self.config, self.trust)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("kind", [".agents/skills", ".agent-tui/skills", ".claude/skills"])
def test_they_are_found_in_the_project_and_at_home_the_nearest_first(place: Place, kind: str):
    at_home = place.write(place.home / kind, "mine")
    place.write(place.home / kind, "both")
    above = place.write(place.project / kind, "both")
    place.write(place.project / kind, "near")
    near = place.write(place.cwd / kind, "near")
    found = place.look().by_name
    assert {name: skill.path for name, skill in found.items()} == {
        "mine": at_home,
        "both": above,
        "near": near,
    }
    assert {name: skill.source for name, skill in found.items()} == {
        "mine": "user",
        "both": "project",
        "near": "project",
    }


def test_the_configuration_folder_has_some_too(place: Place):
    path = place.write(place.config / "skills", "mine")
    assert place.look().by_name["mine"].path == path


@pytest.mark.parametrize("decision", [None, "not trusted"])
def test_what_is_not_trusted_holds_none(tmp_path: Path, decision):
    place = Place(tmp_path)
    place.trust.forget(place.project)
    if decision:
        place.trust.decide(place.project, decision)
    place.write(place.project / ".agents/skills", "theirs")
    assert place.look() == FoundSkills({}, ())


def test_a_link_out_of_the_project_is_not_obeyed(place: Place, tmp_path: Path):
    elsewhere = place.write(tmp_path / "elsewhere", "theirs")
    folder = place.project / ".agents/skills"
    folder.mkdir(parents=True)
    (folder / "theirs").symlink_to(elsewhere.parent)
    assert place.look().by_name == {}


def test_what_cannot_be_used_says_why(place: Place):
    folder = place.project / ".agents/skills"
    place.write(folder, "empty", "---\ndescription: x\n---\n")
    (folder / "none").mkdir()
    found = place.look()
    assert [(path.parent.name, why) for path, why in found.problems] == [("empty", "is empty")]


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        ("---\nname: pdf-form\ndescription: Fill: forms\n---\nGo.", "pdf-form", "Fill: forms"),
        ("---\nname: PDF\ndescription: >\n  Fill\n  forms\n---\nGo.", "pdf", "Fill forms"),
        ("---\nname: not one word\n---\n# Forms\nGo.", "folder", "Forms"),
        ("Go on with it.", "folder", "Go on with it."),
        (
            "---\nmetadata:\n  author: me\n  name: other\nallowed-tools: Bash(x)\n---\nGo.",
            "folder",
            "Go.",
        ),
    ],
)
def test_what_it_says_of_itself(text: str, name: str, description: str):
    skill = parse_skill(text.encode(), Path("/x/folder/SKILL.md"), "user")
    assert (skill.name, skill.description) == (name, description)


def test_who_may_call_it():
    path = Path("/x/folder/SKILL.md")
    mine = parse_skill(b"---\ndisable-model-invocation: true\n---\nGo.", path, "user")
    assert (mine.is_for_model, mine.is_for_person) == (False, True)
    its = parse_skill(b"---\nuser-invocable: false\n---\nGo.", path, "user")
    assert (its.is_for_model, its.is_for_person) == (True, False)


def test_a_folder_whose_name_is_no_command_needs_a_name():
    with pytest.raises(PromptFileError, match="needs a name"):
        parse_skill(b"Go.", Path("/x/two words/SKILL.md"), "user")
