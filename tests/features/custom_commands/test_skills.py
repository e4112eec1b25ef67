"""Skills as commands, beside the prompt files of a home folder and a project."""

from pathlib import Path

import pytest

from agent_tui.errors import ConfigError
from agent_tui.features.custom_commands.library import PromptLibrary
from agent_tui.permissions.trust import FolderTrust, TrustFile


class Place:
    """A home folder, and a trusted repository in it, which is worked in."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "proj"
        (self.project / ".git").mkdir(parents=True)
        trust = FolderTrust(TrustFile(root / "trust.json"), home=self.home)
        trust.decide(self.project, "trusted")
        self.library = PromptLibrary(root / "config", trust, frozenset({"compact"}))

    def write(self, name: str, text: str = "Do it.") -> None:
        path = self.project / ".agents/skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_they_are_commands_unless_the_name_is_taken_or_they_are_not_for_the_person(place: Place):
    place.write("release")
    place.write("compact")
    place.write("review")
    place.write("quiet", "---\nuser-invocable: false\n---\nGo.")
    prompt = place.project / ".claude/commands/review.md"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("Review $1.")
    found = place.library.find(place.project)
    assert [(file.name, file.is_skill) for file in found.files] == [
        ("release", True),
        ("review", False),
    ]
    assert {one.path.parent.name: one.why for one in found.left_out} == {
        "compact": "is not a command (the model can use it): /compact is built in",
        "review": f"is overridden by {prompt}, which is /review",
    }
    assert place.library.message("release", "1.2", place.project) == "/release 1.2"


@pytest.mark.parametrize("kind", [".claude/commands", ".agents/commands", ".agent-tui/commands"])
def test_prompt_files_of_other_agents_are_read(place: Place, kind: str):
    for folder, name in ((place.project, "theirs"), (place.home, "mine")):
        path = folder / kind / f"{name}.md"
        path.parent.mkdir(parents=True)
        path.write_text("---\nallowed-tools:\n  - Bash\nmodel: opus\n---\nDo $ARGUMENTS.")
    found = place.library.find(place.project)
    assert [(f.source, f.name) for f in found.files] == [("project", "theirs"), ("user", "mine")]
    assert place.library.message("theirs", "it", place.project) == "Do it."


def test_a_skill_that_cannot_be_used_is_told_when_it_is_called(place: Place):
    place.write("empty", "")
    with pytest.raises(ConfigError, match="is empty"):
        place.library.message("empty", "", place.project)
