"""Models that a feature adds to the list of ``agent-tui models``."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in the list.

    Attributes:
        cells: What is printed of it, a column each; without any it is only in the JSON.
        as_json: What it is in the JSON.
        texts: Where a filter looks for its words.
    """

    cells: Sequence[str]
    as_json: JsonValue
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class ModelSection:
    """Models under one heading; `key` is its name in the JSON."""

    title: str
    key: str
    models: tuple[ListedModel, ...]


@dataclass(frozen=True, slots=True)
class BroughtModels:
    """What a feature adds to the list.

    Attributes:
        sections: Its models, which come first.
        note: Printed below the list if it has one of them.
        advice: What to do if the list is empty, as a sentence.
        problems: Why others are not listed.
    """

    sections: tuple[ModelSection, ...]
    note: str = ""
    advice: str = ""
    problems: tuple[str, ...] = ()


def window_text(tokens: int | None) -> str:
    """A context window in a cell; empty if it is unknown."""
    return f"{tokens:,} tokens" if tokens else ""
