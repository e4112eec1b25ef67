"""The file that keeps a project's rules, outside the project itself."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from agent_tui.paths import replace_private_file
from agent_tui.permissions.rules import Decision


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
        replace_private_file(path, tomlkit.dumps(document))


def _texts(stored: object) -> list[str]:
    """A list of rules as TOML gave it; a single one counts as a list."""
    listed = cast(list[object], stored) if isinstance(stored, list) else [stored]
    return [str(text) for text in listed]
