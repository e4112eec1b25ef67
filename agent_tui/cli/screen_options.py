"""What the screen is built from; imported after its first paint, because it imports everything."""

import os
from collections.abc import Callable

from agent_tui import paths
from agent_tui.cli.arguments import Arguments
from agent_tui.cli.compose import Program, command_services, compose
from agent_tui.cli.folders import project_store
from agent_tui.cli.local_option import own_offer
from agent_tui.commands.core.demo import own_demo
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.accounts import Account, DeviceCode, own_accounts, sign_in_to
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.ui.options import FirstRun, KeyChoice, UiOptions
from agent_tui.ui.status.status_script import StatusScript

_KEY_PROVIDERS = (
    ("Anthropic", "anthropic"),
    ("OpenAI", "openai"),
    ("Google Gemini", "gemini"),
    ("OpenRouter", "openrouter"),
)
"""The providers whose keys most people have."""


def load_options(
    arguments: Arguments, trust: FolderTrust | None = None, *, may_lack_rules: bool = False
) -> UiOptions:
    """Build the program and what its screen works on.

    Args:
        arguments: The command line.
        trust: The decisions about folders; None for the stored ones and those in `arguments`.
        may_lack_rules: As for `compose`.

    Raises:
        AgentTuiError: The folder, the model or the session asked for does not exist, or deny rules
            cannot be read.
    """
    program = compose(arguments, is_interactive=True, trust=trust, may_lack_rules=may_lack_rules)
    runtime = program.runtime
    return UiOptions(
        runtime=runtime,
        services=command_services(arguments, program),
        keeps_model=program.keeps_model,
        warm=program.warm,
        close=program.aclose,
        settings=program.loaded.settings,
        problems=program.loaded.problems,
        notices=tuple(filter(None, (*program.notices, runtime.services.trust.problem))),
        first_prompt=arguments.prompt,
        resume=program.resume or "",
        opens_picker=program.resume == "",
        first_run=_first_run(program) if _wants_chooser(program) else None,
        local=own_offer(),
        pull_first=arguments.is_local and not program.has_model,
        history_file=project_store(runtime.conversation.cwd) / "history.jsonl",
        onboarding_file=paths.user_data_dir() / "newcomer.json",
        session_dir=arguments.session_dir or "",
        demo=own_demo() if arguments.is_demo else None,
        sandbox_word=program.sandbox.word,
        status_script=None if arguments.is_demo else _status_script(program),
    )


def _status_script(program: Program) -> StatusScript | None:
    settings = program.loaded.settings
    if not settings.status_command.strip():
        return None
    environ = program.runtime.services.person_environ
    return StatusScript(
        settings.status_command, program.keeper, environ, settings.status_interval_s
    )


def _wants_chooser(program: Program) -> bool:
    """Whether the user has yet to choose a model: there is none, or only a demo's."""
    return program.is_demo or not (program.has_model or program.resume)


def _first_run(program: Program) -> FirstRun:
    async def sign_in(account: Account, show: Callable[[DeviceCode], object]) -> None:
        await sign_in_to(account, os.environ, show)

    def keep_key(name: str, key: str) -> None:
        os.environ[name] = key
        program.models.host.forget_keys()

    catalog = program.models.catalog
    return FirstRun(
        tuple(
            KeyChoice(label, KEY_VARIABLES[provider][0], model)
            for label, provider in _KEY_PROVIDERS
            if (model := catalog.working_model(provider)) is not None
        ),
        keep_key,
        catalog.find_at,
        tuple(own_accounts().values()),
        sign_in,
        is_start=not program.is_demo,
        demo=None if program.is_demo else own_demo(),
    )
