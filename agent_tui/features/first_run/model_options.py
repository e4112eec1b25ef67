"""The ways to a model that the first-run chooser offers: which, in what order, in what words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from textual.content import Content

from agent_tui.commands.core.demo import Demo
from agent_tui.commands.core.short_words import short_count, short_via, size_text
from agent_tui.providers.accounts import Account
from agent_tui.providers.base import FoundModel
from agent_tui.safe_text import safe_text
from agent_tui.ui.options import FirstRun, KeyChoice, ModelOffer

SHOWN_PER_SOURCE = 3
"""Models of one server, or with one key, in the chooser itself."""

MAX_NUMBER = 9
"""An option beyond has no digit to choose it by."""

_LOADED = "loaded"
_NUMBER_CELLS = 3
_WIDEST_LABEL = 28


@dataclass(frozen=True, slots=True)
class AllModels:
    """The option to see every model found; `hidden_count` of them have no option."""

    hidden_count: int


FirstRunOption: TypeAlias = (
    FoundModel
    | AllModels
    | KeyChoice
    | Account
    | ModelOffer
    | Demo
    | Literal["other provider", "own server"]
)


def first_run_options(
    found: Sequence[FoundModel], offered: FirstRun, offer: ModelOffer | None
) -> tuple[FirstRunOption, ...]:
    """All options, best first.

    What works at once leads: models with a key, of running servers, then of this machine; of
    many at one place those that are loaded. Then come keys to paste, servers, and accounts to
    sign in to. What always works but does little is last: the built-in model and the demo.
    """
    ready = sorted(found, key=_rank)
    shown: list[FoundModel] = []
    for via in dict.fromkeys(model.via for model in ready):
        models = (model for model in ready if model.via == via)
        loaded_first = sorted(models, key=lambda model: model.state != _LOADED)
        shown += loaded_first[:SHOWN_PER_SOURCE]
    hidden = (AllModels(len(ready) - len(shown)),) if len(ready) > len(shown) else ()
    is_there = offer is not None and any(model.ref == offer.model for model in ready)
    offers = (offer,) if offer is not None and not is_there else ()
    signed_in = {model.via for model in ready}
    accounts = (one for one in offered.accounts if one.title not in signed_in)
    demos = (offered.demo,) if offered.demo is not None else ()
    return (
        *shown,
        *hidden,
        *offered.keys,
        "other provider",
        "own server",
        *accounts,
        *offers,
        *demos,
    )


def _rank(model: FoundModel) -> int:
    if model.ref.is_local:
        return 2
    return 1 if model.ref.base_url else 0


def option_lines(
    options: Sequence[FirstRunOption], width: int, *, are_numbered: bool
) -> list[Content]:
    """Each option as it is listed: its digit, its name, and dimmed what it means.

    What is meant stands beside the name where there is room in `width`, else below it.
    """
    told = [_words(option) for option in options]
    lengths = [Content(label).cell_length for label, _ in told]
    column = max((length for length in lengths if length <= _WIDEST_LABEL), default=0)
    lines: list[Content] = []
    for number, (label, details) in enumerate(told, start=1):
        has_digit = are_numbered and number <= MAX_NUMBER
        digit = (f"{number}" if has_digit else "").ljust(_NUMBER_CELLS)
        named = Content.assemble((digit, "$foreground-muted"), label)
        lines.append(_with_details(named, details, column, width))
    return lines


def _with_details(named: Content, details: Sequence[str], column: int, width: int) -> Content:
    beside = _NUMBER_CELLS + column + 2
    rows = [named]
    for text in details:
        detail = Content.assemble((text, "$foreground-muted"))
        is_first = len(rows) == 1
        if is_first and max(beside, named.cell_length + 2) + detail.cell_length <= width:
            gap = max(beside - named.cell_length, 2)
            rows = [Content.assemble(named, " " * gap, detail)]
        else:
            indent = " " * _NUMBER_CELLS
            wrapped = detail.wrap(max(width - _NUMBER_CELLS, 8))
            rows += [Content.assemble(indent, line) for line in wrapped]
    return Content("\n").join(rows)


def _words(option: FirstRunOption) -> tuple[str, tuple[str, ...]]:
    """The name of an option, and what it means."""
    match option:
        case FoundModel():
            label = f"Use {option.ref.model_id if _has_own_server(option) else option.ref.name}"
            details = [_what_it_is(option)]
        case AllModels():
            label, details = f"{option.hidden_count} more", ["all models found, as in /model"]
        case KeyChoice():
            label, details = f"Paste a key: {option.label}", [f"or set {option.env_name}"]
        case ModelOffer():
            label, details = option.choice, [*option.details]
        case "other provider":
            label, details = "Use another provider", ["a model's full name, and its key"]
        case "own server":
            label, details = "Use your own server", ["its URL; any OpenAI-compatible server"]
        case Account():
            label, details = f"Sign in: {option.title}", ["an account you already have"]
        case Demo():
            label, details = option.choice, [option.needs]
        case _:
            assert_never(option)
    one_line = [safe_text(text, keep_newlines=False) for text in (label, *details)]
    return one_line[0], tuple(filter(None, one_line[1:]))


def _what_it_is(model: FoundModel) -> str:
    """Where it is, whether it is loaded or its size, and its window."""
    is_local = model.ref.is_local
    size = size_text(model.size_bytes) if is_local and model.size_bytes else ""
    about = "about " if model.info.source == "guess" else ""
    window = f"{about}{short_count(model.info.window)} tokens"
    facts = (short_via(model.via), "" if is_local else model.state, size, window)
    return " · ".join(filter(None, facts))


def _has_own_server(model: FoundModel) -> bool:
    """Whether the model is named by its server; the provider is then only the protocol."""
    return bool(model.ref.base_url) or model.ref.is_local
