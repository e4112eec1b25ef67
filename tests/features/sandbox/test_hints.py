import pytest

from agent_tui.features.sandbox.hints import WallView, errors_in, paths_in, stray_hint, wall_hint
from tests.support.rows import each_row

HOME = "/home/ada"


@each_row(
    ("output", "said"),
    [
        ("curl: (6) Could not resolve host: example.org", "hosts that are allowed"),
        ("npm ERR! getaddrinfo EAI_AGAIN registry", "hosts that are allowed"),
        ("curl: (56) CONNECT tunnel failed, response 403", "hosts that are allowed"),
        ("curl: (56) CONNECT tunnel failed, response 424", ""),
        (
            "curl: (7) Failed to connect to 127.0.0.1 port 5432: Couldn't connect",
            "its own loopback",
        ),
        ("connect ECONNREFUSED ::1:5432", "its own loopback"),
        ("connect ECONNREFUSED 192.0.2.1:5432", ""),
        ("touch: cannot touch '/x': Read-only file system", "only in the working folders"),
        ("error: could not write config file .git/config: Device or resource busy", "change git's"),
        ("error: HTTP request, but --offline was specified", "caches of the sandbox are separate"),
        ("hint: unavailable because the network was disabled", "caches of the sandbox"),
        ("error: gpg failed to sign the data", "signing keys"),
        ("fatal: could not read Username for 'https://git.example': x", "passwords and tokens"),
        ("npm ERR! code E401", "passwords and tokens"),
        ("assert response == 401", ""),
        ("mv: cannot move '.vscode': Device or resource busy", "holds this file"),
        ("warning: failed to remove .vscode/: Device or resource busy", "it made a stash"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "does not let"),
        ("cat: .env: Permission denied", "hides this file"),
        (
            "error: a/.env: can only add regular files, symbolic links or git-directories",
            "hides a/.env, as it may hold keys, so git added nothing: list it in .gitignore",
        ),
        ("error: .env: unsupported file type\nfatal: Unable to process path .env", "hides .env"),
        ("error: pipe: can only add regular files, symbolic links or git-directories", ""),
        ("cat: /home/ada/notes.md: No such file or directory", "of /home/ada, only"),
        ("cat: notes.md: No such file or directory", ""),
        ("cat: other: Permission denied", ""),
        ("fatal: could not create leading directories of '../x/.git': Permission denied", "/tmp"),
        ("mkdir: cannot create directory ‘../x’: Permission denied", "only in the working folders"),
        ("PermissionError: [Errno 13] Permission denied: '../x'", "only in the working folders"),
        ("mkdir: cannot create directory ‘x’: Permission denied", ""),
        ("E: Unable to acquire the dpkg frontend lock, are you root?", "does not let"),
        ('sudo: The "no new privileges" flag is set', "does not let"),
        ("bash: line 1: /tmp/x: Permission denied", ""),
        ("AssertionError", ""),
        ("FAILED test_app.py - the client is offline", ""),
        ("", ""),
    ],
)
def test_a_failure_is_explained_only_where_the_sandbox_is_the_likely_cause(output: str, said: str):
    hint = wall_hint(f"before\n{output}\nafter", WallView(HOME, [".env"]))
    assert said in hint
    assert bool(said) == bool(hint)
    assert ("outside: true" in hint) == bool(said)
    assert "\n" not in hint


@each_row(
    "line",
    [
        "error: unable to unlink old 'pkg/b/f': Read-only file system",
        "error: unable to create file pkg/b/new: Permission denied",
    ],
)
def test_a_switch_that_git_could_only_half_make_is_explained(line: str):
    output = f"{line}\nSwitched to branch 'other'"
    assert errors_in("git switch other", output) == line
    hint = wall_hint(line, WallView(HOME, top="/srv/mo no"))
    assert "check git status" in hint
    assert "--add-dir '/srv/mo no'" in hint
    assert "check git status" not in wall_hint(line, WallView(HOME))
    assert errors_in("cat log", "Permission denied") == ""


def test_what_will_be_gone_is_said():
    assert f"wrote {HOME}/notes.md, {HOME}/x, but" in stray_hint(["notes.md", "x"], HOME)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("bash: line 1: /tmp/x: Permission denied", "temporary files in $TMPDIR"),
        ("touch: cannot touch '/etc/x': Permission denied", "only in the working folders"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/x'", "only in the working folders"),
        ("ls: cannot access '/cache/home/.ssh': No such file or directory", "of /home/ada, only"),
        ("/bin/sh: 1: ./run: Permission denied", ""),
        ("curl: (7) Failed to connect to localhost port 9: Connection refused", ""),
    ],
)
def test_a_wall_that_denies_instead_of_hiding_is_explained(output: str, said: str):
    hint = wall_hint(output, WallView(HOME, stand_in="/cache/home"))
    assert said in hint
    assert bool(said) == bool(hint)


def test_nothing_is_said_of_the_network_where_a_package_is_only_not_found():
    output = "ERROR: No matching distribution found for nothere"
    assert wall_hint(output, WallView(HOME)) == ""


def test_no_way_out_is_offered_where_a_refused_host_is_told_with_what_allows_it():
    output = "Tunnel connection failed: 403 Forbidden"
    assert wall_hint(output, WallView(HOME), is_network_told=True) == ""
    assert "outside: true" not in wall_hint(
        "fatal: Branch is renamed, but update of config-file failed", WallView(HOME)
    )


@each_row(
    ("command", "output", "found"),
    [
        ("make | tail -3", "touch: cannot touch '/x': Read-only file system\nok", ["touch"]),
        ("npm i; echo", "npm ERR! getaddrinfo EAI_AGAIN", ["npm ERR!"]),
        ("pip install x 2>&1 | tail -1", "ERROR: No matching distribution found", ["ERROR:"]),
        ("./x || true", "bash: line 1: /srv/x: No such file or directory", ["bash:"]),
        ("cat log | tail", "12:00 could not resolve host\na.py:12:EPERM", []),
        ("grep -rn EPERM src | head", "src/a.py:12: raise OSError(EPERM)", []),
        ("cat notes | head", "the server says EPERM\ngot ENOTFOUND once", []),
        (
            "pre-commit install 2>&1 | tail",
            "An error has occurred: OSError: [Errno 30] Read-only file system: '.git/hooks/x'",
            ["An error"],
        ),
        ("touch /x", "touch: cannot touch '/x': Read-only file system", []),
    ],
)
def test_a_line_of_commands_that_succeeds_may_report_errors(command, output, found):
    errors = errors_in(command, output).splitlines()
    assert [line[: len(start)] for line, start in zip(errors, found, strict=True)] == found


@each_row(
    ("command", "errors", "found"),
    [
        ("ls ~", "", [HOME]),
        ("ls $HOME/x; cat ${HOME}/y", "", [f"{HOME}/x", f"{HOME}/y"]),
        ("grep a -r '/srv/mono/core'>out", "", ["/srv/mono/core"]),
        ("cd src/x && ./y a/b", "", []),
        ("make", "x: /srv/a: No such file or directory.", ["/srv/a"]),
        ("make", "python: can't open file '/srv/a/b.py': [Errno 2]", ["/srv/a/b.py"]),
        ("git log", "fatal: not a git repository: /srv/x.git", ["/srv/x.git"]),
        ("make", "cat: /cache/home/notes: Permission denied", [f"{HOME}/notes"]),
        ("make", "see https://example.org/srv/x or /usr/share/doc", []),
    ],
)
def test_paths_are_found_in_commands_and_errors(command, errors, found):
    view = WallView(HOME, stand_in="/cache/home")
    assert [str(path) for path in paths_in(command, errors, view)] == found
