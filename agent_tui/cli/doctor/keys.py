"""Keys: which are there and whether they look whole. Their values never leave this file."""

import re
from collections.abc import Iterator

from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.providers.base import is_loopback
from agent_tui.providers.keys import KEY_VARIABLES

_SECTION = "keys"
_EXAMPLE = "ANTHROPIC_API_KEY"
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_ADDRESS_VARIABLES = (
    "ANTHROPIC_API_BASE",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_BASE_URL",
)


def check_keys(around: Surroundings) -> Iterator[Check]:
    """One line for every key that is set, one for those that are not."""
    missing: list[str] = []
    for variables in KEY_VARIABLES.values():
        present = [name for name in variables if around.environ.get(name)]
        for name in present:
            yield _key_check(name, around.environ[name])
        if not present:
            missing.append(variables[0])
    if missing:
        advice = f"To use one of them: export {_EXAMPLE}=... before you start agent-tui."
        yield Check(_SECTION, "not set", "info", ", ".join(missing), advice)


def check_named_variables(around: Surroundings) -> Iterator[Check]:
    """The variables that ``api_key_env`` names in the settings."""
    settings = around.loaded.settings
    named = {"api_key_env": (settings.api_key_env, settings.base_url)}
    for model, own in settings.models.items():
        base_url = own.base_url or settings.base_url
        named[f'models."{model}".api_key_env'] = (own.api_key_env or "", base_url)
    for setting, (variable, base_url) in named.items():
        if variable:
            yield _named_check(around, setting, variable, base_url)


def check_addresses(around: Surroundings) -> Iterator[Check]:
    """Variables that send a provider's requests somewhere else."""
    if moved := [name for name in _ADDRESS_VARIABLES if around.environ.get(name)]:
        found = f"{', '.join(moved)} set: requests with that provider's key go there"
        yield Check(_SECTION, "addresses", "info", found)


def what_is_wrong_with(key: str) -> str:
    """Why `key` cannot be a key as it stands, in words that tell nothing of it; empty if it can."""
    if key != key.strip():
        return "has white space or a line break around it"
    if any(character.isspace() for character in key):
        return "has white space or a line break in it"
    if key[0] in "\"'`" or key[-1] in "\"'`":
        return "has quotation marks around it"
    if not key.isascii() or not key.isprintable():
        return "has characters in it that no key has"
    if key.startswith(("$", "<")):
        return "looks like a placeholder that was not filled in"
    if key.lower().startswith("bearer"):
        return "begins with the word Bearer"
    return ""


def _key_check(name: str, key: str) -> Check:
    if wrong := what_is_wrong_with(key):
        advice = f"Set {name} to the key alone: nothing around it, nothing but the key."
        return Check(_SECTION, name, "bad", f"is set, but {wrong}", advice)
    return Check(_SECTION, name, "ok", "is set")


def _named_check(around: Surroundings, setting: str, variable: str, base_url: str) -> Check:
    if variable not in around.environ and not _VARIABLE_NAME.fullmatch(variable):
        # It may be the key itself, written where its variable's name belongs.
        return Check(
            _SECTION,
            setting,
            "bad",
            "does not look like the name of a variable (not shown: it may be a key)",
            f"Give the name of the environment variable there, such as {_EXAMPLE}, "
            "and put the key into that variable.",
        )
    if key := around.environ.get(variable):
        found = _key_check(variable, key)
        return Check(_SECTION, setting, found.state, f"{variable} {found.found}", found.advice)
    is_own = bool(base_url) and is_loopback(base_url)
    return Check(
        _SECTION,
        setting,
        "warning" if is_own else "bad",
        f"{variable} is not set",
        f"export {variable}=... before you start agent-tui, or take {setting} out of config.toml.",
    )
