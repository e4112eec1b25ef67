"""What commands see of our environment: no unnamed secrets, no variables that change behaviour.

Pure functions from one environment to another.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import keep_trusted, order_by_trust
from agent_tui.secret_text import (
    has_key,
    has_password_in_address,
    is_secret_name,
    may_let_in,
    without_user,
)

_STEERING: Final = frozenset(
    (
        *("BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4"),
        *("BASH_XTRACEFD", "LESSOPEN", "LESSCLOSE", "MANPAGER", "SYSTEMD_PAGER"),
        *("GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS"),
        "GIT_CONFIG_PARAMETERS",
    )
)
"""Variables that make a shell, a pager or git do something the command does not show."""

_QUIET: Final[Mapping[str, str]] = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Nobody is there to page through output or to answer."""

_NAME_IN_VALUE: Final = re.compile(r'([\w.-]+)(?:=|"\s*:\s*")(?![$<{*])[^\s;"]')
"""A name with a value, as in ``MAVEN_OPTS=-Dhttps.proxyPassword=x``, or in JSON."""

_GIT_SETTINGS: Final = (("core.fsmonitor", "false"),)
"""Otherwise ``git status`` runs a program that the repository's configuration names."""

_GIT_PLACES: Final = frozenset(
    (
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES"),
        *("GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG_NOSYSTEM"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    )
)
"""Where the user's repository and configuration are: our calls look where their git does."""

_QUIET_GIT: Final[Mapping[str, str]] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "",
}


def model_environ(
    environ: Mapping[str, str], *, own_keys: Collection[str], passed: Iterable[str]
) -> dict[str, str]:
    """The environment of the model's commands: `environ` without values that may be secret.

    A proxy stays, as commands would be offline without it, but not its user and password.

    Args:
        environ: Our environment.
        own_keys: Variables with keys of model providers.
        passed: Names (``GITHUB_TOKEN``) and patterns (``AWS_*``) of variables that stay.
    """
    allowed = tuple(passed)
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if _is_named(name, allowed):
            kept[name] = value
        elif name not in own_keys:
            plain = without_user(value) if name.lower().endswith("_proxy") else value
            if not _is_secret(name, plain):
                kept[name] = plain
    return _with_whole_git_settings(kept)


def person_environ(
    environ: Mapping[str, str], *, own_keys: Collection[str], passed: Iterable[str]
) -> dict[str, str]:
    """The environment of commands the user types: everything but the providers' keys.

    The output of such a command may go to the model, and commands do not need the model's keys;
    users expect their own commands to find their tokens.
    """
    allowed = tuple(passed)
    return {
        name: value
        for name, value in environ.items()
        if name not in own_keys or _is_named(name, allowed)
    }


def outside_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a shell command outside the sandbox that the user did not type.

    Programs in folders that commands can write are found last: approving ``git push`` must not run
    a program that a command put into ``.venv/bin``.
    """
    return (
        {**environ, "PATH": order_by_trust(environ["PATH"])} if "PATH" in environ else {**environ}
    )


def shell_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a shell command without a user at a terminal."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _STEERING and not name.startswith("BASH_FUNC_")
    }
    return {**with_git_settings(kept, _GIT_SETTINGS), **_QUIET}


def with_git_settings(
    environ: Mapping[str, str], settings: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """`environ` with further git settings, which override those in git's files."""
    given = dict(environ)
    count = int(given.get("GIT_CONFIG_COUNT", "")) if _has_count(given) else 0
    for number, (key, value) in enumerate(settings, start=count):
        given[f"GIT_CONFIG_KEY_{number}"], given[f"GIT_CONFIG_VALUE_{number}"] = key, value
    given["GIT_CONFIG_COUNT"] = str(count + len(settings))
    return given


def _with_whole_git_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with those git settings that still have a key and a value: git fails at others."""
    if not _has_count(environ):
        return dict(environ)
    keys, values = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"
    pairs = [
        (environ[f"{keys}{number}"], environ[f"{values}{number}"])
        for number in range(int(environ["GIT_CONFIG_COUNT"]))
        if f"{keys}{number}" in environ and f"{values}{number}" in environ
    ]
    others = {
        name: value
        for name, value in environ.items()
        if not name.startswith((keys, values)) and name != "GIT_CONFIG_COUNT"
    }
    return with_git_settings(others, pairs) if pairs else others


def git_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for our own git calls: only git's location variables are kept.

    Git is not searched for in folders that commands can write.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _STEERING and (not name.startswith("GIT_") or name in _GIT_PLACES)
    }
    return {**kept, **_QUIET_GIT, "PATH": keep_trusted(environ.get("PATH"))}


_CONNECTING: Final = frozenset(
    (
        *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_SSL_CAINFO"),
        *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY", "GIT_SSL_CERT", "GIT_SSL_KEY"),
    )
)
"""How the user's git connects to a remote."""

_QUIET_SSH: Final = "ssh -o BatchMode=yes"

_WINDOWS: Final = frozenset(("DISPLAY", "WAYLAND_DISPLAY"))
"""Where SSH and credential helpers would open a dialog."""

_NO_DIALOG: Final[Mapping[str, str]] = {
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
}


def remote_git_environ(
    environ: Mapping[str, str], repository: Path, settings: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """`environ` for a git call in our own `repository` that may use the network.

    No file of settings is read, only `settings`. Neither git nor SSH nor a credential helper asks
    for a password: a dialog that nobody answers would hang.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _STEERING | _CONNECTING | _WINDOWS and not name.startswith("GIT_")
    }
    connecting = {name: environ[name] for name in _CONNECTING if name in environ}
    if not {"GIT_SSH", "GIT_SSH_COMMAND"} & connecting.keys() and not any(
        key == "core.sshcommand" for key, _ in settings
    ):
        connecting["GIT_SSH_COMMAND"] = _QUIET_SSH
    own = {
        "GIT_DIR": os.fspath(repository),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "LC_ALL": "C",
        "PATH": keep_trusted(environ.get("PATH")),
    }
    quiet = (*settings, ("credential.interactive", "false"))
    return with_git_settings({**kept, **connecting, **own, **_NO_DIALOG}, quiet)


def _has_count(environ: Mapping[str, str]) -> bool:
    return re.fullmatch(r"[0-9]{1,4}", environ.get("GIT_CONFIG_COUNT", "")) is not None


def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_secret(name: str, value: str) -> bool:
    return (
        is_secret_name(name)
        or has_key(value)
        or has_password_in_address(value)
        or may_let_in(value)
        or any(map(is_secret_name, _NAME_IN_VALUE.findall(value)))
    )
