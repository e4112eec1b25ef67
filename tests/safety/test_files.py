"""Rules and protection of files: links, case, names that look alike, files that do not exist."""

from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.messages import JsonObject
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import Intent, ToolContext
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.registry import default_toolbox
from tests.safety.corpus import judge, make_workspace
from tests.support.rows import each_row


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


def engine(
    workspace: Path,
    mode: PermissionMode = "ask",
    *,
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    is_interactive: bool = True,
) -> PermissionEngine:
    return PermissionEngine(
        mode=mode,
        rules=PermissionSettings(allow=allow, deny=deny),
        workspace=workspace,
        project_rules_file=workspace.parent / "rules" / "permissions.toml",
        is_interactive=is_interactive,
        scratch_folders=(),
    )


def intent_of(workspace: Path, tool: str, **arguments: str) -> Intent:
    """What the tool itself says the call would do."""
    context = ToolContext(
        cwd=workspace,
        emit=lambda _text, _skipped=0: None,
        files=FileMemory(),
        output_dir=workspace,
        environ={},
        todos=[],
    )
    given: JsonObject = dict(arguments)
    return default_toolbox().prepare(tool, given, context).intent


@each_row(
    "path",
    [
        ".git/hooks/new-hook",
        ".GIT/new",
        ".git\u200b/new",
        ".env.new",
        ".ENV",
        "．env",
        ".env.",
        "new/deploy.PEM",
        ".bashrc",
        "sub/../.git/config",
        "link-dir/.env.new",
        ".agent-tui/config.toml",
    ],
)
@each_row("mode", ["ask", "accept-edits", "full"])
def test_protected_files_ask_whether_they_exist_or_not(
    workspace: Path, path: str, mode: PermissionMode
):
    permissions = engine(workspace, mode, allow=("write(*)", "write(**)", f"write({path})"))
    intent = intent_of(workspace, "write", path=path, content="x")
    verdict = permissions.judge("write", intent)
    assert (verdict.decision, verdict.session_rule) == ("ask", "")


def test_a_folder_that_only_begins_alike_is_another(workspace: Path):
    permissions = engine(workspace, "accept-edits")
    beside = f"{workspace}-evil/a"
    intent = intent_of(workspace, "write", path=beside, content="x")
    assert permissions.judge("write", intent).decision == "ask"
    assert judge(workspace, f"echo x > {beside}", "accept-edits").decision == "ask"


def test_a_link_out_of_the_workspace_is_followed(workspace: Path):
    permissions = engine(workspace, "accept-edits", allow=("write(link-out/**)",))
    intent = intent_of(workspace, "write", path="link-out/a", content="x")
    verdict = permissions.judge("write", intent)
    assert verdict.decision == "ask"
    assert str(workspace.parent / "outside" / "a") in verdict.why


@each_row("pattern", ["private/**", "link-private/**", "Private/**"])
@each_row("path", ["private/notes.txt", "link-private/notes.txt"])
def test_a_deny_rule_for_files_holds_through_links_and_case(
    workspace: Path, pattern: str, path: str
):
    permissions = engine(workspace, "full", allow=("read(*)",), deny=(f"read({pattern})",))
    verdict = permissions.judge("read", intent_of(workspace, "read", path=path))
    assert verdict.decision == "deny"
    for command in (f"cat {path}", f"wc -l < README.md; head {path}", f"cd . && tail {path}"):
        assert judge(workspace, command, "full", (), (f"read({pattern})",)).decision == "deny"


def test_an_allow_rule_does_not_follow_links(workspace: Path):
    permissions = engine(workspace, allow=("write(link-dir/**)",))
    intent = intent_of(workspace, "write", path="link-dir/a", content="x")
    assert permissions.judge("write", intent).decision == "ask"


def test_what_a_command_touches_changes_with_the_link(workspace: Path):
    permissions = engine(workspace)
    intent = intent_of(workspace, "bash", command="python3 link-out")
    before = permissions.judge("bash", intent).touched
    (workspace / "link-out").unlink()
    (workspace / "link-out").symlink_to("/etc")
    after = permissions.judge("bash", intent).touched
    assert workspace.parent / "outside" in before
    assert before != after


def test_without_a_terminal_nothing_is_approved(workspace: Path):
    permissions = engine(workspace, is_interactive=False)
    for command in ("make", "cat .env", "rm -rf /", "echo 'open"):
        intent = intent_of(workspace, "bash", command=command)
        assert permissions.judge("bash", intent).decision == "deny"
    assert permissions.judge("bash", intent_of(workspace, "bash", command="ls")).decision == "allow"


def test_rules_made_by_answers_can_be_taken_back(workspace: Path):
    permissions = engine(workspace, allow=("bash(make)",))
    permissions.book.add_session_rule("bash(npm test)")
    permissions.book.add_project_rule("bash(cargo test)")
    assert [rule.source for rule in permissions.book.rules] == ["settings", "session", "project"]
    for rule in permissions.book.rules[1:]:
        permissions.book.remove_rule(rule)
    assert [str(rule) for rule in permissions.book.rules] == ["bash(make)"]
    assert [str(rule) for rule in engine(workspace).book.rules] == []
    with pytest.raises(ConfigError, match="settings"):
        permissions.book.remove_rule(permissions.book.rules[0])


def test_decisions_are_kept_newest_first_and_bounded(workspace: Path):
    permissions = engine(workspace)
    for number in range(300):
        intent = intent_of(workspace, "bash", command=f"ls a{number}")
        permissions.record("bash", intent, permissions.judge("bash", intent))
    latest = permissions.log.latest
    assert len(latest) == 200
    assert (latest[0].what, latest[0].decision, latest[0].by) == ("ls a299", "allow", "mode")


@pytest.mark.parametrize(
    ("command", "by"),
    [("git push", "rule"), ("make", "rule"), ("ls", "mode"), ("cat .env", "protection")],
)
def test_a_verdict_says_what_decided(workspace: Path, command: str, by: str):
    permissions = engine(workspace, allow=("bash(make)",), deny=("bash(git push *)",))
    assert permissions.judge("bash", intent_of(workspace, "bash", command=command)).by == by


OBEYED = (
    *(".vscode/tasks.json", ".idea/workspace.xml", ".zed/tasks.json", "sub/.vscode/settings.json"),
    *(".devcontainer/devcontainer.json", ".claude/settings.json", ".codex/config.toml"),
    *(".gemini/settings.json", ".cursor/mcp.json", ".mcp.json", "AGENTS.md", "sub/agents.md"),
    *("CLAUDE.md", "Claude.MD", ".husky/pre-commit", ".pre-commit-config.yaml", "mise.toml"),
    *(".github/workflows/ci.yml", ".cargo/config.toml", ".bazelrc", ".dir-locals.el"),
    *(".nvim.lua", ".gitattributes", ".GitHub/Workflows/x.yml", ".vs\u200bcode/tasks.json"),
)


@each_row("path", OBEYED)
def test_accept_edits_asks_about_what_other_programs_obey(workspace: Path, path: str):
    permissions = engine(workspace, "accept-edits")
    intent = intent_of(workspace, "write", path=path, content="x")
    verdict = permissions.judge("write", intent)
    assert (verdict.decision, " controls " in verdict.why) == ("ask", True)
    permissions.book.add_session_rule(verdict.session_rule)
    assert permissions.judge("write", intent).decision == "allow"
    assert judge(workspace, f"echo x > '{path}'", "accept-edits").decision == "ask"
    assert engine(workspace, "full").judge("write", intent).decision == "allow"


@pytest.mark.parametrize(
    "path", ["src/new.py", "docs/agents/x.md", "github/workflows/x.yml", "vscode/x", "Makefile"]
)
def test_accept_edits_asks_about_nothing_else(workspace: Path, path: str):
    intent = intent_of(workspace, "write", path=path, content="x")
    assert engine(workspace, "accept-edits").judge("write", intent).decision == "allow"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("bash(make *)", "Makefile"),
        ("bash(make test)", "sub/rules.mk"),
        ("bash(npm run test)", "package.json"),
        ("bash(just *)", "justfile"),
        ("bash(PATH=./bin make)", "Makefile"),
        ("bash(timeout 60 make *)", "Makefile"),
        ("bash(= cd sub && A=1 make test)", "sub/Makefile"),
    ],
)
def test_accept_edits_asks_about_what_the_next_allowed_command_runs(
    workspace: Path, rule: str, path: str
):
    intent = intent_of(workspace, "write", path=path, content="x")
    permissions = engine(workspace, "accept-edits", allow=(rule,))
    assert permissions.judge("write", intent).decision == "ask"
