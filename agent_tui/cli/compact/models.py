"""Who writes the summary for ``agent-tui compact``: a model of the program's, or code."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.compose import NO_MODEL, compose
from agent_tui.config import Settings
from agent_tui.providers.base import ModelRef, Provider
from agent_tui.providers.catalog import ModelCatalog

BY_CODE = "none"
"""The name that stands for no model at all: offline, at once."""

_NO_MODEL_NOTICE = "No model is chosen and no key was found: the summary is written by code."


@dataclass(frozen=True, slots=True)
class SummaryModels:
    """Who can summarise. Without a `provider` it is done by code.

    `default` is asked when no setting names another and its provider has no cheap model.
    `notices` are for the person, one line each.
    """

    provider: Provider | None
    catalog: ModelCatalog
    default: ModelRef
    notices: tuple[str, ...] = ()


@asynccontextmanager
async def summary_models(
    wanted: str | None, settings: Settings, session_dir: str | None
) -> AsyncGenerator[SummaryModels]:
    """The program's models, for as long as they are needed.

    Args:
        wanted: A model, `BY_CODE`, or None for what the settings say.
        settings: Of file and environment.
        session_dir: ``--session-dir``.

    Raises:
        UsageError: `wanted` names no model.
    """
    if wanted == BY_CODE:
        yield SummaryModels(None, ModelCatalog(settings, os.environ), NO_MODEL)
        return
    options = {"--model": wanted, "--session-dir": session_dir}
    given = [f"{option}={value}" for option, value in options.items() if value]
    program = compose(parse_arguments(given), is_interactive=False)
    problems = [f"setting left out: {problem}" for problem in program.loaded.problems]
    notices = (*problems, *program.notices)
    try:
        default = program.runtime.conversation.model
        if program.has_model:
            await program.catalog.learn(default)
        if program.has_model or settings.compaction.model:
            yield SummaryModels(program.provider, program.catalog, default, notices)
        else:
            yield SummaryModels(None, program.catalog, default, (*notices, _NO_MODEL_NOTICE))
    finally:
        await program.runtime.aclose()
        await program.provider.aclose()
