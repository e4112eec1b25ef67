"""Whether a repository could make git run programs, told without running git.

Git runs what ``core.fsmonitor``, filters, aliases, hooks and many more settings name. So this
goes the other way round: a repository is plain where its settings hold only what is known to
name no program and no other file, and anything else is a doubt.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from agent_tui.permissions.project_files import repository_root
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_folder, is_link, path_exists

_MAX_CONFIG_BYTES = 64_000
_INDEX_BLOCK_BYTES = 1 << 20
_HELD_REPOSITORY = (0o160000).to_bytes(4, "big")
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=.*)?")
_CORE = (
    "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
    "autocrlf eol"
)
_PLAIN: dict[str, frozenset[str]] = {
    "core": frozenset(_CORE.split()),
    "remote": frozenset({"url", "pushurl", "fetch", "prune", "tagopt"}),
    "branch": frozenset({"remote", "merge", "rebase", "description", "vscode-merge-base"}),
    "submodule": frozenset({"url", "active"}),
    "extensions": frozenset({"objectformat"}),
    "user": frozenset({"name", "email"}),
    "init": frozenset({"defaultbranch"}),
    "pull": frozenset({"rebase", "ff"}),
    "push": frozenset({"default", "autosetupremote"}),
    "fetch": frozenset({"prune"}),
    "color": frozenset({"ui"}),
    "gc": frozenset({"auto"}),
}


def git_risk(cwd: Path) -> str:
    """What git could obey in the repository around `cwd`; empty where it is plain, or none."""
    root = repository_root(cwd)
    for folder in (cwd, *cwd.parents):
        if path_exists(folder / "HEAD") and is_folder(folder / "objects"):
            return f"{folder} is itself a git directory"
        if folder == root:
            return _risk_in(folder / ".git")
    return ""


def _risk_in(inside: Path) -> str:
    if is_link(inside) or not is_folder(inside):
        return f"{inside} points elsewhere"
    for name in ("commondir", "config.worktree"):
        if path_exists(inside / name):
            return f"{inside / name} loads settings from elsewhere"
    if held := _held_repositories(inside):
        return held
    try:
        for hook in sorted((inside / "hooks").iterdir()):
            if hook.suffix != ".sample":
                return f"{hook} is a hook"
    except OSError:
        pass  # there are none
    try:
        return next(_odd_settings(inside / "config"), "")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        return f"{inside / 'config'} cannot be read"


def _held_repositories(inside: Path) -> str:
    """Why git may go into repositories within this one, and obey their settings.

    The index has an entry for each, whose mode is 160000 (octal) whatever ``.gitmodules`` says.
    """
    if any(inside.glob("sharedindex.*")):
        return f"{inside} has a split index"
    try:
        with open_regular_file(inside / "index") as file:
            before = b""
            while block := file.read(_INDEX_BLOCK_BYTES):
                if _HELD_REPOSITORY in before + block:
                    return f"{inside / 'index'} may list submodules, whose settings apply"
                before = block[-len(_HELD_REPOSITORY) :]
    except FileNotFoundError:
        return ""
    except OSError:
        return f"{inside / 'index'} cannot be read"
    return ""


def _odd_settings(config: Path) -> Iterator[str]:
    """Every line that is not plain; git's own grammar allows far more than is known here."""
    with open_regular_file(config) as file:
        content = file.read(_MAX_CONFIG_BYTES + 1)
    if len(content) > _MAX_CONFIG_BYTES:
        yield f"{config} is too long to check"
    section = ""
    for number, whole in enumerate(content.decode("utf-8").split("\n"), start=1):
        line = whole.strip()
        if not line or line.startswith(("#", ";")):
            continue
        header = _SECTION.fullmatch(line)
        if header is not None and (section := header[1].lower()) in _PLAIN:
            continue
        setting = _SETTING.fullmatch(line)
        key = setting[1].lower() if setting else ""
        if key not in _PLAIN.get(section, ()) or line.endswith("\\"):
            name = (
                f"{section}.{key}" if key else f"the section {section}" if header else "this line"
            )
            yield f"{config}:{number}: {name} could run a program"
