import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import Access, Intent

_WORKSPACE = Path("/ws/project")
_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")


def _approvals(
    mode: PermissionMode = "ask",
    *,
    allow: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    workspace: Path = _WORKSPACE,
    rules_file: Path = Path("/nowhere/permissions.toml"),
    own_folders: tuple[Path, ...] = (Path("/own"),),
    is_interactive: bool = True,
) -> PermissionEngine:
    return PermissionEngine(
        mode=mode,
        rules=PermissionSettings(allow=allow, ask=ask, deny=deny),
        workspace=workspace,
        project_rules_file=rules_file,
        own_folders=own_folders,
        is_interactive=is_interactive,
        scratch_folders=(Path("/scratch"),),
    )


def _bash(command: str) -> Intent:
    return Intent(title=command, access="execute", command=command)


def _file(access: Access, path: str | Path) -> Intent:
    resolved = path if isinstance(path, Path) else Path(path)
    return Intent(title=str(path), access=access, paths=(resolved,))


@pytest.mark.parametrize("command", ["rm -rf ~", "sudo ls", "cp x ~/.bashrc", "dd of=/dev/sda"])
def test_no_rule_is_offered_for_what_always_asks(command: str):
    approvals = _approvals("full", allow=(f"bash(= {command})",))
    verdict = approvals.judge("bash", _bash(command))
    assert (verdict.decision, verdict.session_rule) == ("ask", "")


@given(
    st.sampled_from(["ls", "git status", "grep -rn x src", "echo $HOME", "cat a | head"]),
    st.sampled_from(["{}; {}", "{} && {}", "{} | {}", "{}\n{}", "{} & {}", "({}; {})"]),
    st.sampled_from(
        ["rm x", "/bin/rm x", "timeout 5 rm x", "echo $(rm x)", "bash -c 'rm x'", "xargs rm"]
    ),
    st.booleans(),
    st.sampled_from(_MODES),
)
def test_a_command_with_a_denied_part_never_runs(
    harmless: str, joint: str, denied: str, first: bool, mode: PermissionMode
):
    parts = (denied, harmless) if first else (harmless, denied)
    approvals = _approvals(mode, deny=("bash(rm *)",), allow=("bash(*)",))
    verdict = approvals.judge("bash", _bash(joint.format(*parts)))
    assert verdict.decision != "allow"


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x",
        "echo $(rm x)",
        "A=1 /bin/rm x",
        "timeout 5 rm x",
        "bash -c 'rm x'",
        "ls | xargs rm",
    ],
)
def test_a_deny_rule_beats_every_mode_and_allow_rule(command: str):
    for mode in _MODES:
        approvals = _approvals(mode, deny=("bash(rm *)",), allow=("bash(*)", f"bash(= {command})"))
        assert approvals.judge("bash", _bash(command)).decision == "deny"


def test_a_deny_rule_still_holds_in_a_command_of_a_hundred_parts():
    command = "; ".join(["ls"] * 100 + ["rm x"])
    verdict = _approvals("full", deny=("bash(rm *)",)).judge("bash", _bash(command))
    assert verdict.decision == "deny"


def test_what_may_turn_out_to_be_denied_asks_in_full_mode():
    approvals = _approvals("full", deny=("bash(git push *)",))
    assert approvals.judge("bash", _bash("git $ACTION")).decision == "ask"
    assert approvals.judge("bash", _bash("git pull")).decision == "allow"


def test_every_part_must_be_allowed():
    approvals = _approvals(allow=("bash(npm test)", "bash(git commit *)"))
    assert approvals.judge("bash", _bash("npm test")).decision == "allow"
    assert approvals.judge("bash", _bash("npm test && git commit -m x")).decision == "allow"
    assert approvals.judge("bash", _bash("npm test | head")).decision == "allow"
    verdict = approvals.judge("bash", _bash("npm test && npm publish"))
    assert (verdict.decision, verdict.why) == ("ask", "not known to be read-only: npm publish")
    assert approvals.judge("bash", _bash("npm test > out.txt")).decision == "ask"
    assert approvals.judge("bash", _bash("git commit -m $(rm x)")).decision == "ask"
    assert approvals.judge("bash", _bash("A=1 npm test")).decision == "ask"
    assert approvals.judge("bash", _bash("timeout 60 npm test")).decision == "allow"


def test_the_most_specific_of_ask_and_allow_wins_and_deny_beats_both():
    approvals = _approvals(
        allow=("bash(git *)", "bash(git push origin x)"),
        ask=("bash(git push *)",),
        deny=("bash(git push --force *)",),
    )
    assert approvals.judge("bash", _bash("git pull")).decision == "allow"
    assert approvals.judge("bash", _bash("git push")).decision == "ask"
    assert approvals.judge("bash", _bash("git push origin x")).decision == "allow"
    assert approvals.judge("bash", _bash("git push --force origin x")).decision == "deny"


def test_shell_writes_follow_the_rules_for_files():
    accept = _approvals("accept-edits", deny=("write(dist/**)",))
    assert accept.judge("bash", _bash("echo x > a.txt")).decision == "allow"
    assert accept.judge("bash", _bash("echo x > /elsewhere/a.txt")).decision == "ask"
    assert accept.judge("bash", _bash("cd /elsewhere && echo x > a.txt")).decision == "ask"
    assert accept.judge("bash", _bash("echo x > dist/a")).decision == "deny"
    assert accept.judge("bash", _bash("make")).decision == "ask"
    ruled = _approvals(allow=("write(out/**)",))
    assert ruled.judge("bash", _bash("ls > out/list")).decision == "allow"


@pytest.mark.parametrize(
    ("mode", "path", "decision"),
    [
        ("plan", "/ws/project/a", "deny"),
        ("ask", "/ws/project/a", "ask"),
        ("accept-edits", "/ws/project/a", "allow"),
        ("accept-edits", "/scratch/a", "allow"),
        ("accept-edits", "/ws/project-evil/a", "ask"),
        ("accept-edits", "/ws/a", "ask"),
        ("full", "/elsewhere/a", "allow"),
    ],
)
def test_writes_follow_the_mode(mode: PermissionMode, path: str, decision: str):
    assert _approvals(mode).judge("write", _file("write", path)).decision == decision
    assert _approvals(mode).judge("edit", _file("write", path)).decision == decision


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git",
        ".git\u200b/config",
        ".env",
        ".Env.local",
        "．env",
        "sub/server.PEM",
        "id_ed25519",
        ".bashrc",
        ".envrc",
        ".agent-tui/config.toml",
        "/home/me/.ssh/authorized_keys",
        "/home/me/.zshrc",
        "/own/permissions.toml",
        "/OWN/sessions/x.jsonl",
    ],
)
def test_protected_files_ask_in_every_mode_whatever_a_rule_allows(path: str):
    target = _WORKSPACE / path
    for mode in ("ask", "accept-edits", "full"):
        approvals = _approvals(mode, allow=("write(*)", "write(**)", f"write({path})"))
        verdict = approvals.judge("write", _file("write", target))
        assert (verdict.decision, verdict.session_rule) == ("ask", ""), mode


@pytest.mark.parametrize(
    ("path", "decision"),
    [
        ("/ws/project/a", "allow"),
        ("/usr/include/stdio.h", "allow"),
        ("/ws/project/.env.example", "allow"),
        ("/ws/project/.git/HEAD", "allow"),
        ("/ws/project/.env", "ask"),
        ("/home/me/.aws/credentials", "ask"),
        ("/home/me/.config/gh/hosts.yml", "ask"),
        ("/own/sessions/other.jsonl", "ask"),
    ],
)
def test_reading_is_free_except_where_keys_are(path: str, decision: str):
    for mode in _MODES:
        assert _approvals(mode).judge("read", _file("read", path)).decision == decision


def test_searching_the_home_folder_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home, workspace = tmp_path / "home", tmp_path / "home" / "project"
    workspace.mkdir(parents=True)
    monkeypatch.setattr("pathlib.Path.home", lambda: home)
    approvals = _approvals(workspace=workspace)
    assert approvals.judge("grep", _file("read", workspace)).decision == "allow"
    assert approvals.judge("grep", _file("read", home)).decision == "ask"
    assert approvals.judge("ls", _file("read", home)).decision == "allow"


def test_a_link_in_a_command_is_followed(tmp_path: Path):
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "innocent").symlink_to(".env")
    verdict = _approvals(workspace=tmp_path).judge("bash", _bash("cat innocent"))
    assert verdict.decision == "ask"
    assert "may hold keys" in verdict.why


def test_a_file_pattern_that_takes_in_a_key_asks(tmp_path: Path):
    (tmp_path / "server.pem").touch()
    (tmp_path / ".env").touch()
    approvals = _approvals(workspace=tmp_path)
    assert approvals.judge("bash", _bash("cat *.pem")).decision == "ask"
    assert approvals.judge("bash", _bash("cat s*")).decision == "ask"
    assert approvals.judge("bash", _bash("cat .e*")).decision == "ask"
    assert approvals.judge("bash", _bash("cat *.py")).decision == "allow"


def test_path_rules_for_files():
    approvals = _approvals(allow=("write(docs/**)",), deny=("write(docs/secret/**)", "read(x)"))
    assert approvals.judge("edit", _file("write", "/ws/project/docs/a")).decision == "allow"
    assert approvals.judge("write", _file("write", "/ws/project/docs/secret/a")).decision == "deny"
    assert approvals.judge("write", _file("write", "/ws/project/docs-evil")).decision == "ask"
    assert approvals.judge("grep", _file("read", "/ws/project/x")).decision == "deny"


def test_a_session_rule_allows_exactly_what_was_shown():
    approvals = _approvals()
    verdict = approvals.judge("bash", _bash("pytest -q tests"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "bash(pytest -q tests)")
    approvals.add_session_rule(verdict.session_rule)
    assert approvals.judge("bash", _bash("pytest -q tests")).decision == "allow"
    assert approvals.judge("bash", _bash("pytest -q tests; rm x")).decision == "ask"
    assert approvals.judge("bash", _bash("pytest -q tests > x")).decision == "ask"
    write = approvals.judge("edit", _file("write", "/ws/project/a.py"))
    assert write.session_rule == "write(a.py)"
    approvals.add_session_rule(write.session_rule)
    assert approvals.judge("write", _file("write", "/ws/project/a.py")).decision == "allow"
    assert approvals.judge("write", _file("write", "/ws/project/b.py")).decision == "ask"


@pytest.mark.parametrize("command", ["npm test && make $X > out", "rm *", "X=1 make | tee log"])
def test_a_session_rule_for_a_compound_command_is_its_exact_text(command: str):
    approvals = _approvals()
    rule = approvals.judge("bash", _bash(command)).session_rule
    assert rule == f"bash(= {command})"
    approvals.add_session_rule(rule)
    assert approvals.judge("bash", _bash(command)).decision == "allow"
    assert approvals.judge("bash", _bash(f"{command} extra")).decision == "ask"
    assert approvals.judge("bash", _bash("rm x")).decision == "ask"


def test_what_cannot_be_parsed_asks_and_makes_no_rule():
    verdict = _approvals("full", allow=("bash(*)",)).judge("bash", _bash("echo 'open"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "")
    assert "cannot be judged" in verdict.why


def test_project_rules_are_kept_in_a_private_file(tmp_path: Path):
    path = tmp_path / "projects" / "p" / "permissions.toml"
    _approvals(rules_file=path).add_project_rule("bash(make)")
    _approvals(rules_file=path).add_project_rule("bash(make)")
    _approvals(rules_file=path).add_project_rule('bash(= echo "a\nb" | tee x)')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [child.name for child in path.parent.iterdir()] == ["permissions.toml"]
    again = _approvals(rules_file=path)
    assert [str(rule) for rule in again.rules] == ["bash(make)", 'bash(= echo "a\nb" | tee x)']
    assert again.judge("bash", _bash("make")).decision == "allow"
    assert again.judge("bash", _bash('echo "a\nb" | tee x')).decision == "allow"


def test_the_project_file_keeps_comments_and_may_deny(tmp_path: Path):
    path = tmp_path / "permissions.toml"
    path.write_text('# mine\ndeny = ["bash(make *)"]\n')
    approvals = _approvals("full", rules_file=path)
    approvals.add_project_rule("bash(ls *)")
    assert path.read_text().startswith("# mine\n")
    assert approvals.judge("bash", _bash("make all")).decision == "deny"


def test_broken_rules_are_reported_and_the_others_hold(tmp_path: Path):
    path = tmp_path / "permissions.toml"
    path.write_text("allow = [")
    approvals = _approvals(rules_file=path, allow=("bash(make)", "bash("))
    assert len(approvals.problems) == 2
    assert "bash(" in approvals.problems[0]
    assert str(path) in approvals.problems[1]
    assert approvals.judge("bash", _bash("make")).decision == "allow"


def test_a_rules_file_that_cannot_be_written_is_said_and_the_rule_holds(tmp_path: Path):
    (tmp_path / "file").touch()
    approvals = _approvals(rules_file=tmp_path / "file" / "permissions.toml")
    with pytest.raises(ConfigError, match="could not be saved"):
        approvals.add_project_rule("bash(make)")
    assert approvals.judge("bash", _bash("make")).decision == "allow"


def test_without_a_terminal_what_would_ask_is_denied_with_a_reason():
    approvals = _approvals(is_interactive=False)
    verdict = approvals.judge("bash", _bash("make"))
    assert verdict.decision == "deny"
    assert "nobody can be asked" in verdict.why
    assert approvals.judge("bash", _bash("ls")).decision == "allow"
    assert approvals.judge("write", _file("write", "/ws/project/a")).decision == "deny"


def test_the_mode_can_change_and_the_plan_tool_is_free():
    approvals = _approvals("plan")
    assert approvals.judge("todo", Intent(title="plan", access="none")).decision == "allow"
    approvals.mode = "full"
    assert approvals.judge("bash", _bash("make")).decision == "allow"


def test_without_a_home_folder_the_rest_is_judged_all_the_same(tmp_path, monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user the system lacks
    approvals = _approvals(workspace=tmp_path)
    intent = Intent(title="read", access="read", paths=(tmp_path / "a.txt",))
    assert approvals.judge("read", intent).decision == "allow"


def test_of_an_ask_and_an_allow_rule_alike_the_one_that_asks_holds(tmp_path: Path):
    rules_file = tmp_path / "rules.toml"
    rules_file.write_text('ask = ["write(docs/a.md)"]\n')
    approvals = _approvals("full", allow=("write(docs/a.md)",), rules_file=rules_file)
    assert not approvals.problems
    assert approvals.judge("write", _file("write", "/ws/project/docs/a.md")).decision == "ask"


def test_a_rule_that_could_not_be_saved_is_one_of_the_session(tmp_path: Path):
    (tmp_path / "file").write_text("")
    approvals = _approvals(rules_file=tmp_path / "file" / "rules.toml")
    with pytest.raises(ConfigError):
        approvals.add_project_rule("bash(make)")
    assert [rule.source for rule in approvals.rules] == ["session"]


def test_it_is_said_whether_a_rule_or_the_mode_allowed_a_command():
    approvals = _approvals(allow=("bash(make *)",))
    assert approvals.judge("bash", _bash("make it")).by == "rule"
    assert approvals.judge("bash", _bash("ls")).by == "mode"


@pytest.mark.parametrize(
    ("access", "path", "by"),
    [
        ("read", "a", "mode"),
        ("read", ".env", "protection"),
        ("read", "denied", "rule"),
        ("write", "a", "mode"),
        ("write", ".env", "protection"),
        ("write", "/etc/hosts", "protection"),
        ("write", "denied", "rule"),
        ("write", "asked", "rule"),
        ("write", "allowed", "rule"),
    ],
)
def test_what_decided_about_a_file_is_told(access: Access, path: str, by: str):
    engine = _approvals(
        allow=("write(allowed)",), ask=("write(asked)",), deny=("write(denied)", "read(denied)")
    )
    assert engine.judge(access, _file(access, _WORKSPACE / path)).by == by


@pytest.mark.parametrize(
    ("command", "by"),
    [
        ("make", "mode"),
        ("echo 'open", "protection"),
        ("sudo ls", "protection"),
        ("rm x", "rule"),
        ("$x", "rule"),
        ("touch x > denied", "rule"),
        ("npm test", "rule"),
        ("npm test > out", "mode"),
        ("git push", "rule"),
        ("ls && npm test", "rule"),
    ],
)
def test_what_decided_about_a_command_is_told(command: str, by: str):
    engine = _approvals(
        allow=("bash(npm test)",),
        ask=("bash(git push *)",),
        deny=("bash(rm *)", "write(denied)"),
    )
    assert engine.judge("bash", _bash(command)).by == by


def test_a_verdict_names_the_parts_and_files_it_is_bound_to():
    verdict = _approvals().judge("bash", _bash("cat a && cat a | make b"))
    assert verdict.parts == ("cat a", "make b")
    assert set(verdict.touched) >= {_WORKSPACE / "a", _WORKSPACE / "b"}
    write = _approvals().judge("write", _file("write", "/ws/project/a"))
    assert (write.parts, write.touched) == (("/ws/project/a",), (_WORKSPACE / "a",))


def test_the_reason_names_up_to_three_parts_that_need_a_rule():
    why = _approvals().judge("bash", _bash("make a; make b; make c; make d")).why
    assert why == "not known to be read-only: make a; make b; make c"
    assert _approvals().judge("bash", _bash("make a")).why == "not known to be read-only"


def test_the_person_is_told_why_a_file_asks():
    approvals = _approvals("accept-edits")
    inside = _approvals().judge("write", _file("write", "/ws/project/a"))
    assert inside.why == "it changes a file"
    outside = approvals.judge("write", _file("write", "/elsewhere/a"))
    assert outside.why == "/elsewhere/a is outside the workspace"
    assert outside.session_rule == "write(/elsewhere/a)"


@pytest.mark.parametrize(
    ("mode", "allow", "ask", "deny", "decision", "by"),
    [
        ("ask", (), (), (), "ask", "mode"),
        ("full", (), (), (), "ask", "mode"),
        ("plan", (), (), (), "deny", "mode"),
        ("plan", ("mcp__web",), (), (), "deny", "mode"),
        ("ask", ("mcp__web",), (), (), "allow", "rule"),
        ("ask", ("mcp__web",), ("mcp__web__search",), (), "ask", "rule"),
        ("full", ("mcp__web__search",), (), ("mcp__web__*",), "deny", "rule"),
        ("ask", ("mcp__we",), (), (), "ask", "mode"),
    ],
)
def test_only_rules_allow_a_tool_of_another_program(
    mode: PermissionMode,
    allow: tuple[str, ...],
    ask: tuple[str, ...],
    deny: tuple[str, ...],
    decision: str,
    by: str,
):
    engine = _approvals(mode, allow=allow, ask=ask, deny=deny)
    verdict = engine.judge("mcp__web__search", Intent(title="search", access="outside"))
    assert (verdict.decision, verdict.by) == (decision, by)
    assert verdict.session_rule == ("mcp__web__search" if decision == "ask" else "")


def test_taking_back_a_rule_of_the_session_leaves_the_projects_alike(tmp_path: Path):
    approvals = _approvals(rules_file=tmp_path / "rules.toml")
    approvals.add_project_rule("bash(make)")
    approvals.add_session_rule("bash(make)")
    approvals.remove_rule(approvals.rules[-1])
    assert [rule.source for rule in approvals.rules] == ["project"]


def test_a_rule_allows_a_call_only_if_it_covers_every_file():
    approvals = _approvals(allow=("write(docs/**)",))
    inside, outside = Path("/ws/project/docs/a.md"), Path("/ws/project/src/a.py")
    both = Intent(title="two", access="write", paths=(inside, outside))
    assert approvals.judge("write", _file("write", inside)).decision == "allow"
    assert approvals.judge("write", both).decision == "ask"


def test_no_rule_is_offered_for_a_file_whose_name_is_a_pattern():
    verdict = _approvals().judge("write", _file("write", "/ws/project/a*.py"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "")


def test_a_more_specific_allow_rule_lifts_an_ask_rule_for_a_command():
    approvals = _approvals(allow=("bash(make test)",), ask=("bash(make *)",))
    assert approvals.judge("bash", _bash("make test && ls")).decision == "allow"
    assert approvals.judge("bash", _bash("make install && ls")).decision == "ask"


def test_a_rule_with_arguments_allows_no_tool_of_another_program():
    outside = Intent(title="search", access="outside")
    named = _approvals(allow=("mcp__web__search",))
    narrowed = _approvals(allow=("mcp__web__search(cats)",))
    assert named.judge("mcp__web__search", outside).decision == "allow"
    assert narrowed.judge("mcp__web__search", outside).decision == "ask"


def test_a_rule_for_a_program_does_not_cover_options_that_run_others():
    approvals = _approvals(allow=("bash(tar *)",))
    assert approvals.judge("bash", _bash("tar tf a.tar")).decision == "allow"
    assert approvals.judge("bash", _bash("tar cf a.tar --to-command=sh b")).decision == "ask"


def test_of_two_rules_for_a_file_that_the_shell_writes_the_more_specific_one_holds():
    for allow, ask, decision in (
        ("write(out/**)", "write(out/a)", "ask"),
        ("write(out/a)", "write(out/**)", "allow"),
    ):
        rules = _approvals(allow=(allow,), ask=(ask,))
        assert rules.judge("bash", _bash("ls > out/a")).decision == decision
