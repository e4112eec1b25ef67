"""The command line without a subcommand, as a typed value."""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from agent_tui._version import __version__
from agent_tui.cli.command_parser import CommandParser, whole_number
from agent_tui.cli.subcommands import row_lines, subcommand_help
from agent_tui.feature import (
    Option,
    OptionsModule,
    demo_option,
    headless_function,
    local_option,
    own_features,
)

if TYPE_CHECKING:  # pydantic would double the time of --version
    from _typeshed import SupportsWrite

    from agent_tui.config import PermissionMode
    from agent_tui.messages import ThinkingLevel

_DESCRIPTION = """\
A coding agent for the terminal. It reads and edits files and runs commands
in the current folder, with the model you choose."""

_COMMANDS = f"""\
commands:
{subcommand_help()}
"""

_EXAMPLES = """\

  Run agent-tui COMMAND --help for the options of a command.

examples:
{demo}{local}  agent-tui -m anthropic/claude-sonnet-5-5
  agent-tui -m qwen3 --base-url http://127.0.0.1:8080/v1
  agent-tui -c                          continue the session you left last here"""


Rows: TypeAlias = Callable[[], Iterable[tuple[str, str]]]


class _Parser(CommandParser):
    """The parser of the command line; its help also lists `more_commands`."""

    more_commands: Rows = tuple

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help."""
        if more := row_lines(self.more_commands()):
            self.epilog = f"{_COMMANDS}{more}\n{(self.epilog or '').removeprefix(_COMMANDS)}"
        super().print_help(file)


class Arguments(NamedTuple):
    """The options and words of the command line.

    `switches` are the options of features that were given, `option_values` what their modules kept
    of those with values, and `setting_values` the settings that these options set. `notices` are
    lines for the user that were found before the program was built.

    A named tuple, because the first paint waits for this class: a dataclass takes 3 ms to make.
    """

    prompt: str
    continues: bool
    resume: str | None
    model: str | None
    base_url: str | None
    api_key_env: str | None
    thinking: "ThinkingLevel | None"
    permission_mode: "PermissionMode | None"
    cwd: Path | None
    session_dir: str | None
    keeps_session: bool
    trusts_folder: bool
    switches: tuple[str, ...] = ()
    added_folders: tuple[Path, ...] = ()
    max_turns: int = 0
    max_cost_usd: float | None = None
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    allowed_net: tuple[str, ...] = ()
    fallback_model: str | None = None
    option_values: Mapping[str, str] = MappingProxyType({})
    setting_values: Mapping[str, str] = MappingProxyType({})
    notices: tuple[str, ...] = ()

    @property
    def is_headless(self) -> bool:
        """Whether to run without a user instead of opening the screen."""
        return bool(headless_function(self.option_values))

    @property
    def is_demo(self) -> bool:
        """Whether a demo is wanted, which uses nothing of the user's."""
        return _names(demo_option(), self.switches)

    @property
    def is_local(self) -> bool:
        """Whether a model on this machine is wanted."""
        return _names(local_option(), self.switches)

    @property
    def origin(self) -> str:
        """What creates sessions, as their headers say; empty for an interactive run."""
        return "tour" if self.is_demo else "print" if self.is_headless else ""


Start: TypeAlias = Callable[[Arguments], int]
"""Runs the program with these arguments; returns the exit code."""


def _names(option: Option | None, switches: Sequence[str]) -> bool:
    return option is not None and option.name in switches


def _examples() -> str:
    demo, local = demo_option(), local_option()
    return _EXAMPLES.format(
        demo=_example(demo, demo.summary if demo is not None else ""),
        local=_example(local, "use a small local model, no key needed"),
    )


def _example(option: Option | None, summary: str) -> str:
    return f"  {f'agent-tui --{option.name}':<38}{summary}\n" if option is not None else ""


def parse_arguments(argv: Sequence[str], more_commands: Rows = tuple) -> Arguments:
    """Parse the command line; prints help or a usage error and exits as argparse does.

    Args:
        argv: The command line.
        more_commands: The subcommands of plugins and what they are, asked for by the help alone.
    """
    parser = build_parser()
    parser.more_commands = more_commands
    values = parser.parse_args(list(argv))
    demo, local = demo_option(), local_option()
    chosen = local.name if local is not None and local.name in values.switches else ""
    if chosen and (values.model or values.base_url):
        parser.error(f"--{chosen} cannot be combined with -m or --base-url")
    if chosen and demo is not None and demo.name in values.switches:
        parser.error(f"--{chosen} cannot be combined with --{demo.name}")
    values.prompt = " ".join(values.prompt)
    for is_headless in (False, True):  # what makes a prompt comes before what answers it
        for module in _modules_of_features(is_headless=is_headless):
            module.take_options(parser, values)
    vars(values).pop("prompt_option")
    for name in ("added_folders", "allowed", "denied", "allowed_net", "switches"):
        setattr(values, name, tuple(getattr(values, name)))
    return Arguments(**vars(values))


def _modules_of_features(*, is_headless: bool) -> Iterator[OptionsModule]:
    for feature in own_features():
        if feature.options_module and bool(feature.headless) is is_headless:
            yield cast(OptionsModule, import_module(feature.options_module))


_RULE_EXAMPLES = {"allow": '"bash(pytest *)"', "deny": '"write(docs/**)"'}
_RULE_NOTES = {"allow": "; repeatable, and deny rules still win", "deny": "; repeatable"}


def _dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in dollars such as 0.50")
    return amount


def _add_model(parser: argparse.ArgumentParser, local: Option | None) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "-m",
        "--model",
        metavar="NAME",
        help="model to use: a litellm name such as openai/gpt-6.1-sol or ollama_chat/qwen3"
        + (", or local/NAME for a model on this machine" if local is not None else ""),
    )
    model.add_argument(
        "--fallback-model",
        metavar="NAME",
        help="switch to this model if the first one does not answer after the usual retries",
    )
    model.add_argument(
        "--base-url", metavar="URL", help="use the OpenAI-compatible server at this URL"
    )
    model.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the API key"
    )
    model.add_argument(
        "--thinking",
        choices=("auto", "off", "low", "medium", "high", "xhigh", "max"),
        help="how much the model thinks before it answers (default: medium, if supported)",
    )
    if local is not None:
        _add_switch(model.add_argument, local)


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    safety = parser.add_argument_group("permissions")
    safety.add_argument(
        "--permission-mode",
        choices=("ask", "accept-edits", "plan", "full"),
        help="ask before writes and commands (default), ask before commands only, read only, "
        "or ask only before actions that lose work or history, or change the system",
    )
    safety.add_argument(
        "--trust",
        action="store_true",
        dest="trusts_folder",
        help="trust this folder for this run: read its AGENTS.md and .agent-tui/config.toml",
    )
    for decision, dest in (("allow", "allowed"), ("deny", "denied")):
        safety.add_argument(
            f"--{decision}",
            action="append",
            default=[],
            metavar="RULE",
            dest=dest,
            help=f"{decision} calls that match RULE in this run, such as "
            f"{_RULE_EXAMPLES[decision]}{_RULE_NOTES[decision]}",
        )
    safety.add_argument(
        "--allow-net",
        action="append",
        default=[],
        metavar="NAMES",
        dest="allowed_net",
        help="let commands in the sandbox connect to these bundles and domains in this run, such "
        "as pypi,npm,docs.python.org; registries means all package registries; repeatable",
    )


def _add_switch(add: Callable[..., object], option: Option) -> None:
    add(
        f"--{option.name}",
        action="append_const",
        const=option.name,
        dest="switches",
        help=option.summary,
    )


def build_parser() -> _Parser:
    """The parser of the command line without a subcommand."""
    parser = _Parser(
        prog="agent-tui",
        usage="agent-tui [OPTIONS] [PROMPT ...]\n       agent-tui COMMAND ...",
        description=_DESCRIPTION,
        epilog=f"{_COMMANDS}{_examples()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("prompt", nargs="*", metavar="PROMPT", help="first message to send")
    for module in _modules_of_features(is_headless=True):
        module.add_options(parser)
    parser.set_defaults(switches=[], option_values={}, setting_values={}, prompt_option="")
    local = local_option()
    for option in (option for feature in own_features() for option in feature.options):
        if option != local:
            _add_switch(add, option)
    where = parser.add_argument_group("session")
    which = where.add_mutually_exclusive_group()
    which.add_argument(
        "-c",
        "--continue",
        action="store_true",
        dest="continues",
        help="continue the session you left last in this folder; with -p, the newest one",
    )
    which.add_argument(
        "-r",
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="resume a session by id, name or file; without ID, choose from a list",
    )
    which.add_argument(
        "--no-session", action="store_false", dest="keeps_session", help="do not save the session"
    )
    where.add_argument("--session-dir", metavar="DIR", help="folder for session files")
    where.add_argument("--cwd", type=Path, metavar="DIR", help="work in this folder")
    where.add_argument(
        "--add-dir",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        dest="added_folders",
        help="also work in this folder; repeatable",
    )
    _add_model(parser, local)
    _add_permissions(parser)
    for module in _modules_of_features(is_headless=False):
        module.add_options(parser)
    limits = parser.add_argument_group("limits of this run")
    limits.add_argument(
        "--max-turns",
        type=whole_number("replies"),
        default=0,
        metavar="N",
        help="end a turn after N model replies",
    )
    limits.add_argument(
        "--max-cost",
        type=_dollars,
        metavar="DOLLARS",
        dest="max_cost_usd",
        help="stop calling models once this much is spent, including summaries and helpers",
    )
    add(
        "--version",
        action="version",
        version=f"agent-tui {__version__}",
        help="show the version and exit",
    )
    return parser
