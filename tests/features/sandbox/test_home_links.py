"""Settings of the user that links in the home folder name: dotfiles in a working folder."""

import base64
import json
import os
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_tui.config import PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import Intent
from agent_tui.tools.files.home_links import find_linked, linked_settings
from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

_LINKS = {
    ".bashrc": "bash/rc",
    ".profile": "missing",
    ".config/nvim/lua/deep.lua": "nvim/deep.lua",
    ".config/agent-tui/config.toml": "agent-tui/config.toml",
    ".vim": "vim",
    ".local/bin/deploy": "scripts/deploy",
    "bin": "scripts",
    ".zshrc": "current/zshrc",
    ".elsewhere": "../elsewhere",
}
"""Links in the home folder, and where they lead in the dotfiles."""

_MADE = """
git init -q -b main; mkdir -p bash nvim agent-tui vim scripts v1 ../elsewhere
for f in bash/rc nvim/deep.lua agent-tui/config.toml vim/vimrc scripts/deploy v1/zshrc other; do
echo 1 > $f; done
ln -s v1 current; ln -s ../proj/nvim ../elsewhere/nvim
git add .; git commit -qm 1; git switch -qc two
for f in bash/rc nvim/deep.lua vim/vimrc v1/zshrc other; do echo 2 > $f; done
git commit -qam 2; git switch -q main
"""


def _make_user_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A project with the user's programs in ``bin``, and the folder of a Python elsewhere."""
    root, python = folder / "proj", folder / "python/bin"
    for name in (root / "bin/deploy", python / "python3"):
        name.parent.mkdir(parents=True)
        name.touch()
    (folder / "home").mkdir()
    monkeypatch.setenv("HOME", str(folder / "home"))
    return root, python


def _make_environment(environment: Path, python: Path) -> None:
    """Make what ``python -m venv`` does, as far as it counts, for one in the folder `python`."""
    python.mkdir(parents=True)
    (python / "python3").touch()
    (environment / "pyvenv.cfg").write_text(f"home = {python}\n")
    (environment / "bin/python").symlink_to(python / "python3")


def _dotfiles(folder: Path, *, has_mounts: bool) -> WatchedFolder:
    folders = [folder / name for name in ("proj", "own", "home")]
    for each in folders:
        each.mkdir(parents=True)
    place = WatchedFolder(*folders, has_mounts=has_mounts)
    place.outside(_MADE)
    for name, target in _LINKS.items():
        link = place.home / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place.root / target)
    (place.home / "visible").symlink_to(place.root / "other")
    place.watch = place.watch_again()
    return place


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_commands_change_no_settings_that_links_in_the_home_folder_name(
    tmp_path: Path, has_mounts: bool
):
    place = _dotfiles(tmp_path, has_mounts=has_mounts)
    settled = await place.run("true")
    assert f"{place.home}/.bashrc" in settled.notice
    assert (await place.run("git switch -q two && git switch -q main")).held == ()
    assert (await place.run("git switch -q two; git status --porcelain")).held == ()
    assert place.text("bash/rc") == place.text("vim/vimrc") == "2\n"
    place.outside('test -z "$(git status --porcelain)"')
    written = [
        *("bash/rc", "missing", "nvim/deep.lua", "agent-tui/config.toml", "vim/new"),
        *("scripts/deploy", "v1/zshrc"),
    ]
    settled = await place.run(f"for f in {' '.join(written)} other; do echo evil > $f; done")
    assert {str(file.path.relative_to(place.root)) for file in settled.held} == set(written)
    assert place.text("bash/rc") == "2\n"
    assert place.text("other") == "evil\n"
    settled = await place.run("ln -sfn bash current")
    assert set(place.held(settled)) == {"current"}
    assert (await place.run("true")).notice == ""


async def test_a_link_to_the_whole_folder_holds_nothing_and_is_said(tmp_path: Path):
    place = _dotfiles(tmp_path, has_mounts=False)
    (place.home / ".config/app").symlink_to(place.root)
    place.watch = place.watch_again()
    settled = await place.run("echo evil > other; mkdir new; echo x > new/y")
    assert settled.held == ()
    assert f"{place.home}/.config/app leads to {place.root}" in settled.notice


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_commands_in_a_folder_of_settings_change_none_that_run_at_each_start(
    tmp_path: Path, has_mounts: bool
):
    for name in ("own", "home/.config/git"):
        (tmp_path / name).mkdir(parents=True)
    root = tmp_path / "home/.config"
    place = WatchedFolder(root, tmp_path / "own", tmp_path / "home", has_mounts=has_mounts)
    place.outside("echo mine > git/config; echo mine > starship.toml")
    settled = await place.run("true")
    assert f"{root} is a folder that a program of the user obeys" in settled.notice
    settled = await place.run(
        "echo evil > git/config; echo x > starship.toml; mkdir -p autostart fish;"
        "touch autostart/x.desktop fish/config.fish"
    )
    held = {"git/config", "autostart", "fish"}
    assert set(place.held(settled)) == held | ({"starship.toml"} if not has_mounts else set())
    assert place.text("git/config") == place.text("starship.toml") == "mine\n"


@each_row(
    ("name", "is_obeyed"),
    {
        ".config/nvim": True,
        ".config/fish/conf.d": True,
        ".ssh": True,
        ".emacs.d": True,
        ".local/share/systemd": True,
        ".local/src/proj/lib": False,
        ".codex/worktrees/fix": False,
        ".cache/build": False,
        "src/proj": False,
    }.items(),
)
def test_a_hidden_folder_of_the_home_folder_is_obeyed_as_a_whole(
    name: str, is_obeyed: bool, tmp_path: Path
):
    home = tmp_path / name.replace("/", "_")
    root = home / name
    root.mkdir(parents=True)
    for repository in (".config/nvim", ".local/src/proj", ".codex/worktrees/fix"):
        (home / repository / ".git").mkdir(parents=True)
    assert find_linked(home, (), (root,)) == ({root: root} if is_obeyed else {})


async def test_what_a_variable_names_in_a_working_folder_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("proj", "own", "home"):
        (tmp_path / name).mkdir()
    root = tmp_path / "proj"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    environ = {
        "XDG_CONFIG_HOME": str(root / "conf"),
        "CARGO_HOME": str(root / "cargo"),
        "GNUPGHOME": "relative",
        "PYTHONSTARTUP": str(root / "start.py"),
    }
    place = WatchedFolder(root, tmp_path / "own", tmp_path / "home", has_mounts=False)
    place.linked = linked_settings((root,), environ)()
    place.watch = place.watch_again()
    settled = await place.run(
        "mkdir -p conf/app cargo/bin cargo/registry relative;"
        "touch conf/app/new cargo/bin/tool cargo/registry/x cargo/config.toml start.py relative/x"
    )
    assert set(place.held(settled)) == {"conf", "cargo/bin", "cargo/config.toml", "start.py"}
    assert f"name settings here: {root}/cargo/bin" in settled.notice


def test_files_that_any_variable_names_are_followed_and_programs_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = tmp_path / "proj"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("bin", "data", "own", ".venv/bin", "node_modules/.bin"):
        (root / name).mkdir(parents=True)
    files = ("starship.toml", "ed", "ssh cfg", "ssh.cfg", "a.out", "local", ".envrc", "ed2.js")
    for name in (*files, "last", "filter", "x"):
        (root / name).touch()
    _make_environment(root / ".venv", tmp_path / "python/bin")
    loaded = {"p": {"PATH": f"/usr/bin:{root}/bin"}, "n": {"PATH": "", "LOCAL": ""}}
    diff = base64.urlsafe_b64encode(zlib.compress(json.dumps(loaded).encode())).decode()
    environ = {
        "STARSHIP_CONFIG": f"{root}/starship.toml",
        "EDITOR": f"{root}/ed --wait",
        "GIT_SSH_COMMAND": f"ssh -F '{root}/ssh.cfg' -i{root}/a.out",
        "SPACED": f"{root}/ssh cfg",
        "GIT_TEMPLATE_DIR": f"{root}/template",
        "DATA": f"{root}/data",
        "MISSING": f"{root}/missing",
        "PATH": f"{root}/.venv/bin:{root}/node_modules/.bin:{root}/bin:/usr/bin:{root}",
        "LESSOPEN": f"|{root}/filter %s",
        "LESSCLOSE": "||-./x %s",
        "VISUAL": f"node --no-warnings {root}/ed2",
        "LANG": "own",
        "_": f"{root}/last",
    }

    def found(environ: Mapping[str, str]) -> set[str]:
        return {os.fspath(path.relative_to(root)) for path in linked_settings((root,), environ)()}

    named = {"starship.toml", "ed", "ssh.cfg", "ssh cfg", "a.out", "template", "bin"}
    named |= {"filter", "x", "ed2.js"}
    assert found(environ) == named
    environ |= {"LOCAL": f"{root}/local", "DIRENV_DIFF": diff, "DIRENV_FILE": f"{root}/.envrc"}
    environ["PATH"] = f"{root}/own:{root}/bin"
    assert found(environ) == named
    environ["DIRENV_DIFF"] = "x"
    named |= {"local", "own"}
    assert found(environ) == named


@pytest.mark.parametrize(
    ("made", "is_watched"),
    {
        "": True,
        "touch pyvenv.cfg": True,
        "echo home = {python} > pyvenv.cfg": True,
        "echo home = {python} > pyvenv.cfg; touch bin/python": True,
        "echo home = {root} > pyvenv.cfg; touch python3; ln -s ../python3 bin/python": True,
        "mkdir conda-meta; touch conda-meta/history conda-meta/x.json": True,
        "echo home = {python} > pyvenv.cfg; ln -s {python}/python3 bin/python": False,
    }.items(),
)
def test_programs_on_path_stay_the_users_until_an_interpreter_takes_the_folder_as_its_environment(
    made: str, is_watched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root, python = _make_user_programs(tmp_path, monkeypatch)
    subprocess.run(["bash", "-ec", made.format(root=root, python=python)], cwd=root, check=True)
    linked = linked_settings((root,), {"PATH": f"{root}/bin"})()
    assert (root / "bin" in linked) == is_watched


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_PREFIX_1"])
def test_an_environment_that_the_user_activated_is_none_of_their_programs(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root, _ = _make_user_programs(tmp_path, monkeypatch)
    environ = {"PATH": f"{root}/bin"}
    assert linked_settings((root,), environ | {variable: str(root)})() == {}
    assert root / "bin" in linked_settings((root,), environ | {variable: ""})()


@pytest.mark.parametrize("has_python", [True, False])
async def test_no_command_makes_an_environment_of_the_users_programs(
    has_python: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root, python = _make_user_programs(tmp_path, monkeypatch)
    if has_python:
        (root / "bin/python").symlink_to(python / "python3")
    (tmp_path / "own").mkdir()
    place = WatchedFolder(root, tmp_path / "own", tmp_path / "home", has_mounts=False)
    place.linked = linked_settings((root,), {"PATH": f"{root}/bin"})()
    place.watch = place.watch_again()
    settled = await place.run(f"echo home = {python} > pyvenv.cfg; ln -sf {python}/* bin/python")
    assert set(place.held(settled)) == ({"pyvenv.cfg"} if has_python else {"bin/python"})
    assert root / "bin" in linked_settings((root,), {"PATH": f"{root}/bin"})()


@needs_bwrap
async def test_a_command_in_such_a_folder_changes_nothing_without_the_user(tmp_path: Path):
    for name in ("own", "home/.config/nvim"):
        (tmp_path / name).mkdir(parents=True)
    place = WatchedFolder(tmp_path / "home/.config/nvim", tmp_path / "own", tmp_path / "home")
    place.outside("git init -q; echo mine > init.lua; git add .; git commit -qm 1")
    settled = await place.run("echo evil >> init.lua; mkdir lua; touch lua/x; git status")
    assert set(place.held(settled)) == {"init.lua", "lua"}
    assert place.text("init.lua") == "mine\n"


def test_file_tools_ask_in_a_folder_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / ".config/sway"
    root.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    engine = PermissionEngine(
        mode="accept-edits",
        rules=PermissionSettings(),
        workspace=root,
        project_rules_file=tmp_path / "permissions.toml",
    )
    engine.work_in((), find_linked=linked_settings((root,), {}))
    verdict = engine.judge("write", Intent("x", "write", paths=(root / "config",)))
    assert (verdict.decision, verdict.why) == (
        "ask",
        f"{root}/config controls a program of the user",
    )


def test_file_tools_ask_in_every_mode_about_what_a_link_in_the_home_folder_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = _dotfiles(tmp_path, has_mounts=False)
    (place.home / ".config/app").symlink_to(place.root)
    monkeypatch.setenv("HOME", os.fspath(place.home))
    engine = PermissionEngine(
        mode="full",
        rules=PermissionSettings(),
        workspace=place.root,
        project_rules_file=tmp_path / "permissions.toml",
    )
    engine.work_in((), find_linked=linked_settings((place.root,), {}))

    def verdict(name: str) -> Verdict:
        return engine.judge("write", Intent(name, "write", paths=(place.root / name,)))

    for name in ("bash/rc", "missing", "vim/new", "agent-tui/config.toml", "scripts/deploy"):
        assert verdict(name).decision == "ask", name
        assert verdict(name).why.endswith("leads there"), name
    assert verdict("other").decision == "allow"


@each_row("link", [".a/b/c/d", "visible/x", ".config/a/b/c/d"])
def test_what_is_deeper_or_visible_is_not_searched(tmp_path: Path, link: str):
    root = tmp_path / link.replace("/", "_") / "root"
    home = root.with_name("home")
    (home / link).parent.mkdir(parents=True)
    (home / link).symlink_to(root / "x")
    assert find_linked(home, (), (root,)) == {}
    assert find_linked(home, ((home / link).parent,), (root,)) == {root / "x": home / link}


def test_links_in_a_working_folder_and_loops_name_nothing(tmp_path: Path):
    root = tmp_path / "dotfiles"
    (root / "a").mkdir(parents=True)
    (root / "a/link").symlink_to("../b")
    (tmp_path / ".loop").symlink_to(".loop")
    (tmp_path / ".round").symlink_to(".")
    assert find_linked(tmp_path, (), (root,)) == {}
