"""Which instructions count in a folder, and what they take along."""

from pathlib import Path

import pytest

from agent_tui.agent.prompt.context_files import ContextFile, load_context_files


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    (folder / ".git").mkdir(parents=True)
    return folder


def load(project: Path) -> dict[str, ContextFile]:
    found = load_context_files(
        project.parent / "config", project, lambda file: file.is_relative_to(project)
    )
    return {file.path.name: file for file in found}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_an_override_counts_in_place_of_the_others_and_local_words_beside_them(project: Path):
    for name in ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"):
        write(project / name, name)
    assert list(load(project)) == ["AGENTS.md", "CLAUDE.local.md"]
    write(project / "AGENTS.override.md", "instead")
    assert list(load(project)) == ["AGENTS.override.md", "CLAUDE.local.md"]


def test_what_is_named_follows_each_once_and_five_deep(project: Path):
    write(project / "AGENTS.md", "See @docs/0.md, and (@docs/0.md). Not me@x.org nor `@docs/9.md`.")
    for number in range(8):
        write(project / f"docs/{number}.md", f"text {number} @{number + 1}.md @0.md")
    write(project / "docs/9.md", "nine")
    assert list(load(project)) == ["AGENTS.md", *(f"{n}.md" for n in range(5))]


def test_code_names_nothing(project: Path):
    write(project / "a.md", "a")
    write(project / "AGENTS.md", "```\n@a.md\n```\n\n`` @a.md ``\n\n~~~sh\n@a.md\n~~~\n")
    assert list(load(project)) == ["AGENTS.md"]


def test_nothing_outside_of_what_is_trusted_and_no_keys_are_taken_along(project: Path):
    outside = write(project.parent / "notes.md", "notes")
    link = project / "link.md"
    link.symlink_to(outside)
    secret = write(project / ".env", "KEY=1")
    write(project / "AGENTS.md", f"@{outside} @link.md @.env @missing.md")
    found = load(project)
    assert list(found) == ["AGENTS.md"]
    assert found["AGENTS.md"].not_imported == (outside, secret)


def test_the_person_s_own_file_takes_along_what_lies_beside_it(project: Path):
    config = project.parent / "config"
    write(config / "AGENTS.md", f"@style.md @{project}/a.md")
    write(config / "style.md", "style")
    write(project / "a.md", "a")
    assert list(load(project)) == ["AGENTS.md", "style.md"]
