"""Where projects lie: for each layout, whether a sandbox works there and leaves all as it was.

``python -m tests.support.layouts BACKEND FOLDER [ROOT ...]`` prints a JSON object: for each layout
what is wrong with it, or nothing. All folders are created, and owned, by who runs it.
"""

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import ToolError
from agent_tui.features.sandbox.plan import Backend
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.sandbox import program_sandbox

Shape: TypeAlias = Literal[
    "plain", "secret", "editor", "worktree", "submodule", "links", "closed", "all"
]

_SHAPES: Final[dict[Shape, str]] = {
    "plain": "",
    "secret": "mkdir -p sub/deep; echo decoy > sub/.env; echo decoy > sub/deep/.env",
    "editor": "mkdir -p pkg/.vscode; echo '{}' > pkg/.vscode/settings.json",
    "worktree": "",
    "submodule": (
        "git init -q ../part; git -C ../part commit -qm part --allow-empty;"
        "git -c protocol.file.allow=always submodule --quiet add ../part libs/part"
    ),
    "links": (
        "mkdir -p links/real; echo decoy > links/real/.env; ln -s nowhere links/.env;"
        'ln -s "$PWD/links/real/.env" links/.env.local; ln -s / links/.env.root'
    ),
    "closed": (
        "mkdir -p closed/.vscode closed/.git shut/.git; ln -s x closed/AGENTS.md;"
        "git init -q closed/lib; chmod 0 closed/lib/.git shut; chmod 600 closed"
    ),
    "all": "",
}
_COMMITTED: Final = (
    "printf '%s\\n' .env .vscode closed shut > .gitignore; echo text > file; git add .;"
    " git commit -qm one"
)
_LOOK: Final = "git status --porcelain && cat file && cat {secret}; cat {note}; true"
_WORK: Final = (
    "git status --porcelain && echo more >> file && mkdir new && echo x > new/x && git add -A &&"
    " git commit -qm two && git log --format=%s%an -1"
)


@dataclass(frozen=True)
class Layout:
    """A project of `shape` at `folder`."""

    name: str
    folder: Path
    shape: Shape


class Surroundings:
    """A home folder, and the environment of a program whose user has it."""

    def __init__(self, base: Path, backend: Backend) -> None:
        """Create it in `base`."""
        self.base, self.backend, self.home = base, backend, base / "home"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
        (self.home / "notes").write_text("decoy\n")
        (self.home / ".ssh").mkdir(mode=0o700)
        closed = self.closed = self.home / "closed"
        (closed / "tool/bin").mkdir(parents=True)
        closed.chmod(0)
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            del os.environ[name]
        os.environ["HOME"] = str(self.home)
        self.own = [paths.user_config_dir(), paths.user_data_dir(), paths.user_cache_dir()]
        self.own.append(paths.log_file().parent)
        for folder in self.own:
            folder.mkdir(parents=True, exist_ok=True)
        path = os.defpath if backend == "bubblewrap" else str(self._without_bwrap())
        self.environ = {
            "PATH": f"{closed}/tool/bin:{path}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "SSH_AUTH_SOCK": f"{closed}/tool/agent.sock",
            "VIRTUAL_ENV": f"{closed}/tool",
        }

    def _without_bwrap(self) -> Path:
        folder = self.base / "bin"
        folder.mkdir()
        for name in ("git", "sh", "cat", "mkdir", "true"):
            (folder / name).symlink_to(shutil.which(name, path=os.defpath) or "")
        return folder

    def name_home(self, link: Path) -> None:
        """From now on, the user's home folder is named by a new `link`."""
        link.symlink_to(self.home)
        os.environ["HOME"] = self.environ["HOME"] = str(link)

    def git(self, folder: Path, script: str) -> None:
        """Run `script` in `folder` as the user does."""
        environ = {**self.environ, "PATH": os.defpath}
        words = ["bash", "-ec", script]
        ran = subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True)
        assert ran.returncode == 0, (script, ran.stderr)

    def make(self, layout: Layout) -> None:
        """Create the project."""
        folder = layout.folder
        folder.mkdir(parents=True)
        if layout.shape == "worktree":
            folder.rmdir()
            main = folder.parent / f"{folder.name}-main"
            main.mkdir()
            self.git(main, f"git init -q; {_COMMITTED}")
            self.git(main, f"git worktree add -q '{folder}'")
            return
        shapes = _SHAPES if layout.shape == "all" else {layout.shape: _SHAPES[layout.shape]}
        self.git(folder, "\n".join(["git init -q", *shapes.values(), _COMMITTED]))


def layouts(home: Path, others: dict[str, Path]) -> Iterator[Layout]:
    """The table.

    Args:
        home: The home folder.
        others: Folders outside of it that may be written.
    """
    places = {f"~{'/x' * depth}": home.joinpath(*"x" * depth) for depth in range(3)}
    for name, place in (places | others).items():
        for shape in ("plain", "all"):
            yield Layout(f"{name}/{shape}", place / shape, shape)
    for shape in ("secret", "editor", "worktree", "submodule", "links", "closed"):
        yield Layout(f"~/src/{shape}", home / "src" / shape, shape)
    for name in ("a b/c d", "ü/prüfung"):
        yield Layout(f"~/{name}", home / name, "all")


def state_of(folders: list[Path], own: list[Path]) -> dict[str, tuple[object, ...]]:
    """Mode, owner, target, time and size of every path in `folders`, except `own`."""
    found: dict[str, tuple[object, ...]] = {}
    left_out = {str(path) for path in own}
    for top in folders:
        for place, below, files in os.walk(top):
            below[:] = [name for name in below if f"{place}/{name}" not in left_out]
            for path in (place, *(f"{place}/{name}" for name in (*below, *files))):
                try:
                    status = os.lstat(path)
                except PermissionError:  # in a folder that cannot be entered
                    continue
                target = str(Path(path).readlink()) if stat.S_ISLNK(status.st_mode) else ""
                about = (oct(status.st_mode), status.st_uid, status.st_gid, target)
                found[path] = (*about, status.st_mtime_ns, status.st_size)
    return found


def differences(
    before: dict[str, tuple[object, ...]], now: dict[str, tuple[object, ...]]
) -> list[str]:
    """What changed between two states."""
    paths = sorted(before.keys() | now.keys())
    return [
        f"{path}: {before.get(path)} -> {now.get(path)}"
        for path in paths
        if before.get(path) != now.get(path)
    ]


async def problem_of(layout: Layout, around: Surroundings) -> str:
    """What is wrong with a sandbox in `layout`; empty if nothing is."""
    around.make(layout)
    keeper = ProcessKeeper()
    sandbox = program_sandbox(
        Settings.model_validate({"sandbox": "on"}), around.environ, keeper=keeper
    )
    try:
        return await _try(sandbox, layout, around)
    except ToolError as error:
        return str(error)
    finally:
        await sandbox.close_walls()
        keeper.close()
        for name in ("shut", "closed", "closed/lib/.git"):  # so that they can be removed
            with suppress(FileNotFoundError):
                (layout.folder / name).chmod(0o700)
        if layout.shape != "plain":  # those stay beside the next ones: what is there is looked at
            shutil.rmtree(layout.folder)


async def _try(sandbox: Sandbox, layout: Layout, around: Surroundings) -> str:
    folder, state = layout.folder, sandbox.state(layout.folder)
    if state.backend != around.backend:
        return f"{state.backend} stands, not {around.backend}: {state.problem}"
    secret = "sub/.env" if layout.shape in ("all", "secret") else "/nowhere"
    look = _LOOK.format(secret=secret, note=around.home / "notes")
    own, watched = around.own, [around.home, folder.parent]
    before = state_of(watched, own)
    for is_read_only in (False, True)[: 1 + (layout.shape == "all")]:
        _, printed = await _run(sandbox, folder, "true", is_read_only=is_read_only)
        changed = differences(before, state_of(watched, own))
        if printed or changed:
            return printed or f"a wall changed {changed}"
        code, printed = await _run(sandbox, folder, look, is_read_only=is_read_only)
        lines = printed.splitlines()
        is_hidden = around.backend == "landlock" or secret == "/nowhere" or "decoy" not in lines
        if code != 0 or lines[:1] != ["text"] or not is_hidden or lines[-1:] == ["decoy"]:
            return f"{code} {printed}"
        before = state_of(watched, own)  # git refreshed its index
    code, printed = await _run(sandbox, folder, _WORK)
    if code != 0 or printed.splitlines() != ["twoAda"] or (folder / "new/x").read_text() != "x\n":
        return f"{code} {printed}"
    await sandbox.close_walls()
    now = state_of(watched, own)
    modes = [f"{path} {about[0]}" for path, about in now.items() if _mode(before, path, about)]
    return f"modes changed: {modes}" if modes else ""


def _mode(before: dict[str, tuple[object, ...]], path: str, about: tuple[object, ...]) -> bool:
    return path in before and before[path][:4] != about[:4]


async def _run(
    sandbox: Sandbox, folder: Path, command: str, *, is_read_only: bool = False
) -> tuple[int | None, str]:
    watch = sandbox.watch(folder)
    assert watch is not None
    await watch.note()
    keeper = await sandbox.keeper(folder, is_read_only=is_read_only)
    environ = {"PATH": os.defpath, "HOME": str(sandbox.home), "LANG": "C.UTF-8"}
    inside = sandbox.environ(folder, environ, is_read_only=is_read_only)
    printed = b""
    words = ["/bin/sh", "-c", command]
    async with keeper.child_group(words, cwd=folder, environ=inside) as child:
        async for chunk in child.read_until_gone():
            printed += chunk
    await watch.hold()
    return child.exit_code, printed.decode()


async def problems(base: Path, backend: Backend, roots: list[Path]) -> dict[str, str]:
    """By layout, what is wrong."""
    os.umask(0o022)
    around = Surroundings(base, backend)
    (base / "beside").mkdir()
    with tempfile.TemporaryDirectory(prefix="agent-tui-layout-", dir="/tmp") as temporary:
        others = {"beside": base / "beside", "/tmp": Path(temporary)}
        others |= {f"/{place.parts[1]}": place for place in roots}
        found = {
            layout.name: await problem_of(layout, around) for layout in layouts(around.home, others)
        }
        keeper = ProcessKeeper()
        home = program_sandbox(Settings(), around.environ, keeper=keeper).state(around.home)
        found["~"] = "" if home.backend == "none" and "home folder" in home.problem else str(home)
        for link in (base / "link", Path(temporary, "link")):
            around.name_home(link)
            layout = Layout(f"HOME is {link.parent}/link", link / f"{len(found)}/src", "all")
            found[layout.name] = await problem_of(layout, around)
    around.closed.chmod(0o700)  # so that it can be removed
    return found


def main() -> None:
    """Try all layouts."""
    backend: Backend = "landlock" if sys.argv[1] == "landlock" else "bubblewrap"
    base, *roots = (Path(word).resolve() for word in sys.argv[2:])
    json.dump(asyncio.run(problems(base, backend, roots)), sys.stdout)


if __name__ == "__main__":
    main()
