"""``agent-tui``: the screen."""

import dataclasses
import os
import sys

from agent_tui import paths
from agent_tui.cli.arguments import Arguments
from agent_tui.cli.compose import Program, compose
from agent_tui.errors import UsageError
from agent_tui.providers.base import ModelRef
from agent_tui.ui.options import FirstRun, KeyChoice, UiOptions, UiOutcome

_KEY_CHOICES = (
    KeyChoice("Anthropic", "ANTHROPIC_API_KEY", ModelRef("anthropic/claude-sonnet-4-5")),
    KeyChoice("OpenAI", "OPENAI_API_KEY", ModelRef("openai/gpt-5")),
    KeyChoice("Google Gemini", "GEMINI_API_KEY", ModelRef("gemini/gemini-2.5-pro")),
    KeyChoice(
        "OpenRouter",
        "OPENROUTER_API_KEY",
        ModelRef("openrouter/anthropic/claude-sonnet-4.5"),
    ),
)

_DEMO_WELCOME = (
    "This is a scripted tour in a scratch folder: no model is called and nothing of yours is "
    "touched. The tools, the files and the session are real."
)


def run_screen(arguments: Arguments) -> int:
    """Open the screen; returns the exit code.

    Raises:
        UsageError: there is no terminal, or the folder or session does not exist.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The screen needs a terminal.", "Use -p to run one prompt without a screen."
        )
    outcome = _show(arguments)
    if outcome.wants == "demo":
        outcome = _show(dataclasses.replace(arguments, is_demo=True))
    return outcome.exit_code


def _show(arguments: Arguments) -> UiOutcome:
    from agent_tui.ui.terminal import run_ui

    program = compose(arguments, is_interactive=True)
    return run_ui(ui_options(arguments, program))


def ui_options(arguments: Arguments, program: Program) -> UiOptions:
    """What the screen is built from."""
    runtime = program.runtime
    return UiOptions(
        runtime=runtime,
        models=program.catalog,
        keeps_model=program.keeps_model,
        warm=_nothing if arguments.is_demo else program.provider.warm,
        close=program.provider.aclose,
        settings=program.loaded.settings,
        problems=program.loaded.problems,
        notices=program.notices,
        first_prompt=arguments.prompt,
        resume=program.resume or "",
        opens_picker=program.resume == "",
        first_run=None if program.has_model or program.resume else _first_run(program),
        history_file=paths.project_dir(runtime.cwd) / "history.jsonl",
        welcome=_DEMO_WELCOME if arguments.is_demo else "",
        is_demo=arguments.is_demo,
    )


async def _nothing() -> None:
    """The tour calls no model, so no provider process is started for it."""


def _first_run(program: Program) -> FirstRun:
    def keep_key(name: str, key: str) -> None:
        os.environ[name] = key
        program.provider.forget_worker()

    return FirstRun(_KEY_CHOICES, keep_key)
