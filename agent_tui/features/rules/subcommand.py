"""``agent-tui rules``: lists the rules that the user's corrections suggest."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from agent_tui.agent.prompt.context_files import load_context_files
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.folders import load_trust, present_folder
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.commands.core.front import page_lines
from agent_tui.commands.core.plugin_kinds import IMPORTERS
from agent_tui.features.rules.command import line_dates, rules_page
from agent_tui.features.rules.offers import Quote
from agent_tui.features.rules.review import RuleReview, confirmed, review_rules
from agent_tui.messages import JsonObject
from agent_tui.paths import user_config_dir
from agent_tui.providers.keys import secret_values
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.store import SessionStore

_DESCRIPTION = """\
List what you corrected more than once in the sessions of the project, with
the quotes and their dates, and rules in AGENTS.md that you contradicted later.
Nothing is written: /rules in a conversation asks about each line and adds it."""
_JSON = """\
With --json:
  {"offers", "contradictions", "answers", "isOff", "sessions"}
"offers", newest first: [{"text", "quotes": [QUOTE]}]
"contradictions": [{"path", "line", "text", "quote": QUOTE}]
"answers": [{"line", "answer", "at", "file"}]; "answer" is "yes" or "no".
QUOTE is {"sentence", "at", "session": {"id", "name", "importedFrom"}}.
"isOff": offers are switched off in this project. "sessions" were read."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui rules``."""
    parser = subcommand_parser("rules", _DESCRIPTION, _JSON)
    parser.add_json()
    add_session_dir(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui rules`` with the arguments after that word; returns the exit code."""
    arguments = build_parser().parse_args(list(argv))
    plugins = plugins_in_shell(IMPORTERS)
    for problem in plugins.problems:
        complain(problem)
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability, plugins.of(IMPORTERS))
    cwd, trust = present_folder(), load_trust()
    files = load_context_files(user_config_dir(), cwd, trust.may_obey)
    review = review_rules(store, cwd, files)
    dates = line_dates(trust, os.environ)
    found = asyncio.run(confirmed(review.contradictions, review.answers, dates))
    review = replace(review, contradictions=found)
    if arguments.is_json:
        write_json(review_json(review))
    else:
        text = "\n".join(page_lines(rules_page(review, cwd))) + "\n"
        write_text(mask_secrets(text, secret_values(os.environ)))
    return 0


def review_json(review: RuleReview) -> JsonObject:
    """The review as ``--json`` prints it."""
    return {
        "offers": [
            {"text": offer.text, "quotes": [_quote(quote) for quote in offer.quotes]}
            for offer in review.offers
        ],
        "contradictions": [
            {
                "path": str(one.rule.path),
                "line": one.rule.line,
                "text": one.rule.text,
                "quote": _quote(one.quote),
            }
            for one in review.contradictions
        ],
        "answers": [
            {"line": one.line, "answer": one.answer, "at": one.at, "file": one.file or None}
            for one in review.answers.answers
        ],
        "isOff": review.answers.is_off,
        "sessions": review.sessions,
    }


def _quote(quote: Quote) -> JsonObject:
    source = quote.source
    return {
        "sentence": quote.sentence,
        "at": quote.correction.at,
        "session": {
            "id": source.id,
            "name": source.name,
            "importedFrom": source.imported_from or None,
        },
    }
