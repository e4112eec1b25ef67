"""Folders the person names or is in, checked before anything is built on them."""

from pathlib import Path

from agent_tui.errors import UsageError

_NAME_ANOTHER = "Name a folder that exists."


def present_folder() -> Path:
    """The folder the program was started in.

    Raises:
        UsageError: it was removed.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError(
            "The present folder was removed.", "Change to another one, or name it with --cwd."
        ) from error


def existing_folder(folder: Path) -> Path:
    """`folder` resolved, ``~`` expanded.

    Raises:
        UsageError: it is no folder, or cannot be looked at.
    """
    try:
        resolved = folder.expanduser().resolve(strict=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}.", _NAME_ANOTHER) from error
    except RuntimeError as error:  # ~ of an unknown person, links in a circle
        raise UsageError(f"{folder}: {str(error).rstrip('.')}.", _NAME_ANOTHER) from error
    if not resolved.is_dir():
        raise UsageError(f"{folder} is not a folder.", _NAME_ANOTHER)
    return resolved
