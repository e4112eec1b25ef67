"""The settings of a program that uses the library: what it gave, and nothing of the person's."""

from pydantic import ValidationError

from agent_tui.config import Settings
from agent_tui.errors import UsageError


def library_settings(
    model: str, base_url: str | None, window: int | None, **more: object
) -> Settings:
    """The built-in settings, with what a program gave.

    Args:
        model: Name of the model; empty for none.
        base_url: Address of its server; None for the provider's own.
        window: Its context window in tokens; None for what is known of it.
        more: Settings by name.

    Raises:
        UsageError: The address or the window cannot be used.
    """
    given: dict[str, object] = {"model": model, "base_url": base_url}
    if window is not None:
        given["models"] = {model: {"window": window}}
    try:
        return Settings.model_validate({**{k: v for k, v in given.items() if v}, **more})
    except ValidationError as error:
        first = error.errors()[0]
        where = "window" if "window" in first["loc"] else ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg'].removeprefix('Value error, ')}.") from error
