"""What commands see of our environment: nothing secret that was not named, nothing that steers.

Pure functions from one environment to another.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from agent_tui.program_lookup import trusted_first, trusted_path
from agent_tui.secret_text import has_key, has_password_in_address, is_secret_name, without_user

_STEERING: Final = frozenset(
    (
        *("BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4"),
        *("BASH_XTRACEFD", "LESSOPEN", "LESSCLOSE", "MANPAGER", "SYSTEMD_PAGER"),
        *("GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS"),
        "GIT_CONFIG_PARAMETERS",
    )
)
"""Variables that make a shell, a pager or git run or mean something the command does not say."""

_QUIET: Final[Mapping[str, str]] = MappingProxyType(
    {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
)
"""Nobody is there to page or to answer."""

_GIT_SETTINGS: Final = (("core.fsmonitor", "false"),)
"""Else ``git status`` runs a program that the repository's own configuration names."""

_GIT_PLACES: Final = frozenset(
    (
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES"),
        *("GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG_NOSYSTEM"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    )
)
"""Where the person's repository and configuration are: our calls look where their git does."""

_QUIET_GIT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
    }
)


def model_environ(
    environ: Mapping[str, str], *, own_keys: Collection[str], passed: Iterable[str]
) -> dict[str, str]:
    """The environment of the model's commands: `environ` without what is or looks like a secret.

    A proxy stays, as without it a command is offline, but not its user and password.

    Args:
        environ: Ours.
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
    return kept


def person_environ(
    environ: Mapping[str, str], *, own_keys: Collection[str], passed: Iterable[str]
) -> dict[str, str]:
    """The environment of commands the person types: all of theirs but the providers' keys.

    What such a command prints may go to the model, and a key for the model is none of its own
    business; a token of the person's is what they expect their own commands to find.
    """
    allowed = tuple(passed)
    return {
        name: value
        for name, value in environ.items()
        if name not in own_keys or _is_named(name, allowed)
    }


def outside_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a shell command outside the sandbox that the person does not type.

    What it names is looked up in folders that commands may write only if it is nowhere else: an
    approval of ``git push`` is none of what a command put into ``.venv/bin``.
    """
    return {**environ, "PATH": trusted_first(environ["PATH"])} if "PATH" in environ else {**environ}


def shell_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a shell command that nobody sits in front of."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _STEERING and not name.startswith("BASH_FUNC_")
    }
    return {**with_git_settings(kept, _GIT_SETTINGS), **_QUIET}


def with_git_settings(
    environ: Mapping[str, str], settings: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """`environ` with further settings for git, which are stronger than those of its files."""
    given = dict(environ)
    count = int(given.get("GIT_CONFIG_COUNT", "")) if _has_count(given) else 0
    for number, (key, value) in enumerate(settings, start=count):
        given[f"GIT_CONFIG_KEY_{number}"], given[f"GIT_CONFIG_VALUE_{number}"] = key, value
    given["GIT_CONFIG_COUNT"] = str(count + len(settings))
    return given


def git_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for the git calls we make ourselves: of git's own variables only places.

    Git is not looked up where commands may write.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _STEERING and (not name.startswith("GIT_") or name in _GIT_PLACES)
    }
    return {**kept, **_QUIET_GIT, "PATH": trusted_path(environ.get("PATH"))}


def _has_count(environ: Mapping[str, str]) -> bool:
    return re.fullmatch(r"[0-9]{1,4}", environ.get("GIT_CONFIG_COUNT", "")) is not None


def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or has_key(value) or has_password_in_address(value)
