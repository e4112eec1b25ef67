"""What is known of a command before the mode counts."""

from pathlib import Path

import pytest

from agent_tui.permissions.command_judge import CommandFacts, CommandJudge
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.rules import Decision, parse_rule
from agent_tui.permissions.shell.parts import split_command


def _judge(workspace: Path, command: str, *rules: str) -> CommandJudge:
    texts = [rule.partition(" ") for rule in rules]
    kinds: dict[str, Decision] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    paths = ProtectedPaths(
        workspace=workspace,
        own_folders=(Path("/own"),),
        home=Path("/home/me"),
        git_risk=lambda _folder: "",
    )
    parsed = [parse_rule(text, kinds[kind]) for kind, _, text in texts]
    return CommandJudge(paths, parsed, command, split_command(command))


def _facts(workspace: Path, command: str, *rules: str) -> CommandFacts:
    return _judge(workspace, command, *rules).facts


def test_parts_are_told_apart_by_what_is_known_of_them(tmp_path: Path):
    facts = _facts(tmp_path, "ls; make a; make b > f; $x", "allow bash(make a)")
    assert facts.changing == ("make a", "make b", "$x")
    assert facts.unlisted == ("make b", "$x")
    assert facts.unknown == ("$x: the program's name is known only at run time",)
    assert facts.written == (tmp_path / "f",)
    assert (facts.denied, facts.asked, facts.dangers) == ("", "", ())


def test_what_a_rule_denies_or_asks_is_said_with_the_part(tmp_path: Path):
    rules = ("deny bash(rm *)", "ask bash(make *)", "allow bash(make a)")
    assert _facts(tmp_path, "ls; rm x", *rules).denied == (
        "the deny rule bash(rm *) applies to: rm x"
    )
    asked = _facts(tmp_path, "make b", *rules).asked
    assert asked == "the ask rule bash(make *) applies to: make b"
    assert _facts(tmp_path, "make $x", *rules).asked
    assert _facts(tmp_path, "make a", *rules).asked == ""


def test_a_long_part_is_named_by_its_beginning_on_one_line(tmp_path: Path):
    (named,) = _facts(tmp_path, f"make \\\n {'a' * 100}").unlisted
    assert named.startswith("make \\ aaa")
    assert named.endswith("a…")
    assert len(named) == 80


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat .e*",
        "grep x .env",
        "cat < .env",
        "f=.env; cat $f",
        "make .git/config",
        "cat sub/x.pem",
        "cd sub; cat x.pem",
        "cd sub && cat < x.pem",
        "git -C sub show HEAD:x.pem",
        "ls | xargs cat .env",
        "echo x > .git/config",
        "echo x > $f",
        "echo x > /dev/sda",
        "echo x > /etc/x",
        "cp a /own/x",
        "ls /own",
        "grep x /own",
    ],
)
def test_a_protected_file_makes_a_command_a_danger(tmp_path: Path, command: str):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.pem").touch()
    (tmp_path / ".env").touch()
    assert _facts(tmp_path, command).dangers


@pytest.mark.parametrize(
    "command",
    [
        "ls -la .env",
        "echo .env",
        "ls sub/*.pem",
        "git ls-files .env",
        "cat a > b",
        "cat a > /dev/null",
        "make x 2>&1 < a",
        "find . -name x",
        "nice cat a",
    ],
)
def test_names_alone_and_other_files_make_none(tmp_path: Path, command: str):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.pem").touch()
    (tmp_path / ".env").touch()
    assert _facts(tmp_path, command).dangers == ()


@pytest.mark.parametrize(
    ("command", "needs_a_rule"),
    [
        ("grep -r x .", True),
        ("grep -r x", True),
        ("grep -r x sub", True),
        ("grep -r x sub other", True),
        ("rg x", True),
        ("rg x sub", True),
        ("cd sub; rg x", True),
        ("cd sub; rg x other", True),
        ("diff -r sub other", True),
        ("rg x other", False),
        ("rg --hidden x other", True),
        ("grep -r --include='*.py' x", False),
    ],
)
def test_a_search_through_folders_with_keys_needs_a_rule(
    tmp_path: Path, command: str, needs_a_rule: bool
):
    for name in ("sub/x.pem", "other/.env", "other/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    facts = _facts(tmp_path, command)
    assert bool(facts.unlisted) is needs_a_rule
    assert facts.dangers == ()


def test_a_version_that_a_file_of_the_project_chooses_needs_a_rule(tmp_path: Path):
    assert _facts(tmp_path, "cargo --version").unlisted == ()
    (tmp_path / "rust-toolchain").touch()
    assert "decides which" in _facts(tmp_path, "cargo --version").unlisted[0]
    assert _facts(tmp_path, "python --version").unlisted == ()


def test_every_file_that_is_named_or_written_is_touched(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    facts = _facts(tmp_path, "cd sub; cat a > b")
    assert {tmp_path / "a", tmp_path / "sub" / "a", tmp_path / "sub" / "b"} <= set(facts.touched)


def test_rules_for_files_hold_for_the_words_of_a_command(tmp_path: Path):
    rules = ("deny read(private/**)", "deny write(dist/**)")
    assert "private/a" in _facts(tmp_path, "cat private/a", *rules).denied
    assert "dist/a" in _facts(tmp_path, "make dist/a", *rules).denied
    assert _facts(tmp_path, "cd private; cat a", *rules).denied
    assert _facts(tmp_path, "cat dist/a", *rules).denied == ""
    assert _facts(tmp_path, "echo private/a", *rules).denied == ""


def test_git_in_another_repository_needs_the_rule_for_everything(tmp_path: Path):
    inner = tmp_path / "vendor"
    (inner / ".git").mkdir(parents=True)
    told = _facts(tmp_path, "git -C vendor log", "allow bash(git *)")
    assert told.unlisted == (f"git -C vendor log ({inner} is a separate repository)",)
    assert _facts(tmp_path, "cd vendor; git log").unlisted
    assert _facts(tmp_path, "git log").unlisted == ()
    assert "outside the folder" in _facts(tmp_path, "git -C .. log").unlisted[0]
    assert _facts(tmp_path, "git -C vendor log", "allow bash(*)").unlisted == ()


def test_a_command_through_very_many_folders_is_a_danger(tmp_path: Path):
    few = "; ".join(f"cd d{number}" for number in range(2))
    many = "; ".join(f"cd d{number}" for number in range(40))
    assert _facts(tmp_path, few).dangers == ()
    assert "too many folders" in _facts(tmp_path, many).dangers[0]


@pytest.mark.parametrize(
    ("command", "may_be"),
    [
        ("git $x", True),
        ("$x", True),
        ("ssh host git push", True),
        ("foo -c 'git push'", True),
        ("git pull", False),
        ("echo git push", False),
        ("ls", False),
    ],
)
def test_a_deny_rule_may_turn_out_to_hold(tmp_path: Path, command: str, may_be: bool):
    assert bool(_judge(tmp_path, command, "deny bash(git push *)").may_be_denied()) is may_be
    assert _judge(tmp_path, command, "ask bash(git push *)").may_be_denied() == ""


def test_a_search_of_folders_with_a_denied_file_is_not_taken_for_free(tmp_path: Path):
    for name in ("private", "src"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
    rules = ("deny read(private/**)", "allow bash(grep *)")
    for command in ("grep -r x .", "rg x", "cd src; grep -r x ..", "diff -r src ."):
        told = _judge(tmp_path, command, *rules).may_be_denied()
        assert told.endswith(f"searches {tmp_path / 'private' / 'a'}, which a deny rule covers")
        assert not _facts(tmp_path, command, *rules).is_reading
    for command in ("grep -r x src", "grep x src/a", "rg x src"):
        assert _judge(tmp_path, command, *rules).may_be_denied() == ""
        assert _facts(tmp_path, command, *rules).is_reading
