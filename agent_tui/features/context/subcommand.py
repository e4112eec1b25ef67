"""``agent-tui context``: shows what the model would see of a session file."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue

from agent_tui.cli.command_parser import subcommand_parser, whole_number
from agent_tui.cli.folders import present_folder
from agent_tui.cli.output import write_text
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.commands.core.plugin_kinds import PROVIDERS
from agent_tui.commands.core.plugins import Plugins
from agent_tui.config import Settings
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef, model_name
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.context import Context, build_context, messages_to_send, wrap_summary
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ContextUsage, ExactCounter

_DESCRIPTION = """\
Print the messages that a session would send to the model now, after
compaction. The system prompt and the tools are not part of a session and are
not shown."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui context``."""
    parser = subcommand_parser("context", _DESCRIPTION)
    parser.add_argument(
        "session", metavar="FILE_OR_ID", help="session file, id, start of an id, or name"
    )
    parser.add_argument(
        "--format",
        choices=("openai", "anthropic"),
        default="openai",
        help="message format (default: openai)",
    )
    parser.add_argument(
        "--window",
        type=whole_number("tokens"),
        metavar="TOKENS",
        help="size of the context window (default: that given to `compact`, else the model's)",
    )
    parser.add_json()
    add_session_dir(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui context`` with the arguments after that word; returns the exit code.

    Raises:
        SessionError: The session does not exist or cannot be read.
    """
    arguments = build_parser().parse_args(list(argv))
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings))
    summary_role = settings.compaction.summary_role
    with store.open(cast(str, arguments.session), present_folder(), read_only=True) as log:
        context = build_context(
            log.path_entries(), summary_role=summary_role, carryover=log.header.compaction
        )
        model = _model_of(log, context)
        window = cast("int | None", arguments.window) or _window_given(log, model)
        warnings = log.warnings
    messages = messages_to_send(context)
    summary = wrap_summary(context.summary) if summary_role == "system" and context.summary else ""
    payload: JsonObject
    if arguments.format == "anthropic":
        payload = anthropic_payload(summary, messages)
    else:
        payload = {"messages": list[JsonValue](openai_messages(summary, messages, model=model))}
    counter = ExactCounter()
    tokens = counter.count_messages(messages) + counter.count_text(summary)
    if not window:
        plugins = plugins_in_shell(PROVIDERS)
        warnings = (*warnings, *plugins.problems)
        window = _window_of(model, settings, plugins)
    if arguments.is_json:
        write_text(json.dumps({**payload, "tokens": tokens, "window": window}) + "\n")
        return 0
    write_text(_readable(payload))
    print(f"{tokens:,} of {window:,} tokens {ContextUsage(tokens, window, True).label}")
    for warning in warnings:
        print(f"warning: {strip_control_characters(warning)}", file=sys.stderr)
    return 0


def _model_of(log: SessionLog, context: Context) -> str:
    if context.model_id:
        return model_name(context.provider, context.model_id)
    return model_name(log.header.provider, log.header.model_id)


def _window_given(log: SessionLog, model: str) -> int:
    """The window that ``compact`` was given, as long as `model` is the same; 0 for none."""
    header = log.header
    is_same = model == model_name(header.provider, header.model_id)
    return header.compaction.window if header.compaction and is_same else 0


def _window_of(model: str, settings: Settings, plugins: Plugins) -> int:
    from agent_tui.providers.catalog import ModelCatalog
    from agent_tui.providers.local_models import own_local_models
    from agent_tui.providers.registry import providers_with

    local, own = own_local_models(settings, os.environ), providers_with(plugins.of(PROVIDERS))
    return ModelCatalog(settings, os.environ, local=local, own=own).info(ModelRef(model)).window


def _readable(payload: JsonObject) -> str:
    """The messages as text: a line with the role, then the content, as JSON if it is not text."""
    shown: list[str] = []
    messages = payload["messages"]
    assert isinstance(messages, list)
    for message in messages:
        assert isinstance(message, dict)
        rest = {key: value for key, value in message.items() if key not in ("role", "content")}
        shown.append(f"--- {message['role']}")
        shown += [_as_text(value) for value in (message.get("content"), rest) if value]
        shown.append("")
    return strip_control_characters("\n".join(shown)) + "\n"


def _as_text(value: JsonValue) -> str:
    match value:
        case str():
            return value
        case {"type": "text", "text": str() as text}:
            return text
        case list():
            return "\n".join(_as_text(part) for part in value)
        case _:
            return json.dumps(_without_signatures(value), ensure_ascii=False, indent=2)


def _without_signatures(value: JsonValue) -> JsonValue:
    """`value` with the size of each signature, which only the provider can read, in its place."""
    match value:
        case list():
            return [_without_signatures(part) for part in value]
        case {"type": "thinking", "signature": str() as signature}:
            return {**value, "signature": f"({len(signature):,} characters)"}
        case dict():
            return {key: _without_signatures(part) for key, part in value.items()}
        case _:
            return value
