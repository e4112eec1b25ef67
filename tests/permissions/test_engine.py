import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.rule_book import RUN_SOURCE
from agent_tui.permissions.rules import parse_rule
from agent_tui.tools.base import Access, Intent
from tests.support.rows import each_row

_WORKSPACE = Path("/ws/project")
_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")


def _permissions(
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


def test_a_deny_rule_about_a_file_says_nothing_of_calls_without_files():
    permissions = _permissions(deny=("read(secrets/**)", "recall(secrets)"))
    assert permissions.judge("explore", Intent("explore", "read")).decision == "allow"
    assert permissions.judge("recall", Intent("recall", "none")).decision == "allow"


def _added(mode: PermissionMode) -> PermissionEngine:
    permissions = _permissions(mode)
    permissions.work_in((Path("/ws/other"),))
    return permissions


def test_an_added_folder_is_written_like_the_workspace_and_no_folder_beside_it():
    for path, decision in (
        ("/ws/other/src/a.py", "allow"),
        ("/ws/other-one/a.py", "ask"),
        ("/ws/other/.unknown/a", "ask"),
        ("/ws/other/Makefile", "allow"),
        ("/ws/other/.env", "ask"),
        ("/ws/other/.git/config", "ask"),
    ):
        assert _added("accept-edits").judge("write", _file("write", path)).decision == decision
    assert _added("ask").judge("write", _file("write", "/ws/other/a.py")).decision == "ask"
    assert _added("plan").judge("write", _file("write", "/ws/other/a.py")).decision == "deny"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("ls > ../other/out", "allow"),
        ("ls > ../other-one/out", "ask"),
        ("git -C ../other log", "allow"),
        ("git -C ../other-one log", "ask"),
    ],
)
def test_commands_may_do_in_an_added_folder_what_they_may_in_the_workspace(command, decision):
    assert _added("accept-edits").judge("bash", _bash(command)).decision == decision


def test_all_of_an_added_folder_is_not_deleted_unasked():
    verdict = _added("full").judge("bash", _bash("rm -rf /ws/other"))
    assert (verdict.decision, "all of" in verdict.why) == ("ask", True)
    assert _added("full").judge("bash", _bash("rm -rf /ws/other/build")).decision == "allow"


def _bash(command: str) -> Intent:
    return Intent(title=command, access="execute", command=command)


def _file(access: Access, path: str | Path) -> Intent:
    resolved = path if isinstance(path, Path) else Path(path)
    return Intent(title=str(path), access=access, paths=(resolved,))


@pytest.mark.parametrize("command", ["rm -rf ~", "sudo ls", "cp x ~/.bashrc", "dd of=/dev/sda"])
def test_no_rule_is_offered_for_what_always_asks(command: str):
    permissions = _permissions("full", allow=(f"bash(= {command})",))
    verdict = permissions.judge("bash", _bash(command))
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
    permissions = _permissions(mode, deny=("bash(rm *)",), allow=("bash(*)",))
    verdict = permissions.judge("bash", _bash(joint.format(*parts)))
    assert verdict.decision != "allow"


@each_row(
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
        permissions = _permissions(
            mode, deny=("bash(rm *)",), allow=("bash(*)", f"bash(= {command})")
        )
        assert permissions.judge("bash", _bash(command)).decision == "deny"


def test_a_deny_rule_still_holds_in_a_command_of_a_hundred_parts():
    command = "; ".join(["ls"] * 100 + ["rm x"])
    verdict = _permissions("full", deny=("bash(rm *)",)).judge("bash", _bash(command))
    assert verdict.decision == "deny"


def test_what_may_turn_out_to_be_denied_asks_in_full_mode():
    permissions = _permissions("full", deny=("bash(git push *)",))
    assert permissions.judge("bash", _bash("git $ACTION")).decision == "ask"
    assert permissions.judge("bash", _bash("git pull")).decision == "allow"
    hidden = permissions.judge("bash", _bash("ssh build git push origin"))
    assert (hidden.decision, hidden.by) == ("ask", "rule")
    assert "may apply to: ssh build git push origin" in hidden.why
    assert permissions.judge("bash", _bash("ssh build git pull")).decision == "allow"


def test_a_session_that_goes_on_keeps_what_was_decided_and_its_own_rules():
    before, after = _permissions(), _permissions()
    before.book.add_session_rule("bash(make *)")
    before.record("bash", _bash("ls"), before.judge("bash", _bash("ls")))
    after.continue_from(before)
    assert [record.what for record in after.log.latest] == ["ls"]
    assert after.judge("bash", _bash("make all")).decision == "allow"


def test_every_part_must_be_allowed():
    permissions = _permissions(allow=("bash(npm test)", "bash(git commit *)"))
    assert permissions.judge("bash", _bash("npm test")).decision == "allow"
    assert permissions.judge("bash", _bash("npm test && git commit -m x")).decision == "allow"
    assert permissions.judge("bash", _bash("npm test | head")).decision == "allow"
    verdict = permissions.judge("bash", _bash("npm test && npm run deploy"))
    assert (verdict.decision, verdict.why) == ("ask", "not known to be read-only: npm run deploy")
    assert permissions.judge("bash", _bash("npm test > out.txt")).decision == "ask"
    assert permissions.judge("bash", _bash("git commit -m $(rm x)")).decision == "ask"
    assert permissions.judge("bash", _bash("A=1 npm test")).decision == "ask"
    assert permissions.judge("bash", _bash("timeout 60 npm test")).decision == "allow"


def test_the_most_specific_of_ask_and_allow_wins_and_deny_beats_both():
    permissions = _permissions(
        allow=("bash(git *)", "bash(git push origin x)"),
        ask=("bash(git push *)",),
        deny=("bash(git push --force *)",),
    )
    assert permissions.judge("bash", _bash("git pull")).decision == "allow"
    assert permissions.judge("bash", _bash("git push")).decision == "ask"
    assert permissions.judge("bash", _bash("git push origin x")).decision == "allow"
    assert permissions.judge("bash", _bash("git push --force origin x")).decision == "deny"


def test_shell_writes_follow_the_rules_for_files():
    accept = _permissions("accept-edits", deny=("write(dist/**)",))
    assert accept.judge("bash", _bash("echo x > a.txt")).decision == "allow"
    assert accept.judge("bash", _bash("echo x > /elsewhere/a.txt")).decision == "ask"
    assert accept.judge("bash", _bash("cd /elsewhere && echo x > a.txt")).decision == "ask"
    assert accept.judge("bash", _bash("echo x > dist/a")).decision == "deny"
    assert accept.judge("bash", _bash("make")).decision == "ask"
    ruled = _permissions(allow=("write(out/**)",))
    assert ruled.judge("bash", _bash("ls > out/list")).decision == "allow"


@each_row(
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
    assert _permissions(mode).judge("write", _file("write", path)).decision == decision
    assert _permissions(mode).judge("edit", _file("write", path)).decision == decision


@each_row(
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
        permissions = _permissions(mode, allow=("write(*)", "write(**)", f"write({path})"))
        verdict = permissions.judge("write", _file("write", target))
        assert (verdict.decision, verdict.session_rule) == ("ask", ""), mode


@each_row(
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
        assert _permissions(mode).judge("read", _file("read", path)).decision == decision


def test_searching_the_home_folder_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home, workspace = tmp_path / "home", tmp_path / "home" / "project"
    workspace.mkdir(parents=True)
    monkeypatch.setattr("pathlib.Path.home", lambda: home)
    permissions = _permissions(workspace=workspace)
    assert permissions.judge("grep", _file("read", workspace)).decision == "allow"
    assert permissions.judge("grep", _file("read", home)).decision == "ask"
    assert permissions.judge("ls", _file("read", home)).decision == "allow"


def test_a_link_in_a_command_is_followed(tmp_path: Path):
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "innocent").symlink_to(".env")
    verdict = _permissions(workspace=tmp_path).judge("bash", _bash("cat innocent"))
    assert verdict.decision == "ask"
    assert "may contain keys" in verdict.why


def test_a_file_pattern_that_takes_in_a_key_asks(tmp_path: Path):
    (tmp_path / "server.pem").touch()
    (tmp_path / ".env").touch()
    permissions = _permissions(workspace=tmp_path)
    assert permissions.judge("bash", _bash("cat *.pem")).decision == "ask"
    assert permissions.judge("bash", _bash("cat s*")).decision == "ask"
    assert permissions.judge("bash", _bash("cat .e*")).decision == "ask"
    assert permissions.judge("bash", _bash("cat *.py")).decision == "allow"


def test_path_rules_for_files():
    permissions = _permissions(allow=("write(docs/**)",), deny=("write(docs/secret/**)", "read(x)"))
    assert permissions.judge("edit", _file("write", "/ws/project/docs/a")).decision == "allow"
    assert (
        permissions.judge("write", _file("write", "/ws/project/docs/secret/a")).decision == "deny"
    )
    assert permissions.judge("write", _file("write", "/ws/project/docs-evil")).decision == "ask"
    assert permissions.judge("grep", _file("read", "/ws/project/x")).decision == "deny"


def test_a_session_rule_allows_exactly_what_was_shown():
    permissions = _permissions()
    verdict = permissions.judge("bash", _bash("pytest -q tests"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "bash(pytest -q tests)")
    permissions.book.add_session_rule(verdict.session_rule)
    assert permissions.judge("bash", _bash("pytest -q tests")).decision == "allow"
    assert permissions.judge("bash", _bash("pytest -q tests; rm x")).decision == "ask"
    assert permissions.judge("bash", _bash("pytest -q tests > x")).decision == "ask"
    write = permissions.judge("edit", _file("write", "/ws/project/a.py"))
    assert write.session_rule == "write(a.py)"
    permissions.book.add_session_rule(write.session_rule)
    assert permissions.judge("write", _file("write", "/ws/project/a.py")).decision == "allow"
    assert permissions.judge("write", _file("write", "/ws/project/b.py")).decision == "ask"


@pytest.mark.parametrize("command", ["npm test && make $X > out", "rm *", "X=1 make | tee log"])
def test_a_session_rule_for_a_compound_command_is_its_exact_text(command: str):
    permissions = _permissions()
    rule = permissions.judge("bash", _bash(command)).session_rule
    assert rule == f"bash(= {command})"
    permissions.book.add_session_rule(rule)
    assert permissions.judge("bash", _bash(command)).decision == "allow"
    assert permissions.judge("bash", _bash(f"{command} extra")).decision == "ask"
    assert permissions.judge("bash", _bash("rm x")).decision == "ask"


def test_what_cannot_be_parsed_asks_and_makes_no_rule():
    verdict = _permissions("full", allow=("bash(*)",)).judge("bash", _bash("echo 'open"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "")
    assert "cannot be checked" in verdict.why


def test_project_rules_are_kept_in_a_private_file(tmp_path: Path):
    path = tmp_path / "projects" / "p" / "permissions.toml"
    _permissions(rules_file=path).book.add_project_rule("bash(make)")
    _permissions(rules_file=path).book.add_project_rule("bash(make)")
    _permissions(rules_file=path).book.add_project_rule('bash(= echo "a\nb" | tee x)')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [child.name for child in path.parent.iterdir()] == ["permissions.toml"]
    again = _permissions(rules_file=path)
    assert [str(rule) for rule in again.book.rules] == ["bash(make)", 'bash(= echo "a\nb" | tee x)']
    assert again.judge("bash", _bash("make")).decision == "allow"
    assert again.judge("bash", _bash('echo "a\nb" | tee x')).decision == "allow"


def test_the_project_file_keeps_comments_and_may_deny(tmp_path: Path):
    path = tmp_path / "permissions.toml"
    path.write_text('# mine\ndeny = ["bash(make *)"]\n')
    permissions = _permissions("full", rules_file=path)
    permissions.book.add_project_rule("bash(ls *)")
    assert path.read_text().startswith("# mine\n")
    assert permissions.judge("bash", _bash("make all")).decision == "deny"


def test_a_newer_rule_of_the_same_source_replaces_the_one_alike(tmp_path: Path):
    path = tmp_path / "permissions.toml"
    path.write_text('# mine\nask = ["bash(make)", "bash(ls)"]\n')
    permissions = _permissions(rules_file=path)
    permissions.book.add_project_rule("bash(make)")
    assert path.read_text() == '# mine\nask = ["bash(ls)"]\nallow = ["bash(make)"]\n'
    permissions.book.add_session_rule("bash(make)", "deny")
    permissions.book.add_session_rule("bash(make)", "ask")
    assert permissions.judge("bash", _bash("make")).decision == "allow"
    found = [(rule.decision, str(rule), rule.source) for rule in permissions.book.rules]
    assert found == [
        ("ask", "bash(ls)", "project"),
        ("allow", "bash(make)", "project"),
        ("ask", "bash(make)", "session"),
    ]


def test_broken_rules_are_reported_and_the_others_hold(tmp_path: Path):
    path = tmp_path / "permissions.toml"
    path.write_text("allow = [")
    permissions = _permissions(rules_file=path, allow=("bash(make)", "bash("))
    assert len(permissions.book.problems) == 2
    assert "bash(" in permissions.book.problems[0]
    assert str(path) in permissions.book.problems[1]
    assert permissions.judge("bash", _bash("make")).decision == "allow"


def test_a_rules_file_that_cannot_be_written_is_said_and_the_rule_holds(tmp_path: Path):
    (tmp_path / "file").touch()
    permissions = _permissions(rules_file=tmp_path / "file" / "permissions.toml")
    with pytest.raises(ConfigError, match="cannot save"):
        permissions.book.add_project_rule("bash(make)")
    assert permissions.judge("bash", _bash("make")).decision == "allow"


def test_without_a_terminal_what_would_ask_is_denied_with_a_reason():
    permissions = _permissions(is_interactive=False)
    verdict = permissions.judge("bash", _bash("make"))
    assert verdict.decision == "deny"
    assert "this run cannot ask" in verdict.why
    assert permissions.judge("bash", _bash("ls")).decision == "allow"
    assert permissions.judge("write", _file("write", "/ws/project/a")).decision == "deny"


def test_the_mode_can_change_and_the_plan_tool_is_free():
    permissions = _permissions("plan")
    assert permissions.judge("todo", Intent(title="plan", access="none")).decision == "allow"
    permissions.mode = "full"
    assert permissions.judge("bash", _bash("make")).decision == "allow"


def test_without_a_home_folder_the_rest_is_judged_all_the_same(tmp_path, monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user the system lacks
    permissions = _permissions(workspace=tmp_path)
    intent = Intent(title="read", access="read", paths=(tmp_path / "a.txt",))
    assert permissions.judge("read", intent).decision == "allow"


def test_of_an_ask_and_an_allow_rule_alike_the_one_that_asks_holds(tmp_path: Path):
    rules_file = tmp_path / "rules.toml"
    rules_file.write_text('ask = ["write(docs/a.md)"]\n')
    permissions = _permissions("full", allow=("write(docs/a.md)",), rules_file=rules_file)
    assert not permissions.book.problems
    assert permissions.judge("write", _file("write", "/ws/project/docs/a.md")).decision == "ask"


def test_a_rule_that_could_not_be_saved_is_one_of_the_session(tmp_path: Path):
    (tmp_path / "file").write_text("")
    permissions = _permissions(rules_file=tmp_path / "file" / "rules.toml")
    with pytest.raises(ConfigError):
        permissions.book.add_project_rule("bash(make)")
    assert [rule.source for rule in permissions.book.rules] == ["session"]


def test_it_is_said_whether_a_rule_or_the_mode_allowed_a_command():
    permissions = _permissions(allow=("bash(make *)",))
    assert permissions.judge("bash", _bash("make it")).by == "rule"
    assert permissions.judge("bash", _bash("ls")).by == "mode"


@each_row(
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
    engine = _permissions(
        allow=("write(allowed)",), ask=("write(asked)",), deny=("write(denied)", "read(denied)")
    )
    assert engine.judge(access, _file(access, _WORKSPACE / path)).by == by


@each_row(
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
    engine = _permissions(
        allow=("bash(npm test)",),
        ask=("bash(git push *)",),
        deny=("bash(rm *)", "write(denied)"),
    )
    assert engine.judge("bash", _bash(command)).by == by


def test_a_verdict_names_the_parts_and_files_it_is_bound_to():
    verdict = _permissions().judge("bash", _bash("cat a && cat a | make b"))
    assert verdict.parts == ("cat a", "make b")
    assert set(verdict.touched) >= {_WORKSPACE / "a", _WORKSPACE / "b"}
    write = _permissions().judge("write", _file("write", "/ws/project/a"))
    assert (write.parts, write.touched) == (("/ws/project/a",), (_WORKSPACE / "a",))


@each_row(
    ("command", "why"),
    [
        ("ls; rm -rf /; ls", "rm -rf /: recursive rm"),
        ("ls && timeout 5 rm -rf /", "timeout 5 rm -rf /: recursive rm"),
        ("ls; rm -rf /a; mkfs x", "mkfs x: mkfs changes the system"),
        ("ls; git push -f", "git push -f discards work or history"),
        ("ls && echo a > $x", "> $x: $x is known only"),
        ("ls; echo a > /dev/sda", "> /dev/sda: /dev/sda is a device"),
        ("ls; cat ~/.ssh/id_rsa", "cat ~/.ssh/id_rsa: "),
        ("ls; $x", "$x: the program's name"),
        ("ls\ncat <(\nls", "not understood, in: "),
        ("ls\necho a\u200bb\nls", "(ZERO WIDTH SPACE), in: echo a\u200bb"),
        ("ls\n: a#b `c \\`d\\``\nls", ", in: : a#b"),
    ],
)
def test_what_asks_of_a_compound_command_names_its_part(command: str, why: str):
    verdict = _permissions("full").judge("bash", _bash(command))
    assert verdict.decision == "ask"
    assert why in verdict.why
    assert verdict.is_compound


@each_row(
    ("mode", "command", "leaves_some"),
    [
        ("full", "ls; rm -rf $x/", True),
        ("full", "f=a; rm -rf $x/", False),
        ("full", "for f in a b; do rm -rf $f/../..; done", False),
        ("ask", "cd sub && make", True),
        ("ask", "npm test && make", False),
        ("ask", "ls; false ls", True),
        ("plan", "make; git commit -m x", False),
    ],
)
def test_the_rest_of_a_command_is_told_of_where_there_is_one(
    mode: PermissionMode, command: str, leaves_some: bool
):
    assert _permissions(mode).judge("bash", _bash(command)).is_compound is leaves_some


@pytest.mark.parametrize("command", ["rm -rf /", "timeout 5 rm -rf /", "rm -rf / > a", "cat <("])
def test_what_asks_of_one_command_does_not_repeat_it(command: str):
    verdict = _permissions("full").judge("bash", _bash(command))
    assert verdict.why.startswith(("recursive rm", "the command cannot be checked"))
    assert ", in:" not in verdict.why
    assert not verdict.is_compound


def test_a_part_is_named_once_for_itself_and_what_it_wraps():
    why = _permissions("full").judge("bash", _bash("ls; timeout 5 rm -rf /")).why
    assert why.count("recursive rm") == 1


def test_what_a_deny_rule_forbids_names_the_part():
    permissions = _permissions("full", deny=("read(private/**)",))
    verdict = permissions.judge("bash", _bash("ls; cat private/x; ls"))
    assert (verdict.decision, verdict.why.startswith("cat private/x: ")) == ("deny", True)
    verdict = permissions.judge("bash", _bash("ls; wc < private/x; ls"))
    assert (verdict.decision, verdict.why.startswith("< private/x: ")) == ("deny", True)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("ls; make a; ls", "Not known to be read-only: make a."),
        ("ls; echo a > f", "It writes /ws/project/f."),
        ("ls; ls > $x", "It needs approval: > $x: $x is known"),
    ],
)
def test_what_plan_mode_refuses_names_the_part(command: str, part: str):
    verdict = _permissions("plan").judge("bash", _bash(command))
    assert (verdict.decision, part in verdict.why) == ("deny", True)


def test_the_reason_names_up_to_three_parts_that_need_a_rule():
    why = _permissions().judge("bash", _bash("make a; make b; make c; make d")).why
    assert why == "not known to be read-only: make a; make b; make c; and 1 more"
    assert _permissions().judge("bash", _bash("make a")).why == "not known to be read-only"


def test_the_reason_names_first_what_removes_something():
    why = _permissions().judge("bash", _bash("make a; make b; make c; rm -rf build")).why
    assert why == "not known to be read-only: rm -rf build; make a; make b; and 1 more"


def test_the_person_is_told_why_a_file_asks():
    permissions = _permissions("accept-edits")
    inside = _permissions().judge("write", _file("write", "/ws/project/a"))
    assert inside.why == "changes a file"
    outside = permissions.judge("write", _file("write", "/elsewhere/a"))
    assert outside.why == "writes outside the folder: /elsewhere/a"
    assert outside.session_rule == "write(/elsewhere/a)"


@each_row(
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
    engine = _permissions(mode, allow=allow, ask=ask, deny=deny)
    verdict = engine.judge("mcp__web__search", Intent(title="search", access="outside"))
    assert (verdict.decision, verdict.by) == (decision, by)
    assert verdict.session_rule == ("mcp__web__search" if decision == "ask" else "")


def test_taking_back_a_rule_of_the_session_leaves_the_projects_alike(tmp_path: Path):
    permissions = _permissions(rules_file=tmp_path / "rules.toml")
    permissions.book.add_project_rule("bash(make)")
    permissions.book.add_session_rule("bash(make)")
    permissions.book.remove_rule(permissions.book.rules[-1])
    assert [rule.source for rule in permissions.book.rules] == ["project"]


def test_a_rule_allows_a_call_only_if_it_covers_every_file():
    permissions = _permissions(allow=("write(docs/**)",))
    inside, outside = Path("/ws/project/docs/a.md"), Path("/ws/project/src/a.py")
    both = Intent(title="two", access="write", paths=(inside, outside))
    assert permissions.judge("write", _file("write", inside)).decision == "allow"
    assert permissions.judge("write", both).decision == "ask"


def test_no_rule_is_offered_for_a_file_whose_name_is_a_pattern():
    verdict = _permissions().judge("write", _file("write", "/ws/project/a*.py"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "")


def test_a_more_specific_allow_rule_lifts_an_ask_rule_for_a_command():
    permissions = _permissions(allow=("bash(make test)",), ask=("bash(make *)",))
    assert permissions.judge("bash", _bash("make test && ls")).decision == "allow"
    assert permissions.judge("bash", _bash("make install && ls")).decision == "ask"


def test_a_rule_with_arguments_allows_no_tool_of_another_program():
    outside = Intent(title="search", access="outside")
    for rules in (("tool(weather)",), ("tool(*)",)):
        assert _permissions(allow=rules).judge("weather", outside).decision == "allow"
        assert _permissions(allow=rules).judge("mcp__web__search", outside).decision == "ask"
        denied = _permissions(allow=rules, deny=("tool(weather)",))
        assert denied.judge("weather", outside).decision == "deny"
    unruled = _permissions(allow=("tool(forecast)",)).judge("weather", outside)
    assert (unruled.decision, unruled.session_rule) == ("ask", "tool(weather)")
    named = _permissions(allow=("mcp__web__search",))
    narrowed = _permissions(allow=("mcp__web__search(cats)",))
    assert named.judge("mcp__web__search", outside).decision == "allow"
    assert narrowed.judge("mcp__web__search", outside).decision == "ask"


def test_a_rule_with_a_star_allows_the_program_and_nothing_beside_it():
    permissions = _permissions(allow=("bash(tar *)",))
    assert permissions.judge("bash", _bash("tar cf a.tar --to-command=sh b")).decision == "allow"
    assert permissions.judge("bash", _bash("tar tf a.tar; sh b")).decision == "ask"
    assert permissions.judge("bash", _bash("tar cf a.tar .env")).decision == "ask"


def test_of_two_rules_for_a_file_that_the_shell_writes_the_more_specific_one_holds():
    for allow, ask, decision in (
        ("write(out/**)", "write(out/a)", "ask"),
        ("write(out/a)", "write(out/**)", "allow"),
    ):
        rules = _permissions(allow=(allow,), ask=(ask,))
        assert rules.judge("bash", _bash("ls > out/a")).decision == decision


def test_rules_of_the_command_line_hold_beside_the_others_and_are_not_taken_back():
    permissions = _permissions(deny=("bash(git push *)",))
    permissions.book.add_run_rules(
        (
            parse_rule("bash(git push *)", "allow", RUN_SOURCE),
            parse_rule("bash(make *)", "allow", RUN_SOURCE),
            parse_rule("read(notes/**)", "deny", RUN_SOURCE),
        )
    )
    assert permissions.judge("bash", _bash("make all")).decision == "allow"
    assert permissions.judge("bash", _bash("git push x")).decision == "deny"
    assert permissions.judge("read", _file("read", _WORKSPACE / "notes/a")).decision == "deny"
    with pytest.raises(ConfigError, match="comes from the command line"):
        permissions.book.remove_rule(permissions.book.rules[-1])


def test_a_search_leaves_out_what_is_denied_or_asks_unless_the_search_itself_asked():
    permissions = _permissions(deny=("read(secrets/**)", "read(.aws/kept)"))
    held = permissions.search_filter(_WORKSPACE)
    for name, is_held in (("secrets/a", True), (".aws/credentials", True), ("src/a", False)):
        assert held(_WORKSPACE / name) is is_held
    agreed = permissions.search_filter(_WORKSPACE / ".aws")
    assert not agreed(_WORKSPACE / ".aws" / "credentials")
    assert agreed(_WORKSPACE / ".aws" / "kept")


def test_commands_may_see_a_file_with_keys_that_a_rule_names_and_no_other():
    def may_show(name: str, **rules: Any) -> bool:
        return _permissions(**rules).may_show(_WORKSPACE / name)

    assert may_show(".env", allow=("read(.env)",))
    assert may_show("app/.env", allow=("read(**/.env)",))
    assert not may_show(".env", allow=("read",))
    assert not may_show(".env.local", allow=("read(.env)",))
    assert not may_show(".env", allow=("read(.env)",), deny=("read(.env)",))


@pytest.mark.skipif(shutil.which("git") is None, reason="uses git")
@each_row(
    ("settings", "asks", "does_not_ask"),
    [
        ("git config core.hooksPath tools/hooks", "tools/hooks/pre-push", "tools/a.py"),
        ("git config core.hooksPath .", "pre-push", "src/pre-push"),
        ("git config --global core.hooksPath ci/hooks", "ci/hooks/lib/a.sh", "ci/a.sh"),
        ("git config include.path ../git.inc", "git.inc", "git.txt"),
        ("ln -s dots/gitconfig .gitconfig", "x/pre-push", "y/pre-push"),
        ("git config --global include.path $PWD/missing", "missing", "missing.txt"),
        ("git config --global init.templateDir $PWD/t", "t/hooks/a", "u/hooks/a"),
        ("rm -r .git; git config --global include.path $PWD/git.inc", "git.inc", "git.txt"),
    ],
)
def test_an_edit_of_what_gits_settings_name_is_asked_about(
    tmp_path_factory: pytest.TempPathFactory, settings: str, asks: str, does_not_ask: str
):
    home = tmp_path_factory.mktemp("home").resolve()
    (home / "dots").mkdir()
    (home / "dots/gitconfig").write_text("[core]\n\thooksPath = x\n")
    workspace = home / "proj"
    where = {"cwd": workspace, "env": {"HOME": str(home), "PATH": os.defpath}, "check": True}
    workspace.mkdir()
    (workspace / "git.inc").touch()
    script = f"git init -q; {settings}"
    subprocess.run(["bash", "-ec", script.replace("ln -s", "cd ..; ln -s")], **where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        permissions = _permissions("accept-edits", workspace=workspace)
    verdict = permissions.judge("write", _file("write", str(workspace / asks)))
    assert (verdict.decision, verdict.why) == ("ask", f"{workspace / asks} controls git")
    verdict = permissions.judge("write", _file("write", str(workspace / does_not_ask)))
    assert verdict.decision == "allow"


def test_an_edit_in_a_workspace_that_programs_follow_is_asked_about(
    tmp_path_factory: pytest.TempPathFactory,
):
    workspace = tmp_path_factory.mktemp("project").resolve() / ".claude"
    (workspace / "worktrees/x").mkdir(parents=True)
    permissions = _permissions("accept-edits", workspace=workspace)
    verdict = permissions.judge("write", _file("write", str(workspace / "commands/a.md")))
    assert verdict.decision == "ask"
    assert "controls an agent" in verdict.why
    verdict = permissions.judge("write", _file("write", str(workspace / "worktrees/x/a.py")))
    assert verdict.decision == "allow"


@each_row(
    ("folder", "name", "who"),
    [
        (".github", "copilot-instructions.md", "an agent"),
        (".github", "workflows/ci.yml", "CI"),
        (".github", "FUNDING.yml", ""),
        (".github/skills", "x/SKILL.md", "an agent"),
        (".claude/skills/x", "SKILL.md", "an agent"),
        (".config", "mise.toml", "mise"),
        (".config", "app.py", ""),
    ],
)
def test_the_folders_around_the_workspace_say_who_follows_an_edited_file(
    folder: str, name: str, who: str, tmp_path: Path
):
    workspace = tmp_path / folder
    (workspace / ".git").mkdir(parents=True, exist_ok=True)
    permissions = _permissions("accept-edits", workspace=workspace)
    verdict = permissions.judge("write", _file("write", str(workspace / name)))
    assert verdict.decision == ("ask" if who else "allow")
    assert not who or verdict.why.endswith(f"controls {who}")
