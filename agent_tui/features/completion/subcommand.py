"""``agent-tui completion``: prints the script for a shell, and answers Tab in that shell.

The script starts this program at each Tab, with the command line in the environment. argcomplete
reads it and the parsers; `answer_shell` adds the other values.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import argcomplete
from argcomplete.completers import BaseCompleter, DirectoriesCompleter, FilesCompleter
from argcomplete.lexers import split_line
from argcomplete.shell_integration import shellcode

from agent_tui.cli.arguments import build_parser as build_main_parser
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.early_settings import names_plugins
from agent_tui.cli.output import write_text
from agent_tui.cli.subcommands import SUBCOMMANDS
from agent_tui.feature import Subcommand, load_object, own_features
from agent_tui.installation import COMMAND
from agent_tui.safe_text import safe_text

_SHELLS = ("bash", "zsh", "fish")
_DESCRIPTION = "Print the completion script for your shell."
_EPILOG = """\
Add one of these lines to your shell's startup file:
  ~/.bashrc                    eval "$(agent-tui completion bash)"
  ~/.zshrc, after compinit     source <(agent-tui completion zsh)
  ~/.config/fish/config.fish   agent-tui completion fish | source

For a faster start, save the script (agent-tui completion bash > FILE) and
load FILE instead. Commands, options, models and sessions are looked up on
this machine as you type."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui completion``."""
    parser = subcommand_parser("completion", _DESCRIPTION, _EPILOG)
    parser.add_argument("shell", choices=_SHELLS, help="shell to print the script for")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui completion`` with the arguments after that word; returns the exit code."""
    shell = cast(str, build_parser().parse_args(list(argv)).shell)
    write_text(shellcode([COMMAND], shell=shell))
    return 0


_MOST_SESSIONS = 100
_OF_LOCAL_MODELS = ("agent-tui models remove", "agent-tui models path")


def answer_shell() -> None:
    """Write the completions of the command line in ``COMP_LINE``, and end the process.

    Asks nothing outside this machine.
    """
    line = os.environ["COMP_LINE"]
    words = split_line(line, int(os.environ["COMP_POINT"]))[3]
    # zsh sends the whole line, which may begin with other commands.
    start = next((at for at, word in enumerate(words) if Path(word).name == COMMAND), 0)
    parser = build_main_parser()
    if subcommand := _subcommands().get("".join(words[start + 1 : start + 2])):
        parser = subcommand.load().build_parser()
        start += 1
    os.environ["_ARGCOMPLETE"] = str(start + 1)  # the word argcomplete takes for the program
    argcomplete.autocomplete(
        parser,
        always_complete_options=False,
        default_completer=_Values(is_first_word=len(words) == start + 1),
    )


def _subcommands() -> Mapping[str, Subcommand]:
    from agent_tui.cli.plugins import brought_subcommands

    return {**(brought_subcommands() if names_plugins() else {}), **SUBCOMMANDS}


class _Values(BaseCompleter):
    """The values of an option or positional word whose parser lists no choices."""

    def __init__(self, *, is_first_word: bool) -> None:
        self._is_first_word = is_first_word

    def __call__(
        self,
        *,
        prefix: str,
        action: argparse.Action,
        parser: argparse.ArgumentParser,
        parsed_args: argparse.Namespace,
    ) -> Mapping[str, str]:
        """The possible values, each with its meaning."""
        found: Iterable[tuple[str, str]] = ()
        match action.dest:
            case "prompt" if self._is_first_word:
                found = ((name, row.summary) for name, row in _subcommands().items())
            case "model" | "fallback_model":
                found = _models()
            case "name" if parser.prog in _OF_LOCAL_MODELS:
                found = ((name, "on this machine") for name in _local_models())
            case "session" | "resume":
                found = (*_sessions(), *_files(prefix))
            case "key":
                found = _settings()
            case "value":
                found = _values(cast("str | None", parsed_args.key) or "")
            case "cwd" | "session_dir" | "folder":
                found = ((path, "") for path in DirectoriesCompleter()(prefix=prefix))
            case _ if action.type is Path:
                found = _files(prefix)
            case name:
                found = _brought(name, parser.prog)
        return {
            safe_text(value, keep_newlines=False): safe_text(about, keep_newlines=False)
            for value, about in found
        }


def _files(prefix: str) -> Iterator[tuple[str, str]]:
    yield from ((path, "") for path in FilesCompleter()(prefix=prefix))


def _models() -> Iterator[tuple[str, str]]:
    """Models on this machine, in the settings and of plugins, then of providers with a key."""
    from agent_tui.cli.key_store import key_store
    from agent_tui.cli.plugins import plugins_in_shell
    from agent_tui.cli.settings import read_settings
    from agent_tui.commands.core.plugin_kinds import PROVIDERS
    from agent_tui.providers.accounts import own_accounts
    from agent_tui.providers.base import LOCAL
    from agent_tui.providers.keys import KEY_VARIABLES
    from agent_tui.providers.table import FAMILIES, read_bundled_table

    yield from ((f"{LOCAL}/{name}", "on this machine") for name in _local_models())
    yield from ((name, "in your settings") for name in read_settings(None).models)
    for provider in plugins_in_shell(PROVIDERS).of(PROVIDERS):
        yield from ((model.name, provider.via) for model in provider.models)
    table = read_bundled_table()
    kept = key_store().places()
    with_key = [
        provider
        for provider, variables in KEY_VARIABLES.items()
        if provider in kept or any(os.environ.get(variable) for variable in variables)
    ]
    with_key += [one.provider for one in own_accounts().values() if one.is_signed_in(os.environ)]
    for provider in with_key or FAMILIES:
        about = "" if with_key else "needs a key"
        for name in sorted(filter(table.calls_tools, table.of_provider(provider))):
            yield name, about


def _local_models() -> Iterable[str]:
    """The names of the models on this machine, without their provider."""
    from agent_tui.cli.settings import read_settings
    from agent_tui.providers.local_models import own_local_models

    return own_local_models(read_settings(None), os.environ).names()


def _sessions() -> Iterator[tuple[str, str]]:
    from agent_tui.cli.folders import present_folder
    from agent_tui.cli.settings import read_settings, session_root
    from agent_tui.safe_text import printable_line
    from agent_tui.sessions.store import SessionStore

    store = SessionStore(session_root(read_settings(None)))
    for found in store.list(present_folder())[:_MOST_SESSIONS]:
        yield printable_line(found.id)[:8], printable_line(found.name or found.first_prompt, 60)


def _brought(name: str, program: str) -> Iterator[tuple[str, str]]:
    """The values of the option or word `name` that features know."""
    for feature in own_features():
        if (found := feature.completions.get(name)) is not None:
            yield from cast("Callable[[str], Iterable[tuple[str, str]]]", load_object(found))(
                program
            )


def _settings() -> Iterator[tuple[str, str]]:
    from agent_tui.cli.settings import read_settings
    from agent_tui.config.specs import setting_specs

    for spec in setting_specs(read_settings(None)):
        yield spec.name, spec.description


def _values(key: str) -> Iterator[tuple[str, str]]:
    """The possible values of the setting `key`."""
    from agent_tui.config.user_file import setting_named
    from agent_tui.errors import ConfigError

    try:
        spec = setting_named(key)
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
        from agent_tui.cli.plugins import specs_in_shell

        yield from ((choice, "") for choice in specs_in_shell([spec])[0].choices)
