"""The settings of a program that uses the library: what it gave, and nothing of the person's."""

from collections.abc import Generator
from contextlib import contextmanager

from pydantic import ValidationError

from agent_tui.config import Settings
from agent_tui.errors import IN_PROGRAM, AgentTuiError, UsageError


@contextmanager
def errors_for_programs() -> Generator[None]:
    """Errors from inside the block advise what a program can do."""
    try:
        yield
    except AgentTuiError as error:
        error.ways = IN_PROGRAM
        raise


def library_settings(
    model: str,
    base_url: str | None,
    window: int | None,
    api_key_env: str | None = None,
    **more: object,
) -> Settings:
    """The built-in settings, with what a program gave.

    Args:
        model: Name of the model; empty for none.
        base_url: Address of its server; None for the provider's own.
        window: Its context window in tokens; None for what is known of it.
        api_key_env: The variable with its key; None for the provider's own.
        more: Settings by name.

    Raises:
        UsageError: The address or the window cannot be used.
    """
    given: dict[str, object] = {"model": model, "base_url": base_url, "api_key_env": api_key_env}
    if window is not None:
        given["models"] = {model: {"window": window}}
    try:
        return Settings.model_validate({**{k: v for k, v in given.items() if v}, **more})
    except ValidationError as error:
        first = error.errors()[0]
        where = "window" if "window" in first["loc"] else ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg'].removeprefix('Value error, ')}.") from error
