"""Words that a shell completes and that are known only when it asks: models, sessions, settings."""

import os
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, assert_never, get_args

WordKind: TypeAlias = Literal["model", "local-model", "session", "setting", "value"]
WORD_KINDS: tuple[WordKind, ...] = get_args(WordKind)

_MOST_SESSIONS = 100


def words_of(kind: WordKind, before: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Words and what they mean; nothing outside this machine is asked.

    Args:
        kind: What is looked for.
        before: The words of the command line so far.
    """
    match kind:
        case "model":
            yield from _models()
        case "local-model":
            yield from ((name.removeprefix("local/"), about) for name, about in _local_models())
        case "session":
            yield from _sessions()
        case "setting":
            yield from _settings()
        case "value":
            yield from _values(before)
        case _:
            assert_never(kind)


def _models() -> Iterator[tuple[str, str]]:
    """Models of this machine and of the settings, then the table's of providers that answer."""
    from agent_tui.cli.login.keys import kept_keys
    from agent_tui.cli.settings import read_settings
    from agent_tui.providers.accounts.table import ACCOUNTS
    from agent_tui.providers.families import FAMILIES
    from agent_tui.providers.keys import KEY_VARIABLES
    from agent_tui.providers.table import bundled_table

    yield from _local_models()
    yield from ((name, "in your settings") for name in read_settings(None).models)
    table = bundled_table()
    kept = kept_keys().places()
    with_key = [
        provider
        for provider, variables in KEY_VARIABLES.items()
        if provider in kept or any(os.environ.get(variable) for variable in variables)
    ]
    with_key += [one.provider for one in ACCOUNTS.values() if one.is_signed_in(os.environ)]
    for provider in with_key or FAMILIES:
        about = "" if with_key else "needs a key"
        for name in sorted(filter(table.calls_tools, table.of_provider(provider))):
            yield name, about


def _local_models() -> Iterator[tuple[str, str]]:
    from agent_tui import paths
    from agent_tui.local_models.library import ModelLibrary

    for model in ModelLibrary(paths.models_dir()).models():
        yield f"local/{model.name}", "on this machine"


def _sessions() -> Iterator[tuple[str, str]]:
    from agent_tui.cli.folders import present_folder
    from agent_tui.cli.settings import read_settings, session_root
    from agent_tui.safe_text import printable_line
    from agent_tui.sessions.store import SessionStore

    store = SessionStore(session_root(read_settings(None)))
    for found in store.list(present_folder())[:_MOST_SESSIONS]:
        yield printable_line(found.id)[:8], printable_line(found.name or found.first_prompt, 60)


def _settings() -> Iterator[tuple[str, str]]:
    from agent_tui.cli.settings import read_settings
    from agent_tui.config.specs import setting_specs

    for spec in setting_specs(read_settings(None)):
        yield spec.name, spec.description


def _values(before: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What the setting that was named last may be."""
    from agent_tui.config.user_file import setting_named
    from agent_tui.errors import ConfigError

    try:
        spec = setting_named(before[-1] if before else "")
    except ConfigError:
        return
    if spec.kind == "switch":
        yield from (("true", ""), ("false", ""))
    elif spec.key == ("theme",):
        from agent_tui.ui.theme.themes import theme_names

        yield from ((name, "") for name in theme_names())
    elif spec.key[-1] == "model":
        yield from _models()
    else:
        yield from ((choice, "") for choice in spec.choices)
