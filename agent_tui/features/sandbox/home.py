"""What of the home folder and of the machine exists inside the wall.

Some places are hidden as a whole: homes, temporary folders, and what `places` finds. Of these, only
what is found here exists: programs, and settings without secrets. A list of files to hide would
miss the one created yesterday; a missing toolchain only fails, and the user adds a folder.
Elsewhere, root's files and other programs' sockets are hidden.
"""

import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.beneath import folder_of, make_folders
from agent_tui.paths import find_manual
from agent_tui.safe_paths import (
    git_entry,
    is_file,
    is_folder,
    is_trusted,
    real_path,
    resolve_path,
    trace_links,
)
from agent_tui.tools.base import TEMPORARY_PLACES
from agent_tui.tools.files.environments import interpreter_folders

_TOOLCHAINS: Final = (
    *(".local/bin", ".local/lib", ".rustup", ".nvm", ".pyenv", ".volta/tools", ".asdf", ".sdkman"),
    *(".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx"),
    *(".local/share/mise", ".local/share/virtualenvs"),
    *(".virtualenvs", ".terminfo", ".nix-profile"),
)
"""Where version managers keep what the programs on PATH start."""

_BROWSERS: Final = ".cache/ms-playwright/*/INSTALLATION_COMPLETE"
"""What Playwright writes into each browser that it has installed. Profiles are beside them."""

_SHARED: Final = (".local", ".local/share", ".local/state", ".config", ".cache")
"""Where all programs of a user have their data and settings (XDG): never shown as a whole."""

_ROOT_VARIABLES: Final = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "ASDF_DATA_DIR"),
    *("MISE_DATA_DIR", "UV_PYTHON_INSTALL_DIR", "JAVA_HOME", "GOROOT"),
)
_PROGRAM_FOLDERS: Final = frozenset({"bin", "sbin", "shims", "condabin"})
_INSTALLED: Final = (
    *("bin", "sbin", "lib", "lib64", "libexec", "share", "include", "pyvenv.cfg"),
    *("env", "jmods", "conf", "opt", "Cellar"),
)
"""Parts of a program in a hidden folder, which may also hold credentials."""

_NEEDED: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""Those that programs do not start without; a disk may have data beside them."""

_SHAPE: Final = (*_NEEDED, "share", "node_modules", "conda-meta")
"""What an installation has beside its folder of programs, unlike a folder of scripts."""

_SHALLOW: Final = 2
"""Depth below a hidden place up to which a folder ``.x`` may be a program's, with credentials."""

_SOCKET_FOLDER: Final = Path("/run")
"""Sockets of buses, container engines and agents, which act outside on request from inside."""

_MAIL: Final = (Path("/var/mail"), Path("/var/spool/mail"))
_SOCKET_VARIABLES: Final = (
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"),
    *("DOCKER_HOST", "CONTAINER_HOST", "TMUX", "STY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
    *("XDG_RUNTIME_DIR", "VSCODE_IPC_HOOK_CLI", "WSL_INTEROP"),
)
_SEARCHED: Final = (("/etc", 9), ("/var", 3))
"""Where services keep keys, and how deep to look: only root can read them, and we may be root."""

_MOST_HIDDEN: Final = 200


@dataclass(slots=True)
class HomeView:
    """What exists of hidden places: whole folders and files, and the links that lead to them.

    What version managers put into `managed` is no work of the user's.

    A place itself is never shown, nor what programs share, nor what another user may change.
    """

    places: frozenset[Path]
    homes: tuple[Path, ...] = ()
    shared: frozenset[Path] = frozenset()
    readable: set[Path] = field(default_factory=set[Path])
    managed: frozenset[Path] = frozenset()
    links: dict[Path, str] = field(default_factory=dict[Path, str])

    def add(self, path: Path) -> None:
        """Include `path`, with the links on the way, if it lies in a hidden place."""
        real, links = _follow(path)
        if real is None:
            return
        self.links |= {link: to for link, to in links.items() if self.holds(link)}
        if self.may_show(real) and not _may_others_write(real) and not self._may_replace(real):
            self.readable.add(real)

    def add_all(self, paths: Iterable[Path]) -> None:
        """Include each of `paths`; see `add`."""
        for path in paths:
            self.add(path)

    def may_show(self, path: Path) -> bool:
        """Whether `path`, without links, lies in a hidden place and holds one program's files."""
        return self.holds(path) and path not in self.shared

    def holds(self, path: Path) -> bool:
        """Whether `path` lies below a hidden place and is not one itself."""
        return path not in self.places and not self.places.isdisjoint(path.parents)

    def _may_replace(self, path: Path) -> bool:
        """Whether everybody may put something else in the place of `path`."""
        around = (folder for folder in path.parents if self.holds(folder))
        modes = (folder.stat().st_mode for folder in around)
        return any(mode & stat.S_IWOTH and not mode & stat.S_ISVTX for mode in modes)


def what_runs(
    homes: Sequence[Path],
    places: Sequence[Path],
    folders: Sequence[Path],
    environ: Mapping[str, str],
) -> HomeView:
    """What programs need from `places`: toolchains, this program, environments of `folders`.

    Nothing that commands can write affects this, except that an environment which they made may
    name an installation of Python. It shows the usual parts of it, and nothing that links in it
    lead to. What commands could write, temporary folders and other repositories are none.

    Args:
        homes: Home folders, without links: hidden places that have toolchains of their own.
        places: The other hidden places, without links.
        folders: The working folders, whose virtual environments have their interpreter elsewhere.
        environ: Names toolchains and libraries, in ``PATH`` and otherwise.
    """
    shared = frozenset(real_path(home / name) for home in homes for name in _SHARED)
    view = HomeView(frozenset((*homes, *places)), tuple(homes), shared)
    for home in homes:
        view.add_all(home / name for name in _TOOLCHAINS)
        view.add_all(mark.parent for mark in home.glob(_BROWSERS))
    view.managed = frozenset(view.readable)
    roots = _roots(environ)
    looked_at = set[Path]()  # /bin and /usr/bin are often one folder, of hundreds of links
    for programs in filter(_is_unwritten, program_folders(environ)):  # others exist inside anyway
        view.add_all(_installation(programs, view))
        if (folder := real_path(programs)) not in looked_at:
            looked_at.add(folder)
            for target in _find_linked_programs(folder, view):
                view.add_all(_parts_of_program(target, view))
    for environment in (*roots, *_environments(folders)):
        is_users = environment in roots and _is_unwritten(environment)
        for programs in filter(_is_unwritten, _homes_of(environment)):
            if is_users or _is_installed(programs.parent, view):
                view.add_all(_installation(programs, view, is_certain=False))
    libraries = environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    view.add_all((*map(Path, filter(is_trusted, libraries)), own_program()[0]))
    return view


def program_folders(environ: Mapping[str, str]) -> list[Path]:
    """The folders of programs that ``PATH`` and other variables name, and this program's."""
    on_path = [Path(entry) for entry in environ.get("PATH", "").split(os.pathsep) if entry]
    return [*on_path, *(root / "bin" for root in _roots(environ))]


def _roots(environ: Mapping[str, str]) -> list[Path]:
    named = [Path(environ[name]) for name in _ROOT_VARIABLES if environ.get(name)]
    return [*named, Path(sys.prefix), Path(sys.base_prefix)]


def own_program() -> tuple[Path, ...]:
    """Where this program, its interpreter and its manual are, which may be in ``/tmp``."""
    package, manual = real_path(__file__).parents[2], find_manual()
    beside = () if manual is None else (real_path(manual),)
    return package, Path(sys.prefix), Path(sys.base_prefix), *beside


def furnish(stand_in: Path, home: Path, view: HomeView, settings: Mapping[str, str]) -> None:
    """Fill `stand_in` with what commands find at `home`: links and `settings`."""
    stand_in.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in settings.items():
        file = stand_in / name
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
    make_links(stand_in, home, view)


def make_links(stand_in: Path, place: Path, view: HomeView) -> None:
    """Create the links of `place` in `stand_in`, where commands may have created others."""
    for link, target in view.links.items():
        if place in link.parents:
            copy = stand_in / link.relative_to(place)
            with suppress(OSError):
                make_folders(copy.parent, [stand_in])
                with folder_of(copy, [stand_in]) as folder:
                    os.symlink(target, copy.name, dir_fd=folder)


def _follow(path: Path) -> tuple[Path | None, dict[Path, str]]:
    """Where `path` leads (None if nothing is there), and the links on the way."""
    try:
        return path.resolve(strict=True), trace_links(path)[1]
    except (OSError, RuntimeError):
        return None, {}


def _installation(programs: Path, view: HomeView, *, is_certain: bool = True) -> Iterator[Path]:
    """What the programs in a folder need around them, if it lies in a hidden place.

    Args:
        programs: The folder.
        view: Knows the places.
        is_certain: Whether the user named the folder; otherwise nothing beside the usual parts of
            an installation is shown.
    """
    if not programs.is_absolute() or not view.holds(programs):
        return
    modules = [place for place in programs.parents if place.name == "node_modules"]
    if modules:
        yield modules[-1]
    yield programs
    prefix = programs.parent
    holds_home = any(home.is_relative_to(prefix) for home in view.homes)
    if programs.name not in _PROGRAM_FOLDERS or holds_home:
        return
    is_near = _is_near(prefix, view) and programs.name == "bin"
    if prefix in view.places or os.path.ismount(prefix):
        yield from _find_parts(prefix, _NEEDED)
    elif (is_near or not is_certain) and not is_folder(prefix / "conda-meta"):
        yield from _find_parts(prefix, _INSTALLED)
    else:
        yield prefix


def _find_parts(prefix: Path, names: Iterable[str]) -> Iterator[Path]:
    """What has one of `names` in `prefix`, without links that lead out of it."""
    real = os.path.realpath(prefix)
    for name in names:
        if Path(real) in real_path(prefix / name).parents:
            yield prefix / name


def _parts_of_program(program: Path, view: HomeView) -> Iterator[Path]:
    """What is needed of a program in a hidden place that a link on PATH leads to.

    That is an installation, or a file among the user's own.
    """
    yield program
    folder, prefix = program.parent, program.parent.parent
    if any(home.is_relative_to(folder) for home in view.homes):
        return
    holds_no_home = not any(home.is_relative_to(prefix) for home in view.homes)
    has_shape = any(os.path.lexists(prefix / name) for name in _SHAPE)
    is_program = folder.name in _PROGRAM_FOLDERS and holds_no_home and has_shape
    if is_program or any(place.name == "node_modules" for place in folder.parents):
        yield from _installation(folder, view)
    else:
        yield from _find_parts(folder, _NEEDED)


def _is_unwritten(folder: Path) -> bool:
    """Whether commands cannot have written `folder`."""
    return is_trusted(os.fspath(folder))


def _is_installed(prefix: Path, view: HomeView) -> bool:
    """Whether the user installed what is at `prefix`, without links, and it is not shown yet.

    Commands write in temporary folders, and a repository may have been downloaded.
    """
    if any(prefix.is_relative_to(shown) for shown in view.readable):
        return False
    is_at_home = any(prefix.is_relative_to(home) for home in view.homes)
    if not is_at_home and any(prefix.is_relative_to(place) for place in TEMPORARY_PLACES):
        return False
    entry = git_entry(prefix)
    return entry is None or any(home.is_relative_to(entry.parent) for home in view.homes)


def _is_near(folder: Path, view: HomeView) -> bool:
    """Whether `folder` may hold credentials beside a program: a near hidden one, as ``.ssh``."""
    depths = [len(place.parts) for place in view.places if place in folder.parents]
    below = folder.parts[max(depths, default=0) :]
    return bool(depths) and below[0].startswith(".") and len(below) <= _SHALLOW


def _find_linked_programs(programs: Path, view: HomeView) -> Iterator[Path]:
    """The programs in hidden places that links in a program folder lead to."""
    with suppress(OSError), os.scandir(programs) as entries:
        for entry in entries:
            if entry.is_symlink():
                target = real_path(entry.path)
                if view.holds(target) and is_file(target) and os.access(target, os.X_OK):
                    yield target


def _environments(folders: Iterable[Path]) -> Iterator[Path]:
    """The virtual environments directly in `folders`."""
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_dir())


def _homes_of(environment: Path) -> Iterator[Path]:
    """The program folders that a virtual environment has its interpreter from.

    A command may have written the environment, so only folders of installed interpreters count.
    """
    for named in interpreter_folders(environment):
        with suppress(OSError):  # no file can have this name
            python = resolve_path("bin/python", environment)
            yield from filter(_has_python, {named, python.parent})


def _may_others_write(path: Path) -> bool:
    """Whether a user besides us and root may change what is at `path`."""
    try:
        status = path.stat()
    except OSError:
        return True
    return bool(status.st_mode & stat.S_IWOTH) or status.st_uid not in (0, os.geteuid())


def _has_python(programs: Path) -> bool:
    """Whether `programs` belongs to an installed Python: it finds its library by this file."""
    return programs.name == "bin" and any(programs.parent.glob("lib*/py*/os.py"))


def find_hidden(environ: Mapping[str, str], homes: Sequence[Path] = ()) -> tuple[Path, ...]:
    """What to hide in every wall, besides `homes`. Blocking."""
    sockets = (Path(_address(environ.get(name, ""))) for name in _SOCKET_VARIABLES)
    found = [_SOCKET_FOLDER, *filter(is_folder, _MAIL), *_find_private(environ, homes)]
    found += (path for path in sockets if path.is_absolute() and _is_socket(path))
    if os.geteuid() == 0:
        for folder, depth in _SEARCHED:
            found += _find_closed_to_others(Path(folder), depth)
    return tuple(found[:_MOST_HIDDEN])


def _find_private(environ: Mapping[str, str], homes: Sequence[Path]) -> Iterator[Path]:
    """What variables name that only its owner can read, as files with credentials, without links.

    Not what programs need, nor what is hidden with `homes`.
    """
    lists = (environ.get(name, "") for name in ("PATH", "LD_LIBRARY_PATH", *_ROOT_VARIABLES))
    needed = {Path(entry) for each in lists for entry in each.split(os.pathsep) if entry}
    needed.update(own_program())
    for value in environ.values():
        for path in map(Path, value.split(os.pathsep)):
            is_needed = any(path.is_relative_to(n) or n.is_relative_to(path) for n in needed)
            if path.is_absolute() and not is_needed and _is_private(path):
                real = real_path(path)
                if not any(real.is_relative_to(home) for home in homes):
                    yield real


def _is_private(path: Path) -> bool:
    """Whether `path` is a file that does not run, or a folder, that only its owner may reach."""
    if not (is_folder(path) or (is_file(path) and not os.access(path, os.X_OK))):
        return False
    try:
        return any(not each.stat().st_mode & 0o077 for each in (path, *real_path(path).parents))
    except OSError:
        return False


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except OSError:  # in a folder that nobody here may enter
        return False


def without_sockets(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the variables that name sockets, which do not exist inside."""
    return {name: value for name, value in environ.items() if name not in _SOCKET_VARIABLES}


def home_of_account() -> Path | None:
    """The home folder that the system knows, whatever ``HOME`` says."""
    with suppress(KeyError, OSError):
        home = real_path(Path(pwd.getpwuid(os.getuid()).pw_dir))
        return home if home.name and home.is_dir() else None
    return None


def _address(value: str) -> str:
    return value.partition(",")[0].rpartition("unix:")[2].removeprefix("path=").removeprefix("//")


def _find_closed_to_others(folder: Path, depth: int) -> Iterator[Path]:
    """What only its owner and group can read in `folder`, the outermost paths."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                continue
            if not mode & stat.S_IROTH:
                yield Path(entry.path)
            elif stat.S_ISDIR(mode) and depth:
                yield from _find_closed_to_others(Path(entry.path), depth - 1)
