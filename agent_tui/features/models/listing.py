"""The models as a table and as JSON: what features list, on servers, behind keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from pydantic import JsonValue

from agent_tui.cli.listed_models import ModelSection, window_text
from agent_tui.config.model_addresses import display_address
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.base import FoundModel
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.safe_text import strip_control_characters

_SHOWN_PER_KEY: Final = 3
_CELL_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class ModelOverview:
    """Every model that can be chosen now, and those that features list."""

    wanted: str
    brought: tuple[ModelSection, ...]
    served: tuple[FoundModel, ...]
    with_key: tuple[FoundModel, ...]

    @classmethod
    def of(cls, brought: Iterable[ModelSection], found: Sequence[FoundModel], wanted: str) -> Self:
        """Sort the found models by kind; keeps only those with `wanted` in their name or title."""
        keys = {variable for variables in KEY_VARIABLES.values() for variable in variables}
        keys |= {account.title for account in own_accounts().values()}
        kept = [model for model in found if _fits(wanted, model.ref.name)]
        remote = [model for model in kept if not model.ref.is_local]
        return cls(
            wanted,
            tuple(
                replace(one, models=tuple(m for m in one.models if _fits(wanted, *m.texts)))
                for one in brought
            ),
            tuple(model for model in remote if model.via not in keys),
            tuple(model for model in remote if model.via in keys),
        )

    def to_json(self) -> JsonValue:
        """The whole overview; sizes in bytes and windows in tokens."""
        return {
            **{one.key: [model.as_json for model in one.models] for one in self.brought},
            "served": [_remote_json(model) for model in self.served],
            "with_key": [_remote_json(model) for model in self.with_key],
        }


def print_overview(overview: ModelOverview, *, is_whole: bool, advice: str = "") -> None:
    """Print the models by kind; behind keys, only a few per provider unless `is_whole`.

    `advice` is what to do if there are none.
    """
    sections = [
        (one.title, [list(model.cells) for model in one.models if model.cells])
        for one in overview.brought
    ]
    sections.append(("On running servers", [_model_row(model) for model in overview.served]))
    if is_whole:
        sections.append(("With your keys", [_model_row(model) for model in overview.with_key]))
    else:
        sections.append(("With your keys", list(_key_rows(overview.with_key))))
    shown = [section for section in sections if section[1]]
    for number, (title, rows) in enumerate(shown):
        print(f"{'' if not number else chr(10)}{title}")
        for line in _table(rows):
            print(f"  {line}")
    if not shown:
        which = f" with {strip_control_characters(overview.wanted)!r}" if overview.wanted else ""
        print(f"No models{which}. {advice}".rstrip())
    elif overview.with_key and not is_whole:
        print("\nTo list all: agent-tui models list --all; to filter: agent-tui models list FILTER")


def _fits(wanted: str, *texts: str) -> bool:
    folded = " ".join(texts).casefold()
    return all(word in folded for word in wanted.casefold().split())


def _model_row(model: FoundModel) -> list[str]:
    guess = "~" if model.info.source == "guess" else ""
    return [model.ref.name, guess + window_text(model.info.window), model.via, model.state]


def _key_rows(models: Iterable[FoundModel]) -> Iterable[list[str]]:
    """One row per key: how many models it gives access to, and the first few."""
    by_key: dict[tuple[str, str], list[str]] = {}
    for model in models:
        by_key.setdefault((model.ref.provider, model.via), []).append(model.ref.name)
    for (provider, via), names in by_key.items():
        more = ", ..." if len(names) > _SHOWN_PER_KEY else ""
        count = f"{len(names)} model{'s' if len(names) > 1 else ''}"
        yield [provider, via, count, ", ".join(names[:_SHOWN_PER_KEY]) + more]


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """`rows` with aligned columns; only the last cell may be long."""
    cleaned = [[" ".join(strip_control_characters(cell).split()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    for row in cleaned:
        cells = (
            cell.ljust(min(width, _CELL_CHARS)) for cell, width in zip(row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _remote_json(model: FoundModel) -> dict[str, JsonValue]:
    return {
        "name": model.ref.name,
        "base_url": display_address(model.ref.base_url),
        "window": model.info.window,
        "window_source": model.info.source,
        "via": model.via,
        "state": model.state,
    }
