"""Which MCP servers a folder has, and which of them may be started."""

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent_tui.agent.consent import ConsentFile
from agent_tui.features.mcp.server_files import ServerFiles, read_server_file
from agent_tui.features.mcp.settings import McpServerSettings
from agent_tui.features.mcp.sources import FoundServers
from agent_tui.permissions.trust import FolderTrust, TrustFile


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    name_servers(folder, one={"command": "run", "args": ["it"], "env": {"A": "b"}})
    return folder


def name_servers(folder: Path, **servers: object) -> Path:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def trust_of(tmp_path: Path) -> FolderTrust:
    return FolderTrust(TrustFile(tmp_path / "trust.json"))


def files(tmp_path: Path, *, trusted: Path | None, **own: McpServerSettings) -> ServerFiles:
    trust = trust_of(tmp_path)
    if trusted is not None:
        trust.trust_for_this_run(trusted)
    consent = ConsentFile(tmp_path / "mcp-servers.json")
    return ServerFiles(own, tmp_path / "config.toml", trust, consent)


def test_a_projects_servers_are_found_in_a_trusted_folder_and_not_yet_allowed(tmp_path, project):
    (found,) = files(tmp_path, trusted=project).find(project / "src").servers
    spec = found.spec
    assert (spec.name, spec.argv, spec.env, spec.cwd) == ("one", ("run", "it"), {"A": "b"}, project)
    assert (spec.origin, found.is_allowed) == ("project", None)


def test_without_trust_the_file_is_not_even_opened(tmp_path, project, monkeypatch):
    opened: list[Path] = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **named: opened.append(path) or real(path, *rest, **named)
    )
    found = files(tmp_path, trusted=None).find(project)
    assert (found.servers, found.problems) == ((), ())
    assert project / ".mcp.json" not in opened
    files(tmp_path, trusted=project).find(project)
    assert project / ".mcp.json" in opened


def test_the_question_of_trust_names_the_file(tmp_path, project):
    question = trust_of(tmp_path).question(project)
    assert question is not None
    assert question.files == (project / ".mcp.json",)


def test_a_link_to_a_file_elsewhere_is_not_followed(tmp_path, project):
    (project / ".mcp.json").rename(tmp_path / "elsewhere.json")
    (project / ".mcp.json").symlink_to(tmp_path / "elsewhere.json")
    assert files(tmp_path, trusted=project).find(project).servers == ()


def test_an_answer_holds_for_just_this_command_of_this_file(tmp_path, project):
    sources = files(tmp_path, trusted=project)
    (found,) = sources.find(project).servers
    sources.answer(found.spec, is_allowed=True)
    again = files(tmp_path, trusted=project)
    assert [one.is_allowed for one in again.find(project).servers] == [True]
    for changed in (
        {"command": "run", "args": ["it", "--all"], "env": {"A": "b"}},
        {"command": "run", "args": ["it"], "env": {"A": "c"}},
    ):
        name_servers(project, one=changed)
        assert [one.is_allowed for one in again.find(project).servers] == [None]
    name_servers(project)
    name_servers(project / "src", one={"command": "run", "args": ["it"], "env": {"A": "b"}})
    assert [one.is_allowed for one in again.find(project / "src").servers] == [None]


def test_a_no_is_kept_and_a_broken_file_keeps_nothing(tmp_path, project):
    sources = files(tmp_path, trusted=project)
    (found,) = sources.find(project).servers
    sources.answer(found.spec, is_allowed=False)
    assert [one.is_allowed for one in sources.find(project).servers] == [False]
    assert (tmp_path / "mcp-servers.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "mcp-servers.json").write_text("{")
    assert [one.is_allowed for one in files(tmp_path, trusted=project).find(project).servers] == [
        None
    ]


def test_the_persons_own_server_stands_before_a_projects_of_its_name(tmp_path, project):
    own = McpServerSettings(command="mine", headers_env={})
    found = files(tmp_path, trusted=project, one=own).find(project)
    assert [(one.spec.argv, one.is_allowed) for one in found.servers] == [(("mine",), True)]
    assert "server one ignored" in found.problems[0]


def test_the_nearest_file_wins(tmp_path, project):
    name_servers(project / "src", one={"command": "near"}, two={"url": "https://example.invalid"})
    found = files(tmp_path, trusted=project).find(project / "src")
    assert [one.spec.command_line for one in found.servers] == ["near", "https://example.invalid"]


def test_what_is_wanted_of_a_projects_server_is_the_persons_to_say(tmp_path, project):
    wanted = McpServerSettings(tools=("search",), exclude=("delete_*",), timeout_s=5)
    sources = files(tmp_path, trusted=project, one=wanted, elsewhere=wanted)
    (found,) = sources.find(project).servers
    assert (found.spec.origin, found.is_allowed, found.spec.timeout_s) == ("project", None, 5)
    assert [found.spec.picks.is_offered(name) for name in ("search", "other")] == [True, False]
    (plain,) = files(tmp_path, trusted=project).find(project).servers
    assert found.spec.fingerprint == plain.spec.fingerprint  # a yes to its command holds
    off = files(tmp_path, trusted=project, one=McpServerSettings(enabled=False))
    assert not off.find(project).servers[0].spec.is_enabled
    assert sources.find(tmp_path) == FoundServers()


@pytest.mark.parametrize("given", [{}, {"args": ["x"], "tools": ["a"]}, {"env": {"A": "b"}}])
def test_a_table_that_says_nothing_of_use_is_refused(given):
    with pytest.raises(ValidationError, match="command or url"):
        McpServerSettings.model_validate(given)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({}, "either a command or a url"),
        ({"command": "x", "url": "y"}, "either a command or a url"),
        ({"command": 7}, "must be strings"),
        ({"command": "x", "args": "y"}, "args must be a list"),
        ({"command": "x", "args": [1]}, "args must be a list"),
        ({"command": "x", "env": {"A": 1}}, "env must be an object"),
        ({"url": "x", "type": "sse"}, "old sse transport"),
        ({"command": "x", "args": ["y" * 4_000]}, "longer than 4,000 characters"),
        ("x", "not an object"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_file(tmp_path, server, why):
    file = name_servers(tmp_path, good={"command": "x"}, bad=server)
    specs, problems = read_server_file(file)
    assert [spec.name for spec in specs] == ["good"]
    (problem,) = problems
    assert problem.startswith(f"{file}: server 'bad' ignored: ")
    assert why in problem


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "defines no servers"),
        ('{"mcpServers": []}', "defines no servers"),
        ('{"mcpServers": {"a__b": {"command": "x"}}}', "with single - or _"),
        ('{"mcpServers": {"../x": {"command": "x"}}}', "letters and digits"),
        (" " * 300_000, "larger than 200 KB"),
    ],
)
def test_a_file_that_is_none_gives_one_line(tmp_path, text, why):
    file = tmp_path / ".mcp.json"
    file.write_text(text)
    specs, (problem,) = read_server_file(file)
    assert specs == ()
    assert why in problem
