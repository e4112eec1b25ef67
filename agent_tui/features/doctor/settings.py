"""Checks what the user has set: settings, rules, keys and plugins."""

import re
from collections.abc import Iterator

from agent_tui import paths
from agent_tui.cli.folders import project_store
from agent_tui.cli.settings import is_unusable_address, unknown_limit, user_config_path
from agent_tui.commands.core.checks import Check, path_text
from agent_tui.commands.core.plugin_kinds import KINDS
from agent_tui.commands.core.plugins import find_installed
from agent_tui.commands.core.short_words import count_text
from agent_tui.config.loading import SettingProblem
from agent_tui.config.model_addresses import is_loopback
from agent_tui.config.specs import setting_variables
from agent_tui.features.doctor.check import Environment
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.keys import KEY_VARIABLES, what_is_wrong_with
from agent_tui.safe_paths import path_exists

_EXAMPLE = "ANTHROPIC_API_KEY"
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_ADDRESSES = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL", "OPENAI_API_BASE", "OPENAI_BASE_URL")
_FIX = "Fix it, then run agent-tui doctor again."
_MAX_SHOWN_CHARS = 80


def check_settings(env: Environment) -> Iterator[Check]:
    """Check the settings file, what overrides it, and each setting that is not in force."""
    path, problems = user_config_path(), env.loaded.problems
    is_there = path_exists(path) or any(one.source == str(path) for one in problems)
    if not is_there:
        found = f"{path_text(path, env)} does not exist; defaults apply"
    else:
        count = count_text(len(problems), "problem") if problems else "no problems"
        found = f"{path_text(path, env)}, {count}"
    yield Check("file", "ok" if is_there and not problems else "info", found)
    known = {*setting_variables(), *paths.FOLDER_VARIABLES}
    if in_force := sorted(known & env.environ.keys()):
        found = f"{', '.join(in_force)} (overrides the file)"
        yield Check("environment", "info", found)
    for problem in problems:
        yield _problem_check(problem, env)


def check_rules(env: Environment) -> Iterator[Check]:
    """Check the permission rules of the settings and of this project."""
    if env.cwd is None:
        return
    permissions = PermissionEngine(
        mode=env.loaded.settings.permission_mode,
        rules=env.loaded.settings.permissions,
        workspace=env.cwd,
        project_rules_file=project_store(env.cwd) / "permissions.toml",
        is_interactive=False,
    )
    rules = count_text(len(permissions.book.rules), "rule")
    found = f"{env.loaded.settings.permission_mode} mode, {rules}"
    yield Check("permissions", "ok", found)
    for problem in permissions.book.problems:
        advice = "Fix the rule. Until then it has no effect; without a deny rule, -p does not run."
        yield Check("permissions", "bad", f"ignored: {problem}", advice)


def _problem_check(problem: SettingProblem, env: Environment) -> Check:
    """A problem as a check; a whole file, a permission or an address is worse than one odd key."""
    is_address, is_limit = is_unusable_address(problem), unknown_limit(problem) is not None
    if not problem.key:
        advice = "Fix the file. Until then, none of its settings apply and -p does not run."
    elif is_address:
        advice = "Write a full URL such as http://127.0.0.1:8080/v1. Until then, no model answers."
    else:
        what = "Fix or remove that line" if problem.line else "Fix or unset that variable"
        effect = "no request is sent" if is_limit else "the default applies"
        advice = f"{what}. Until then, {effect}."
    is_deciding = problem.key.startswith("permissions") or is_address or is_limit
    is_grave = not problem.key or is_deciding
    home = env.environ.get("HOME", "").rstrip("/")
    text = str(problem).replace(f"{home}/", "~/", 1) if home else str(problem)
    return Check(problem.key or "file", "bad" if is_grave else "warning", text, advice)


def check_keys(env: Environment) -> Iterator[Check]:
    """Report one line for every key that is set, and one for all that are not."""
    missing: list[str] = []
    for variables in KEY_VARIABLES.values():
        present = [name for name in variables if env.environ.get(name)]
        for name in present:
            yield _key_check(name, name, env)
        if not present:
            missing.append(variables[0])
    for problem in env.kept.problems:
        advice = "Store it again with agent-tui login NAME, or set its variable."
        yield Check("stored", "warning", problem, advice)
    for account in own_accounts().values():
        if account.is_signed_in(env.environ):
            yield Check(account.name, "ok", f"signed in to {account.title}")
    if missing:
        advice = (
            f"To add one: export {_EXAMPLE}=... before you start agent-tui, or agent-tui login NAME"
        )
        yield Check("not set", "info", ", ".join(missing), advice)
    if moved := [name for name in _ADDRESSES if env.environ.get(name)]:
        found = f"{', '.join(moved)} set: requests and that provider's key go there"
        yield Check("addresses", "info", found)


def check_named_variables(env: Environment) -> Iterator[Check]:
    """Check the variables that ``api_key_env`` names in the settings."""
    settings = env.loaded.settings
    named = {"api_key_env": (settings.api_key_env, settings.base_url)}
    for model, own in settings.models.items():
        base_url = own.base_url or settings.base_url
        named[f'models."{model}".api_key_env'] = (own.api_key_env or "", base_url)
    for setting, (variable, base_url) in named.items():
        if variable:
            yield _variable_check(env, setting, variable, base_url)


def _key_check(shown: str, variable: str, env: Environment) -> Check:
    """The check of the key in `variable`, which is set; `shown` is the name of the line."""
    label = "" if shown == variable else f"{variable} "
    if wrong := what_is_wrong_with(env.environ[variable]):
        advice = f"Set {variable} to the key only, with nothing around it."
        return Check(shown, "bad", f"{label}is set, but {wrong}", advice)
    place = env.kept.places.get(variable)
    return Check(shown, "ok", f"{label}is {f'stored in {place}' if place else 'set'}")


def _variable_check(env: Environment, setting: str, variable: str, base_url: str) -> Check:
    if env.environ.get(variable):
        return _key_check(setting, variable, env)
    if variable not in env.environ and not _VARIABLE_NAME.fullmatch(variable):
        # It may be the key itself, in place of the variable's name.
        return Check(
            setting,
            "bad",
            "does not look like a variable name (not shown: it may be a key)",
            f"Put the key in an environment variable such as {_EXAMPLE}, and write the variable's "
            "name here.",
        )
    return Check(
        setting,
        "warning" if base_url and is_loopback(base_url) else "bad",
        f"{variable} is not set",
        f"export {variable}=... before you start agent-tui, or remove {setting} from config.toml.",
    )


def check_plugins(env: Environment) -> Iterator[Check]:
    """Report what each plugin in the settings brings, and what of it was not loaded and why."""
    for package, parts in env.plugins.parts.items():
        yield Check(package, "ok" if parts else "info", ", ".join(parts) or "brings nothing")
    named = {_plain_name(package) for package in env.plugins.parts}
    for package in find_installed(KINDS):
        if _plain_name(package) not in named:
            yield Check(package, "info", "installed but not named in `plugins`: not loaded")
    for problem in env.plugins.problems:
        yield Check("not loaded", "warning", problem, _FIX)


def _plain_name(package: str) -> str:
    """The name of a package in the form in which two names are the same package."""
    return re.sub(r"[-_.]+", "-", package).lower()
