"""The models as a table and as JSON: on this machine, to download, on servers, behind keys."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Self

from pydantic import JsonValue

from agent_tui.config.model_addresses import display_address
from agent_tui.local_models.model import LocalModel, Offer, size_text
from agent_tui.providers.accounts.table import ACCOUNTS
from agent_tui.providers.base import FoundModel
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.safe_text import strip_control_characters

_SHOWN_PER_KEY: Final = 3
_CELL_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class ModelOverview:
    """Every model that can be chosen now, and those that can be pulled."""

    wanted: str
    local: tuple[LocalModel, ...]
    offers: tuple[Offer, ...]
    served: tuple[FoundModel, ...]
    with_key: tuple[FoundModel, ...]

    @classmethod
    def of(
        cls,
        local: Sequence[LocalModel],
        offers: Sequence[Offer],
        found: Sequence[FoundModel],
        wanted: str,
    ) -> Self:
        """Sort the found models by kind; keeps only those with `wanted` in their name or title."""
        keys = {variable for variables in KEY_VARIABLES.values() for variable in variables}
        keys |= {account.title for account in ACCOUNTS.values()}
        kept = [model for model in found if _fits(wanted, model.ref.name)]
        remote = [model for model in kept if model.ref.provider != "local"]
        return cls(
            wanted,
            tuple(m for m in local if _fits(wanted, f"local/{m.name}", m.title)),
            tuple(offer for offer in offers if _fits(wanted, offer.name, offer.title)),
            tuple(model for model in remote if model.via not in keys),
            tuple(model for model in remote if model.via in keys),
        )

    def to_json(self) -> JsonValue:
        """The whole overview; sizes in bytes and windows in tokens."""
        here = {model.sha256 for model in self.local if model.is_there}
        return {
            "local": [model_json(model) for model in self.local],
            "offers": [
                {**_offer_json(offer), "is_here": offer.sha256 in here} for offer in self.offers
            ],
            "served": [_remote_json(model) for model in self.served],
            "with_key": [_remote_json(model) for model in self.with_key],
        }


def model_json(model: LocalModel) -> dict[str, JsonValue]:
    """A model on this machine as JSON: size in bytes, window in tokens."""
    return {
        **asdict(model),
        "model": f"local/{model.name}",
        "path": str(model.path).encode("utf-8", "replace").decode(),
        "is_there": model.is_there,
    }


def print_overview(overview: ModelOverview, *, is_whole: bool) -> None:
    """Print the models by kind; behind keys, only a few per provider unless `is_whole`."""
    here = {model.sha256 for model in overview.local if model.is_there}
    offers = [offer for offer in overview.offers if offer.sha256 not in here]
    sections = [
        ("On this machine", [_local_row(model) for model in overview.local]),
        ("To download", [_offer_row(offer) for offer in offers]),
        ("On running servers", [_model_row(model) for model in overview.served]),
    ]
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
        print(f"No models{which}. To download one: agent-tui models pull NAME")
    elif overview.with_key and not is_whole:
        print("\nTo list all: agent-tui models list --all; to filter: agent-tui models list FILTER")


def _fits(wanted: str, *texts: str) -> bool:
    folded = " ".join(texts).casefold()
    return all(word in folded for word in wanted.casefold().split())


def _local_row(model: LocalModel) -> list[str]:
    state = "" if model.is_there else f"file is missing: {model.path}"
    return [
        f"local/{model.name}",
        size_text(model.size_bytes),
        _window(model.trained_window),
        model.licence,
        state or model.title,
    ]


def _offer_row(offer: Offer) -> list[str]:
    return [
        f"agent-tui models pull {offer.name}",
        size_text(offer.download_bytes),
        _window(offer.trained_window),
        offer.licence,
        f"{offer.title}: {offer.summary}",
    ]


def _model_row(model: FoundModel) -> list[str]:
    guess = "~" if model.info.source == "guess" else ""
    return [model.ref.name, guess + _window(model.info.window), model.via, model.state]


def _key_rows(models: Iterable[FoundModel]) -> Iterable[list[str]]:
    """One row per key: how many models it gives access to, and the first few."""
    by_key: dict[tuple[str, str], list[str]] = {}
    for model in models:
        by_key.setdefault((model.ref.provider, model.via), []).append(model.ref.name)
    for (provider, via), names in by_key.items():
        more = ", ..." if len(names) > _SHOWN_PER_KEY else ""
        count = f"{len(names)} model{'s' if len(names) > 1 else ''}"
        yield [provider, via, count, ", ".join(names[:_SHOWN_PER_KEY]) + more]


def _window(tokens: int | None) -> str:
    return f"{tokens:,} tokens" if tokens else ""


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """`rows` with aligned columns; only the last cell may be long."""
    cleaned = [[" ".join(strip_control_characters(cell).split()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    for row in cleaned:
        cells = (
            cell.ljust(min(width, _CELL_CHARS)) for cell, width in zip(row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _offer_json(offer: Offer) -> dict[str, JsonValue]:
    of_wheel = ("requirement", "member", "wheel_sha256")
    shown = {name: value for name, value in asdict(offer).items() if name not in of_wheel}
    return {**shown, "source": f"pypi:{offer.requirement}"}


def _remote_json(model: FoundModel) -> dict[str, JsonValue]:
    return {
        "name": model.ref.name,
        "base_url": display_address(model.ref.base_url),
        "window": model.info.window,
        "window_source": model.info.source,
        "via": model.via,
        "state": model.state,
    }
