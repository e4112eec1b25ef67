"""What the person has set: the settings, the keys, the MCP servers, the hooks."""

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.hooks.spec import FoundHook, FoundHooks
from agent_tui.cli.doctor.check import Check, Environment, State, find_program, listed, shown_path
from agent_tui.cli.folders import kept_trust
from agent_tui.cli.settings import is_unusable_address
from agent_tui.cli.tool_services import hook_sources
from agent_tui.config import McpServerSettings, SettingProblem, setting_variables
from agent_tui.installation import install_command
from agent_tui.local_models.addresses import is_loopback
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.providers.accounts.table import ACCOUNTS
from agent_tui.providers.keys import KEY_VARIABLES, what_is_wrong_with
from agent_tui.safe_text import printable_line
from agent_tui.tools.mcp.spec import name_problem

_SETTINGS = "settings"
_KEYS = "keys"
_EXAMPLE = "ANTHROPIC_API_KEY"
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_ADDRESS_VARIABLES = (
    "ANTHROPIC_API_BASE",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_BASE_URL",
)
_MCP = "mcp"
_HOOKS = "hooks"
_WORD = re.compile(r"[\w./+-]+")
_SHELL_WORDS = frozenset(("if", "for", "while", "case", "echo", "cd", "set", "exec", "export"))
_SDK = "mcp"


def check_settings(env: Environment) -> Iterator[Check]:
    """The settings file and every line of it that is not in force."""
    file = shown_path(env.config_file, env.environ)
    if env.config_file.exists():
        problems = env.loaded.problems
        found = f"{file}, {_counted(len(problems), 'problem') if problems else 'no problems'}"
        yield Check(_SETTINGS, "file", "info" if problems else "ok", found)
    else:
        yield Check(_SETTINGS, "file", "info", f"{file} does not exist; defaults apply")
    for problem in env.loaded.problems:
        yield _problem_check(problem, env.environ)


def check_environment(env: Environment) -> Iterator[Check]:
    """Our own variables that are in force, by name."""
    known = {*setting_variables(), *paths.FOLDER_VARIABLES}
    present = sorted(name for name in env.environ if name.startswith("AGENT_TUI_"))
    in_force = [name for name in present if name in known]
    found = f"{listed(in_force)} (overrides the file)" if in_force else "no AGENT_TUI_* settings"
    yield Check(_SETTINGS, "environment", "info" if in_force else "ok", found)


def check_rules(env: Environment) -> Iterator[Check]:
    """The permission rules of the settings and of this project."""
    if env.cwd is None:
        return
    permissions = PermissionEngine(
        mode=env.loaded.settings.permission_mode,
        rules=env.loaded.settings.permissions,
        workspace=env.cwd,
        project_rules_file=paths.project_dir(env.cwd) / "permissions.toml",
        is_interactive=False,
    )
    rules = _counted(len(permissions.book.rules), "rule")
    found = f"{env.loaded.settings.permission_mode} mode, {rules}"
    yield Check(_SETTINGS, "permissions", "ok", found)
    for problem in permissions.book.problems:
        advice = "Fix the rule. Until then it has no effect."
        yield Check(_SETTINGS, "permissions", "bad", f"ignored: {problem}", advice)


def _problem_check(problem: SettingProblem, environ: Mapping[str, str]) -> Check:
    """A whole file, a permission or an address that is not in force is worse than one odd key."""
    is_address = is_unusable_address(problem)
    is_grave = not problem.key or problem.key.startswith("permissions") or is_address
    state: State = "bad" if is_grave else "warning"
    home = environ.get("HOME", "")
    text = str(problem)
    if home not in ("", "/"):
        text = text.replace(f"{home}/", "~/", 1)
    if not problem.key:
        advice = "Fix the file. Until then, none of its settings apply."
    elif is_address:
        advice = (
            "Write a full URL such as http://127.0.0.1:8080/v1. "
            "Until then, no model can be reached."
        )
    elif problem.line:
        advice = "Fix or remove that line. Until then, the default applies."
    else:
        advice = "Fix or unset that variable. Until then, the default applies."
    return Check(_SETTINGS, problem.key or "file", state, text, advice)


def check_keys(env: Environment) -> Iterator[Check]:
    """One line for every key that is set, one for those that are not."""
    missing: list[str] = []
    for variables in KEY_VARIABLES.values():
        present = [name for name in variables if env.environ.get(name)]
        for name in present:
            yield _key_check(name, env.environ[name], env.kept.places.get(name, ""))
        if not present:
            missing.append(variables[0])
    for problem in env.kept.problems:
        advice = "Store it again with agent-tui login NAME, or set its variable."
        yield Check(_KEYS, "stored", "warning", problem, advice)
    for account in ACCOUNTS.values():
        if account.is_signed_in(env.environ):
            yield Check(_KEYS, account.name, "ok", f"signed in to {account.title}")
    if missing:
        advice = (
            f"To add one: export {_EXAMPLE}=... before you start agent-tui, or agent-tui login NAME"
        )
        yield Check(_KEYS, "not set", "info", ", ".join(missing), advice)


def check_named_variables(env: Environment) -> Iterator[Check]:
    """The variables that ``api_key_env`` names in the settings."""
    settings = env.loaded.settings
    named = {"api_key_env": (settings.api_key_env, settings.base_url)}
    for model, own in settings.models.items():
        base_url = own.base_url or settings.base_url
        named[f'models."{model}".api_key_env'] = (own.api_key_env or "", base_url)
    for setting, (variable, base_url) in named.items():
        if variable:
            yield _named_check(env, setting, variable, base_url)


def check_addresses(env: Environment) -> Iterator[Check]:
    """Variables that send a provider's requests somewhere else."""
    if moved := [name for name in _ADDRESS_VARIABLES if env.environ.get(name)]:
        found = f"{', '.join(moved)} set: requests and that provider's key go there"
        yield Check(_KEYS, "addresses", "info", found)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _key_check(name: str, key: str, place: str = "") -> Check:
    if wrong := what_is_wrong_with(key):
        advice = f"Set {name} to the key only, with nothing around it."
        return Check(_KEYS, name, "bad", f"is set, but {wrong}", advice)
    return Check(_KEYS, name, "ok", f"is stored in {place}" if place else "is set")


def _named_check(env: Environment, setting: str, variable: str, base_url: str) -> Check:
    if variable not in env.environ and not _VARIABLE_NAME.fullmatch(variable):
        # It may be the key itself, written where its variable's name belongs.
        return Check(
            _KEYS,
            setting,
            "bad",
            "does not look like a variable name (not shown: it may be a key)",
            f"Put the key in an environment variable such as {_EXAMPLE}, and write the variable's "
            "name here.",
        )
    if key := env.environ.get(variable):
        found = _key_check(variable, key)
        return Check(_KEYS, setting, found.state, f"{variable} {found.found}", found.advice)
    is_own = bool(base_url) and is_loopback(base_url)
    return Check(
        _KEYS,
        setting,
        "warning" if is_own else "bad",
        f"{variable} is not set",
        f"export {variable}=... before you start agent-tui, or remove {setting} from config.toml.",
    )


def check_servers(env: Environment) -> Iterator[Check]:
    """Whether each server could be started; ``/mcp`` shows whether it was."""
    servers = env.loaded.settings.mcp.servers
    if not servers:
        yield Check(_MCP, "servers", "info", "none in the settings ([mcp.servers.NAME])")
    for name, server in servers.items():
        if why := name_problem(name):
            advice = "Rename it in config.toml."
            yield Check(_MCP, name[:40], "warning", f"ignored: {why}", advice)
        elif not server.enabled:
            yield Check(_MCP, name, "info", "disabled in the settings")
        elif server.is_of_others:
            yield Check(_MCP, name, "info", "applies to a server of a project or an editor")
        else:
            yield _at_address(name, server) if server.url else _program(env, name, server)


def _program(env: Environment, name: str, server: McpServerSettings) -> Check:
    path = find_program(server.command, env.environ)
    if path is None:
        found = f"{server.command} not found on PATH"
        return Check(_MCP, name, "warning", found, "Install it, or write its full path.")
    return Check(_MCP, name, "ok", path)


def check_hooks(env: Environment) -> Iterator[Check]:
    """Whether each hook could be run: the person's own, and those of a trusted project."""
    sources = hook_sources(env.loaded.settings, kept_trust())
    found = sources.find(env.cwd) if env.cwd is not None else FoundHooks()
    if not found.hooks and not found.problems:
        yield Check(_HOOKS, "hooks", "info", "none in the settings ([[hooks.EVENT]])")
    for problem in found.problems:
        yield Check(
            _HOOKS, "ignored", "warning", problem, "Fix it, then run agent-tui doctor again."
        )
    for one in found.hooks:
        yield _hook_check(env, one)


def _hook_check(env: Environment, one: FoundHook) -> Check:
    spec = one.spec
    shown = printable_line(spec.command, 80)
    if not one.is_allowed:
        why = "not approved yet" if one.is_allowed is None else "refused"
        return Check(_HOOKS, spec.event, "info", f"{why}, not run: {shown}")
    first = spec.command.split()[0]
    is_program = _WORD.fullmatch(first) and first not in _SHELL_WORDS
    place = str((env.cwd or Path()) / first) if "/" in first else first
    if is_program and find_program(place, env.environ) is None:
        found = f"{first} not found: {shown}"
        return Check(_HOOKS, spec.event, "warning", found, f"Fix the command in {spec.source}.")
    return Check(_HOOKS, spec.event, "ok", shown)


def _at_address(name: str, server: McpServerSettings) -> Check:
    if find_spec(_SDK) is None:
        found = f"{server.url} requires the package mcp"
        advice = install_command("mcp")
        return Check(_MCP, name, "warning", found, advice)
    return Check(_MCP, name, "ok", server.url)
