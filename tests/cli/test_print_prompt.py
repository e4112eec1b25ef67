from pathlib import Path

import pytest

from agent_tui.cli.print_prompt import expanded_prompt
from agent_tui.errors import ConfigError
from agent_tui.permissions.trust import FolderTrust
from agent_tui.permissions.trust_file import TrustFile


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    made = tmp_path / "config" / "commands"
    made.mkdir(parents=True)
    (made / "review.md").write_text("Review $1 closely.")
    (made / "binary.md").write_bytes(b"\0")
    (made / "compact.md").write_text("Mine.")
    (made / "empty.md").write_text("$1")
    return made


def expanded(tmp_path: Path, text: str, *, trusted: bool = False) -> str:
    trust = FolderTrust(TrustFile(tmp_path / "trust.json"))
    project = tmp_path / "proj" / ".agent-tui" / "commands"
    project.mkdir(parents=True)
    (project / "ship.md").write_text("Ship it.")
    if trusted:
        trust.trust_for_this_run(tmp_path / "proj")
    return expanded_prompt(text, tmp_path / "proj", tmp_path / "config", trust)


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("/review src", "Review src closely."),
        (" /REVIEW\nsrc", "Review src closely."),
        ("/compact now", "/compact now"),
        ("/unknown x", "/unknown x"),
        ("/usr/bin/x is broken", "/usr/bin/x is broken"),
        ("plain /review", "plain /review"),
        ("/ship", "/ship"),
    ],
)
def test_only_names_of_prompt_files_in_force_are_expanded(tmp_path: Path, text: str, sent: str):
    assert expanded(tmp_path, text) == sent


def test_a_project_s_file_counts_where_it_is_trusted(tmp_path: Path):
    assert expanded(tmp_path, "/ship", trusted=True) == "Ship it."


@pytest.mark.usefixtures("commands")
def test_a_file_that_cannot_be_used_is_not_sent_as_its_name(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"binary.md is binary, not text"):
        expanded(tmp_path, "/binary")


@pytest.mark.usefixtures("commands")
def test_nothing_is_not_sent(tmp_path: Path):
    with pytest.raises(ConfigError, match="/empty says nothing without an argument"):
        expanded(tmp_path, "/empty")
