"""Settings of the user that links in the home folder name: dotfiles in a working folder."""

import os
from pathlib import Path

import pytest

from agent_tui.config import PermissionSettings
from agent_tui.permissions.engine import PermissionEngine, Verdict
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
    assert f"read what commands write in {root}" in settled.notice
    settled = await place.run(
        "echo evil > git/config; echo x > starship.toml; mkdir -p autostart fish;"
        "touch autostart/x.desktop fish/config.fish"
    )
    assert set(place.held(settled)) == {"git/config", "autostart", "fish/config.fish"}
    assert place.text("git/config") == "mine\n"
    assert place.text("starship.toml") == "x\n"


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
    root = tmp_path / ".dotfiles"
    (root / "a").mkdir(parents=True)
    (root / "a/link").symlink_to("../b")
    (tmp_path / ".loop").symlink_to(".loop")
    (tmp_path / ".round").symlink_to(".")
    assert find_linked(tmp_path, (), (root,)) == {}
