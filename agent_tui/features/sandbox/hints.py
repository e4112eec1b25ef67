"""Hints for the model about a failed command if the wall is the likely cause."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import is_folder, path_exists, real_path, resolve_path

_ASK: Final = "if it has to, run it again with outside: true and why, which needs permission"
_NO_NETWORK: Final = re.compile(
    r"could not resolve|name or service not known|temporary failure in name resolution"
    r"|network is unreachable|no route to host|ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo"
    r"|failed to lookup address|no address associated|nodename nor servname|dial tcp: lookup"
    r"|(?:Tunnel connection failed|CONNECT tunnel failed)(?!\D{0,12}424)",  # allowed, not reached
    re.IGNORECASE,
)
_GIT_CONFIG: Final = re.compile(
    r"could not (?:write|lock) config file|update of config-file failed"
)
_SIGNING: Final = re.compile(r"gpg failed to sign")
_LOGIN: Final = re.compile(
    r"could not read (?:Username|Password) for|\bE401\b|\b401 Error, Credentials not correct"
)
_NOT_WRITABLE: Final = re.compile(r"read-only file ?system|EROFS|os error 30\b", re.IGNORECASE)
_OFFLINE: Final = re.compile(r"--offline\b|network (?:\w+ ){0,2}disabled|ENOTCACHED", re.IGNORECASE)
_NOT_REMOVED: Final = re.compile(r"^warning: failed to remove .+: .+ busy$", re.MULTILINE)
"""What ``git clean`` and ``git stash -u`` say, which does not reset the tracked files then."""

_BUSY: Final = re.compile(r"device or resource busy|EBUSY", re.IGNORECASE)
_FORBIDDEN: Final = re.compile(
    r"operation not permitted|EPERM|docker\.sock|docker daemon|must be setuid root"
    r"|effective uid is not 0|no new privileges|are you root"
    r"|system has not been booted with systemd|PTRACE_TRACEME",
    re.IGNORECASE,
)
_LOOPBACK: Final = re.compile(
    r"^(?=.*(?:connection refused|couldn't connect|could not connect|ECONNREFUSED))"
    r".*(?:127\.0\.0\.1|localhost|::1)",
    re.IGNORECASE | re.MULTILINE,
)
_RENAMED: Final = "Branch is renamed, but update of config-file failed"
_DENIED: Final = re.compile(
    r"(?<![\w.~-])(?P<path>/[^\s:'\"’]+)['\"’]?: permission denied"
    r"|permission denied: '(?P<named>/[^']+)'",
    re.IGNORECASE,
)
_HALF_SWITCHED: Final = re.compile(
    r"^error: unable to (?:unlink|create|write) .*(?:read-only file system|permission denied)$",
    re.IGNORECASE | re.MULTILINE,
)
"""Git says so, changes all other files, and often succeeds."""

_HALF: Final = (
    "git could not change files of the repository outside of the working folder, but may have "
    "changed the others and HEAD: check git status before you commit. To let git change all of "
    "them, start with --add-dir {0}, or run git with outside: true and why, which needs permission"
)
_NOT_ADDED: Final = re.compile(
    r"^error: (?P<path>.+): (?:can only add regular files|unsupported file type)", re.MULTILINE
)
"""What ``git add -A`` and ``git stash -u`` say of a hidden file, and then add nothing."""

_ABOVE_DENIED: Final = re.compile(
    r"['\"‘]\.\./[^'\"’]*['\"’]: permission denied|permission denied: '\.\./", re.IGNORECASE
)
"""A path that probably leads out of the working folder."""

_NETWORK: Final = "commands in the sandbox reach only this machine and hosts that are allowed"
_WRITES: Final = "commands in the sandbox write only in the working folders"
_CAUSES: Final = (
    (_OFFLINE, "package caches of the sandbox are separate, with what commands downloaded before"),
    (_GIT_CONFIG, "commands in the sandbox cannot change git's settings, nor register submodules"),
    (_SIGNING, "git's signing keys cannot be used in the sandbox"),
    (_LOGIN, "commands in the sandbox have none of the user's passwords and tokens"),
    (_NOT_WRITABLE, f"{_WRITES} and /tmp, and not what programs outside obey (git's hooks, say)"),
    (
        _NOT_REMOVED,
        "the sandbox holds this in place: programs outside obey it, or it may hold keys. If git "
        "stash -u said so, it made a stash, removed other untracked files and reset nothing: git "
        "stash pop brings them back and keeps the stash, and git stash without -u works",
    ),
    (
        _BUSY,
        "the sandbox holds this file, or one in this folder, in place: programs outside obey it, "
        "or it may hold keys",
    ),
    (_FORBIDDEN, "the sandbox does not let commands do this"),
)
_OWN_LOOPBACK: Final = "the sandbox has its own loopback: servers outside do not answer there"
_SYSTEM_HOMES: Final = (Path("/home"), Path("/root"))
_HOME: Final = r"~|\$HOME\b|\$\{HOME\}"
_PATH: Final = re.compile(
    rf"(?<![\w.~/$-])(?:{_HOME}|\.\.(?![\w.])|(?=/))(?:/[^\s'\"’`;|&()<>:,]*)?"
)
"""A path in a command or a message: absolute, below the home folder, or out of the folder."""

_SEVERAL: Final = re.compile(r"[|;&\n]")
"""What separates the commands of a line: its exit code is that of the last one."""

_ERROR: Final = re.compile(
    r"(?:[\w.+-]+(?:\[\d+\])?:|npm (?:ERR!|error)) \S|.*(?:\[Errno 30\]|\(os error 30\))"
)
"""How programs begin a line about an error: with their name. No line of grep or a log does. Errors
of Python and Rust about a read-only file system can be anywhere in a line."""

_IN_TMP: Final = re.compile(r"/tmp/[^\s'\":,;()]+")
_MISSING: Final = r"no such file or directory|ENOENT|cannot access|can't open|not found"
_UNREADABLE: Final = (
    rf"{_MISSING}|permission denied|EACCES|read-only file system|EROFS"
    r"|not (?:appear to be )?a git rep"
)


@dataclass(frozen=True, slots=True)
class WallView:
    """What commands in a wall see, as far as it explains failures.

    Args:
        home: The home folder, most of which is missing inside.
        hidden: Names of files in the working folders that cannot be read.
        stand_in: The replacement home folder, on walls that cannot mount over the real one; such a
            wall also has no ``/tmp``, denies access instead of hiding files, and has the machine's
            loopback.
        top: The repository's folder, if it is around the working folder.
    """

    home: str
    hidden: Sequence[str] = ()
    stand_in: str = ""
    top: str = ""


def wall_hint(output: str, view: WallView, *, is_network_told: bool = False) -> str:
    """One line for the model, with the way to ask; empty if the wall is not the likely cause.

    Args:
        output: Output of a failed command, or its errors.
        view: The wall's view.
        is_network_told: Whether a refused connection is reported separately, with its remedy.
    """
    if _RENAMED in output:
        return "the branch has its new name; only what git's settings say of the old one is left"
    if _NO_NETWORK.search(output):
        return "" if is_network_told else f"{_NETWORK}; {_ASK}"
    if view.top and _HALF_SWITCHED.search(output):
        return _HALF.format(shlex.quote(view.top))
    for found in _NOT_ADDED.finditer(output):
        if found["path"].rpartition("/")[2] in view.hidden:
            return (
                f"the sandbox hides {found['path']}, as it may hold keys, so git added nothing: "
                "list it in .gitignore if it is not for commits, or name the files to add and "
                f"leave this one to the user; {_ASK}"
            )
    for said, cause in _CAUSES:
        if said.search(output):
            return f"{cause}; {_ASK}"
    if not view.stand_in and _LOOPBACK.search(output):
        return f"{_OWN_LOOPBACK}; {_ASK}"
    return next(filter(None, (_hint_of_line(line, view) for line in output.splitlines())), "")


def _hint_of_line(line: str, view: WallView) -> str:
    if any(name in line for name in view.hidden) and "permission denied" in line.casefold():
        return f"the sandbox hides this file, as it may hold keys; {_ASK}"
    homes = (home for home in (view.home, view.stand_in) if home)
    if any(home in line for home in homes) and re.search(_MISSING, line, re.IGNORECASE):
        return _place_hint(view.home)
    if _ABOVE_DENIED.search(line):
        return f"{_WRITES} and {'$TMPDIR' if view.stand_in else '/tmp'}; {_ASK}"
    if view.stand_in and (denied := _DENIED.search(line)):
        if (denied["path"] or denied["named"]).startswith("/tmp/"):
            return "there is no /tmp in the sandbox; write temporary files in $TMPDIR"
        return f"{_WRITES} and $TMPDIR; {_ASK}"
    return ""


def errors_in(command: str, output: str) -> str:
    """The lines of `output` that report errors although `command` succeeded.

    ``make | tail`` succeeds if ``tail`` does. Of a single one, only what git reports and passes
    over.
    """
    if _SEVERAL.search(command.strip()) is None:
        return "\n".join(found[0] for found in _HALF_SWITCHED.finditer(output))
    return "\n".join(line for line in output.splitlines() if _ERROR.match(line))


def paths_in(command: str, errors: str, view: WallView) -> Iterator[Path]:
    """The paths out of the folder that `command` names, and those that `errors` cannot read.

    They are absolute, or begin with ``..``.
    """
    lines = (line for line in errors.splitlines() if re.search(_UNREADABLE, line, re.IGNORECASE))
    for text in (command, *lines):
        for found in _PATH.findall(text):
            path = re.sub(rf"^(?:{_HOME})", lambda _: view.home, found)
            path = path if path.endswith("..") else path.rstrip(".!?")
            if view.stand_in and (path + "/").startswith(view.stand_in + "/"):
                path = view.home + path.removeprefix(view.stand_in)
            yield Path(path)


def _place_hint(place: str) -> str:
    return (
        f"of {place}, only programs and the working folders exist in the sandbox; the read tool "
        f"shows a file there with permission, and --add-dir a folder; {_ASK}"
    )


@dataclass(frozen=True, slots=True)
class HiddenPlaces:
    """What is hidden as a whole, to explain failures.

    Args:
        home: The home folder, by the name that commands use.
        homes: It and others, without links.
        places: The other hidden places, without links.
        shows: Whether commands see a path without links.
        laid: What a wall has in hidden places: links and caches, and what is mounted there.
    """

    home: Path
    homes: tuple[Path, ...]
    places: tuple[Path, ...]
    shows: Callable[[Path], bool]
    laid: AbstractSet[Path]

    def folder_to_name(self, path: Path, cwd: Path, *, has_failed: bool) -> Path | None:
        """What to name for `path`, which commands in `cwd` cannot see: a folder; None for no hint.

        It never depends on what exists in a home folder, nor on where links in it lead. So only
        what an error names (`has_failed`) counts there, and it may be a file. Blocking.
        """
        named = Path(os.path.normpath(cwd / path))
        if named.is_relative_to(self.home):
            named = real_path(self.home) / named.relative_to(self.home)
        if self.shows(named) or not self.laid.isdisjoint((named, *named.parents)):
            return None
        if self._is_at_home(named):
            return named if has_failed or named in (*self.homes, *self.places) else None
        if (place := self._place_of(named)) is None:  # another program's process, a device
            return None
        real = resolve_path(named, cwd)
        is_told = path_exists(real) and real.is_relative_to(place)
        folder = real if is_folder(real) else real.parent
        is_hidden = any(folder.is_relative_to(place) for place in self.places)
        return folder if is_told and is_hidden and not self.shows(real) else None

    def hint(self, folder: Path) -> str:
        """A hint for the model about how the user can show `folder`."""
        place = self._place_of(folder) or folder
        below, is_home = folder.relative_to(place).parts, self._is_at_home(place)
        if (is_home and not below) or any(part.startswith(".") for part in below):
            return _place_hint(os.fspath(place))
        if is_home:  # of which nothing is told
            return f"{folder} is not shown. Start with --add-dir and its folder to show it; {_ASK}"
        return f"{folder} is not shown. Start with --add-dir {shlex.quote(str(folder))} to show it."

    def _is_at_home(self, path: Path) -> bool:
        return any(path.is_relative_to(home) for home in (*self.homes, *_SYSTEM_HOMES))

    def _place_of(self, path: Path) -> Path | None:
        """The innermost hidden place that contains `path`; None if it is in none."""
        places = filter(path.is_relative_to, (*_SYSTEM_HOMES, *self.homes, *self.places))
        return max(places, key=lambda place: len(place.parts), default=None)


def outside_hint(output: str) -> str:
    """A hint for the model about a file in ``/tmp`` that commands cannot see. Blocking.

    Args:
        output: Output of the failed command.
    """
    for line in output.splitlines():
        if re.search(_MISSING, line, re.IGNORECASE):
            for path in _IN_TMP.findall(line):
                if path_exists(Path(path)):
                    return (
                        f"{path} exists outside only: /tmp is the sandbox's own; copy the file to "
                        "the working folder with read and write, or run this with outside: true"
                    )
    return ""


def stray_hint(names: Sequence[str], home: str) -> str:
    """A hint for the model about files that only sandboxed commands can see."""
    shown = ", ".join(f"{home}/{name}" for name in names[:5])
    return (
        f"the command wrote {shown}, but the sandbox has a stand-in for the home folder that is "
        "deleted later; write in the working folders instead, or run it with outside: true and why"
    )
