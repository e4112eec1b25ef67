"""The file that keeps a project's rules, outside the project itself."""

import contextlib
import os
import secrets
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from agent_tui.agent.rules import Decision
from agent_tui.paths import make_private_dir


def stored_rules(path: Path, decision: Decision) -> list[str]:
    """The rules of one kind, as text.

    Raises:
        OSError, ValueError: the file cannot be read, or is not TOML.
    """
    return _texts(tomllib.loads(path.read_text("utf-8")).get(decision, []))


def change_rules_file(
    path: Path, decision: Decision, change: Callable[[list[str]], list[str]]
) -> None:
    """Replace the rules of one kind by what `change` makes of them; comments stay.

    Raises:
        OSError, ValueError: the file cannot be read or written, or is not TOML.
    """
    import tomlkit  # 30 ms that only changing a rule needs

    text = path.read_text("utf-8") if path.exists() else ""
    before = _texts(tomllib.loads(text).get(decision, []))
    after = change(before)
    if after != before:
        document = tomlkit.parse(text)
        document[decision] = after
        _replace_private(path, tomlkit.dumps(document))


def _texts(stored: object) -> list[str]:
    """A list of rules as TOML gave it; a single one counts as a list."""
    listed = cast(list[object], stored) if isinstance(stored, list) else [stored]
    return [str(text) for text in listed]


def _replace_private(path: Path, text: str) -> None:
    """Put `text` at `path` in one step, readable by the owner only."""
    make_private_dir(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
