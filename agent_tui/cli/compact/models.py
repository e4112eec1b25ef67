"""Who writes the summary for ``agent-tui compact``: a model, or code."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent_tui.cli.folders import kept_trust, present_folder
from agent_tui.cli.login.keys import use_kept_keys
from agent_tui.cli.settings import (
    trusted_config_files,
    usable_settings,
    user_config_path,
)
from agent_tui.compaction.model_client import ModelClient
from agent_tui.config import Settings, load_settings
from agent_tui.providers.access import NO_MODEL, first_model, open_models
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import ModelCatalog

BY_CODE = "none"
"""The name that stands for no model at all: offline, at once."""

_NO_MODEL_NOTICE = "No model chosen and no key found. The summary is written without a model."


@dataclass(frozen=True, slots=True)
class SummaryModels:
    """Who can summarise. Without a `client` it is done by code.

    `default` is asked when no setting names another and its provider has no cheap model.
    `notices` are for the person, one line each.
    """

    client: ModelClient | None
    catalog: ModelCatalog
    default: ModelRef
    notices: tuple[str, ...] = ()


@asynccontextmanager
async def summary_models(
    wanted: str | None, settings: Settings, session_dir: str | None
) -> AsyncGenerator[SummaryModels]:
    """Who can summarise, for as long as it is needed.

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
    flags = {"model": wanted, "session_dir": session_dir}
    project_files = trusted_config_files(present_folder(), kept_trust())
    loaded = load_settings(user_config_path(), os.environ, flags, project_files)
    unread_keys = use_kept_keys().problems
    models = open_models(usable_settings(loaded), os.environ)
    default, problem = first_model(models.catalog, is_named=wanted is not None)
    notices = [one.notice for one in loaded.problems]
    notices += [*unread_keys, *filter(None, [problem])]
    try:
        if default != NO_MODEL:
            await models.catalog.learn(default)
        if default != NO_MODEL or settings.compaction.model:
            yield SummaryModels(
                ModelClient(models.provider), models.catalog, default, tuple(notices)
            )
        else:
            notices.append(_NO_MODEL_NOTICE)
            yield SummaryModels(None, models.catalog, default, tuple(notices))
    finally:
        await models.provider.aclose()
