"""The reference in ``docs/pages/reference/`` and the man page, as the registries have them.

python -m tests.support.reference_pages    # writes all of them anew
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from agent_tui import __version__
from agent_tui.cli.arguments import build_parser
from agent_tui.cli.subcommands import SUBCOMMANDS
from agent_tui.commands.core.command import Need
from agent_tui.commands.core.registry import load_commands
from agent_tui.config import Settings
from agent_tui.config.specs import section_description, setting_specs
from agent_tui.features.settings.config_file import settings_schema, toml_text
from agent_tui.key_actions import KEY_ACTIONS
from agent_tui.tools.files.obeyed import TABLE, When
from agent_tui.tools.registry import default_toolbox
from tests.support.event_reference import event_reference

DOCS = Path(__file__).parents[2] / "docs"
_COLUMNS = "80"
_NEEDS: Mapping[Need, str] = {
    "": "",
    "person": "somebody to answer",
    "list": "lists to choose from",
    "screen": "the screen",
}


def command_page() -> str:
    """Every slash command."""
    rows = [
        (
            f"`{' '.join(filter(None, (f'/{one.name}', one.argument_hint)))}`",
            one.description,
            ", ".join(f"`/{alias}`" for alias in one.aliases),
            _NEEDS[one.needs],
        )
        for one in load_commands().commands
    ]
    head = (
        "# Slash commands\n\nType `/` in the prompt to list these commands; Tab completes one. "
        "The last column says what a command needs: `-p` and editors have no screen.\n\n"
    )
    return head + _table(("command", "what it does", "also", "needs"), rows)


def key_page() -> str:
    """Every key that has a name in the settings."""
    rows = [
        (f"`{one.name}`", ", ".join(f"`{key}`" for key in one.keys), one.description)
        for one in KEY_ACTIONS.values()
    ]
    head = (
        "# Keys\n\nEvery key of the chat and the prompt has a name. `[keys]` in `config.toml` "
        "[changes it](../customize.md#keys); `/keys` shows your current keys.\n\n"
    )
    return head + _table(("name", "keys", "what it does"), rows)


def setting_page() -> str:
    """Every setting, by section."""
    parts = [
        "# Settings\n\n`config.toml` holds these settings; each also has a variable. "
        "[Customize it](../customize.md#settings) says where the file is and how to change it.\n"
    ]
    for section, specs in groupby(setting_specs(Settings()), key=lambda spec: spec.section):
        if section[:1] == ("keys",):
            parts.append("\n## [keys]\n\nThe names are those of [the keys](keys.md).\n")
            continue
        title = f"[{'.'.join(section)}]" if section else "Top level"
        parts.append(f"\n## {title}\n\n")
        if about := section_description(section):
            parts.append(f"{about}\n\n")
        rows = [
            (
                f"`{spec.key[-1]}`",
                spec.description,
                spec.allowed,
                f"`{toml_text(spec.default)}`" if spec.default is not None else "",
                f"`{spec.variable}`" if spec.variable else "",
            )
            for spec in specs
        ]
        parts.append(_table(("setting", "what it is", "takes", "default", "variable"), rows))
    return "".join(parts)


def setting_schema() -> str:
    """The JSON Schema of ``config.toml``."""
    return json.dumps(settings_schema(), ensure_ascii=False, indent=2) + "\n"


def tool_page() -> str:
    """Every tool of the model, in the words that the model is given."""
    parts = ["# Tools\n\nThe model has these tools. These are the texts that it reads.\n"]
    for spec in default_toolbox().specs:
        parts.append(f"\n## {spec.name}\n\n{_text(spec.description)}\n")
    return "".join(parts)


_FOLLOWED: Mapping[When, str] = {
    "unasked": "Followed without a question. Commands in the sandbox cannot change these files: "
    "what they leave is held back, and you decide. An edit asks in mode `accept-edits`, too.",
    "text": "The same, but these files run nothing themselves: they are texts for a model, or take "
    "effect after a commit or with your approval. So git may change them in the sandbox.",
    "later": "These decide what runs when you build, push or run the code, as the code itself "
    "does. Commands in the sandbox may write them; an edit asks in mode `accept-edits`, too. So "
    "does an edit of a hidden file that is in no list and not known to be harmless.",
    "start": "Programs read these at every start, usually from your home folder. An edit asks in "
    "every mode.",
}


def followed_page() -> str:
    """Every file that other programs follow."""
    parts = [
        "# Files that other programs follow\n\nThe sandbox and the file tools protect these files, "
        "in every folder of a project. `name/` is a folder with all that is in it, without an "
        "agent's `worktrees/`, and case does "
        "not count. [The sandbox](../sandbox.md#files-that-other-programs-act-on) says how.\n"
    ]
    for when, listed in TABLE.items():
        rows = [
            (who, " ".join(f"`{path}`" for path in paths.split())) for who, paths in listed.items()
        ]
        parts += [f"\n{_FOLLOWED[when]}\n\n", _table(("program", "files"), rows)]
    return "".join(parts)


def command_line_page() -> str:
    """``--help`` of the program and of each subcommand."""
    parts = ["# Command line\n\n`agent-tui --help` and `agent-tui COMMAND --help` print this.\n"]
    for name, parser in _parsers():
        parts.append(f"\n## {name}\n\n```text\n{_help(parser)}\n```\n")
    return "".join(parts)


def man_page() -> str:
    """``agent-tui.1``, made of the same parsers."""
    lines = [
        f'.TH AGENT\\-TUI 1 "" "agent\\-tui {_roff(__version__)}" "User Commands"',
        ".SH NAME",
        "agent\\-tui \\- a coding agent in the terminal "
        "whose context never runs out and never forgets",
    ]
    for name, parser in _parsers():
        lines += [f".SH {_roff(name.upper())}", ".nf", _roff(_help(parser)), ".fi"]
    lines += [
        ".SH FILES",
        "config.toml in the configuration folder; sessions below the data folder.",
        "agent\\-tui config path and agent\\-tui doctor name both.",
    ]
    return "\n".join(lines) + "\n"


PAGES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "pages/events.md": event_reference,
        "pages/reference/commands.md": command_page,
        "pages/reference/keys.md": key_page,
        "pages/reference/settings.md": setting_page,
        "pages/reference/config.schema.json": setting_schema,
        "pages/reference/tools.md": tool_page,
        "pages/reference/followed-files.md": followed_page,
        "pages/reference/command-line.md": command_line_page,
        "packaging/agent-tui.1": man_page,
    }
)
"""What makes each file, by its path below ``docs/``."""


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield "agent-tui", build_parser()
    for name, row in SUBCOMMANDS.items():
        yield f"agent-tui {name}", row.load().build_parser()


def _help(parser: argparse.ArgumentParser) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _COLUMNS
    try:
        return parser.format_help().rstrip()
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", escaped)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return _text(" ".join(text.split())).replace("|", "\\|")


def _text(text: str) -> str:
    """`text` with what HTML would take for tags written so that it is seen."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else p.replace("<", "&lt;") for p in parts)


if __name__ == "__main__":
    for path, page in PAGES.items():
        (DOCS / path).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / path).write_text(page(), encoding="utf-8")
