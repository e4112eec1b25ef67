"""Settings of tools, for commands: without tokens, or hidden where they lie among toolchains."""

import os
from collections.abc import Iterable, Iterator, Mapping
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.errors import ToolError
from agent_tui.tools.files import protected
from agent_tui.tools.files.tool_tokens import (
    OF_THE_SYSTEM,
    holds_token,
    list_matches,
    may_hold_key,
    settings_in,
)
from agent_tui.tools.git.named_files import included_settings
from agent_tui.tools.git.settings import write_setting
from agent_tui.tools.git.token_settings import read_settings, tokens_in, without_tokens
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper

_GIT_SETTINGS: Final = (
    r"^(user\.(name|email)|init\.defaultbranch|core\.(autocrlf|eol|safecrlf|quotepath|excludesfile)"
    r"|pull\.(rebase|ff)|push\.(default|autosetupremote)|rebase\.(autostash|autosquash|updaterefs)"
    r"|merge\.(conflictstyle|ff)|diff\.(algorithm|colormoved|renames)|rerere\.enabled"
    r"|safe\.directory|filter\..*\.(clean|smudge|process|required))$"
)
_GIT_PATIENCE_S: Final = 5.0
_PIP_KEYS: Final = frozenset(
    {"index-url", "extra-index-url", "trusted-host", "timeout", "no-index", "require-virtualenv"}
)
_NPM_KEYS: Final = frozenset(
    {"registry", "fund", "audit", "save-exact", "save-prefix", "engine-strict", "legacy-peer-deps"}
)
_COPIED: Final = (".cargo/config.toml", ".config/uv/uv.toml", ".config/go/env", ".condarc")
"""Settings files that are copied whole, unless something in them looks like a secret."""

_WITHOUT_INSTALLATIONS: Final = frozenset(
    (
        *("bin", "sbin", "lib", "lib64", "libexec", "include", "share", "src", "pkgs", ".git"),
        *("node_modules", "conda-meta", "jmods", "legal", "docs", "test", "tests"),
    )
)
_DEEPEST: Final = 5
"""How far below a shown folder installations are: ``.asdf/installs/nodejs/22.1.0``."""

_MOST_FOLDERS: Final = 5_000


def tool_settings(
    home: Path, workspace: Path, environ: Mapping[str, str], keeper: ProcessKeeper
) -> dict[str, str]:
    """Settings for a stand-in of `home`, by name below it, without tokens and helpers. Blocking.

    Args:
        home: The user's home folder.
        workspace: Whose git settings apply, if they depend on the folder.
        environ: Where git is searched for.
        keeper: Starts git.
    """
    found = _git_settings(home, workspace, environ, keeper)
    pip = environ.get("PIP_CONFIG_FILE") or ""
    for file in (Path(pip), home / ".pip/pip.conf", home / ".config/pip/pip.conf"):
        if text := _pip_settings(read_settings(file)):
            found[".config/pip/pip.conf"] = text
    npm = Path(environ.get("NPM_CONFIG_USERCONFIG") or home / ".npmrc")
    if text := _npm_settings(read_settings(npm)):
        found[".npmrc"] = text
    for name in _COPIED:
        file = home / name
        if name.startswith(".cargo/") and (cargo := environ.get("CARGO_HOME")):
            file = Path(cargo, file.name)
        text = read_settings(file)
        if text and not may_hold_key(text):
            found[name] = text
    return found


def find_keys_among(toolchains: Iterable[Path], programs: Iterable[Path]) -> Iterator[Path]:
    """The files with keys, and the settings with tokens, of installed tools. Blocking.

    Args:
        toolchains: Folders with installations in them.
        programs: Folders of programs, as on ``PATH``, of further installations.
    """
    yield from filter(holds_token, map(Path, OF_THE_SYSTEM))
    for folder in dict.fromkeys(path.parent for path in programs if path.name == "bin"):
        yield from filter(holds_token, settings_in(folder))
    for folder in toolchains:
        yield from _find_keys_below(folder)


def _find_keys_below(top: Path) -> Iterator[Path]:
    pending = [(top, 0)]
    for folder, depth in pending:
        yield from filter(holds_token, settings_in(folder))
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    if protected.is_secret_name(entry.name) and not protected.is_certificate(
                        Path(entry)
                    ):
                        yield Path(entry)
                elif (
                    entry.name not in _WITHOUT_INSTALLATIONS
                    and depth < _DEEPEST
                    and len(pending) < _MOST_FOLDERS
                ):
                    pending.append((Path(entry), depth + 1))


def _git_settings(
    home: Path, workspace: Path, environ: Mapping[str, str], keeper: ProcessKeeper
) -> dict[str, str]:
    """The user's git name, mail and preferences, and their ignore rules.

    Read by git itself, so that settings that depend on the folder (``includeIf``) are right.
    """
    command = ["git", "-C", os.fspath(workspace), "config", "--global", "--includes", "-z"]
    try:
        _, printed = keeper.run(
            [*command, "--get-regexp", _GIT_SETTINGS],
            cwd=Path(os.sep),
            environ={**git_environ(environ), "HOME": os.fspath(home)},
            timeout_s=_GIT_PATIENCE_S,
            keeps_stderr=False,
        )
    except (OSError, ToolError):
        return {}
    ignored = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/ignore"
    lines: list[str] = []
    for setting in printed.decode("utf-8", "surrogateescape").split("\0"):
        key, _, value = setting.partition("\n")
        if key == "core.excludesfile":
            ignored = Path(value.replace("~", os.fspath(home), 1))
        elif key and not may_hold_key(value):
            lines.append(write_setting(key, value))
    found = {".gitconfig": "".join(lines)} if lines else {}
    if text := read_settings(ignored):
        found[".config/git/ignore"] = text
    return found


def _pip_settings(text: str) -> str:
    """The indexes in a ``pip.conf``, without addresses that may let in."""
    parser = RawConfigParser()  # as pip reads it
    try:
        parser.read_string(text)
    except ConfigParserError:
        return ""
    lines: list[str] = []
    for section in parser.sections():
        for key, value in parser.items(section):
            words = [word for word in value.split() if not may_hold_key(word)]
            if key.replace("_", "-") in _PIP_KEYS and words:
                lines.append("\n    ".join((f"{key} =", *words)))
    return "\n".join(("[global]", *lines, "")) if lines else ""


def _npm_settings(text: str) -> str:
    """The registries in an ``.npmrc``."""
    kept = [
        line
        for line in text.splitlines()
        if ((key := line.partition("=")[0].strip()) in _NPM_KEYS or key.endswith(":registry"))
        and not (key.startswith("//") or may_hold_key(line.partition("=")[2]))
    ]
    return "\n".join([*kept, ""]) if kept else ""


def plain_git_settings(obeyed: Iterable[Path]) -> dict[Path, tuple[bytes, int]]:
    """What commands see of git settings with tokens, and its mode. Blocking.

    Args:
        obeyed: What git follows in git folders. Copies of its settings count, and what a credential
            helper stores beside them.
    """
    found: dict[Path, tuple[bytes, int]] = {}
    for file in _git_settings_among(obeyed):
        text = read_settings(file)
        if (plain := without_tokens(text)) != text:
            found[file] = plain.encode("utf-8", "surrogateescape"), 0o600
    return found


def git_tokens(obeyed: Iterable[Path]) -> tuple[str, ...]:
    """The tokens in git settings among `obeyed`; see `plain_git_settings`. Blocking."""
    texts = map(read_settings, _git_settings_among(obeyed))
    return tuple(token for text in texts for token in tokens_in(text))


def _git_settings_among(obeyed: Iterable[Path]) -> Iterator[Path]:
    for path in obeyed:
        if path.name == "config.worktree":
            yield path
        elif path.name == "config":
            yield from (
                *list_matches(path.parent, "config*"),
                *list_matches(path.parent, "*credentials*"),
            )
            yield from included_settings(path.parent)
        elif path.name in ("remotes", "branches"):
            yield from list_matches(path, "*")
