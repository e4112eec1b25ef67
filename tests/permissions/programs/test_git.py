"""Which git commands only look, and where git is told to run."""

from agent_tui.permissions.programs.read_only import git_folders, git_only_reads
from tests.support.rows import each_row


@each_row(
    "command",
    [
        "status -sb",
        "log --oneline -5 -- src",
        "-C sub --no-pager log",
        "-P diff HEAD~1",
        "show HEAD:a.py",
        "branch",
        "branch -a",
        "branch --contains main",
        "branch --list x y",
        "branch --sort=x",
        "tag",
        "tag -l v1",
        "tag --list v1",
        "config -l",
        "config --get user.name",
        "config user.name",
        "config list",
        "config get user.name",
        "config --get-regexp user",
        "reflog",
        "reflog -5",
        "reflog show main",
        "remote",
        "remote -v",
        "remote get-url origin",
        "stash list",
        "stash show -p",
        "worktree list",
        "symbolic-ref HEAD",
        "notes show HEAD",
        "--version",
        "blame -L 1,5 a.py",
        "log -1 -p --no-ext-diff --no-textconv",
    ],
)
def test_looking_is_known(command: str):
    assert git_only_reads(command.split())


@each_row(
    "command",
    [
        "",
        "-C sub",
        "-C",
        "-c core.pager=x log",
        "--git-dir=x log",
        "commit -m x",
        "log --output=f",
        "log --format=%GG",
        "log --format=%(signature)",
        "diff --ext-diff",
        "grep --no-exclude-standard x",
        "branch new",
        "branch -d old",
        "branch -D --list old",
        "branch --contains main -D",
        "branch --merged -f x",
        "tag v1",
        "tag -d v1",
        "tag -l -d v1",
        "tag v1 -l -f",
        "config name",
        "config edit",
        "config user.name me",
        "config --unset user.name",
        "config --get user.name --edit",
        "config set user.name me",
        "reflog delete x",
        "reflog expire",
        "remote add x y",
        "remote -v update",
        "stash",
        "stash pop",
        "worktree add x",
        "symbolic-ref HEAD refs/heads/x",
        "notes",
        "blame --contents f a.py",
        "unknown",
    ],
)
def test_what_changes_runs_or_is_not_known_is_not_looking(command: str):
    assert not git_only_reads(command.split())


@each_row(
    ("command", "folders"),
    [
        ("log", []),
        ("-C sub log", ["sub"]),
        ("-C a -C b log", ["a", "b"]),
        ("--no-pager -C sub log", ["sub"]),
        ("-c x=y -C sub log", []),
        ("log -C sub", []),
        ("-C", []),
    ],
)
def test_the_folders_before_the_verb_are_told(command: str, folders: list[str]):
    assert git_folders(command.split()) == folders


def test_a_folder_only_the_run_will_tell_is_not_named():
    assert git_folders(["-C", None, "-C", "sub", "log"]) == ["sub"]
    assert git_folders([None, "-C", "sub"]) == []
