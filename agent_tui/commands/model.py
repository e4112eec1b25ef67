"""The model of the next requests and its thinking level."""

import asyncio
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import (
    Choice,
    Front,
    Listing,
    ModelSource,
    after_turn,
    refuse_without_screen,
)
from agent_tui.commands.core.known_models import KnownModels, trial_note
from agent_tui.commands.core.short_words import short_count, short_via
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.feature import local_option
from agent_tui.messages import ThinkingLevel
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef, thinking_effort
from agent_tui.safe_text import safe_text

_THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
_SHOWN = {"show": True, "hide": False}


async def _models(front: Front) -> tuple[Completion, ...]:
    """Every usable model, with window, price, state and source."""
    present, known = front.runtime.conversation.model, front.services.known_models
    listing = await PickableModels(front.services.models, present, known).listing()
    completions: dict[str, Completion] = {}
    for choice in listing.choices:
        completions.setdefault(choice.label, Completion(choice.label, choice.details))
    return tuple(completions.values())


@command(
    "[name]",
    refusal=refuse_without_screen("Cannot change the model while the agent works. {stop}"),
    completions=_models,
)
async def model(front: Front, argument: str) -> None:
    """Choose a model."""
    chosen: ModelRef | str | None = argument
    if not argument:
        if await front.set_up_model():
            return
        services = front.services
        chosen = await front.pick(
            PickableModels(services.models, front.runtime.conversation.model, services.known_models)
        )
    if chosen is None:
        return
    if isinstance(chosen, str):
        chosen = await _model_named(front.services.models, chosen)
    async with after_turn(front, f"The model changes to {chosen.name} when this turn ends."):
        front.show_events(front.runtime.set_model(chosen))
    await asyncio.to_thread(front.services.known_models.chose, chosen)
    front.say(f"Model: {chosen.name}")
    if note := trial_note(front.runtime.conversation.model_info):
        front.say(note, "warning")
    if doubt := await _why_it_may_not_be_there(front.services.models, chosen):
        front.say(doubt, "warning")
    front.warm_up()
    front.show_events(await front.runtime.refresh_usage())


async def _model_named(models: ModelSource, name: str) -> ModelRef:
    """The model that `name` means; asks running servers before calling it unknown.

    Raises:
        AgentTuiError: There is none.
    """
    try:
        return models.resolve(name)
    except AgentTuiError:
        await models.list_models()
        return models.resolve(name)


async def _why_it_may_not_be_there(models: ModelSource, chosen: ModelRef) -> str:
    """Says that the model's server lists only others; empty if it lists this one, or nothing."""
    if not chosen.base_url:
        return ""
    found = await models.list_models()
    served = [model.ref.name for model in found if model.ref.base_url == chosen.base_url]
    if not served or any(chosen.model_id in name for name in served):  # ``llama3``: llama3:latest
        return ""
    near = difflib.get_close_matches(chosen.name, served, n=3, cutoff=0)
    return f"{chosen.base_url} does not list {chosen.name}. It lists {', '.join(near)}" + (
        f" and {len(served) - len(near)} more." if len(served) > len(near) else "."
    )


def mark_present(names: Iterable[str], present: str) -> tuple[Completion, ...]:
    """`names`, with the present one marked as in use."""
    return tuple(Completion(name, "in use" if name == present else "") for name in names)


@command(
    "[level|show|hide]",
    completions=lambda front: (
        *mark_present(_THINKING_LEVELS, front.runtime.conversation.thinking),
        Completion("show", "show the thinking"),
        Completion("hide", "hide the thinking"),
    ),
)
async def thinking(front: Front, argument: str) -> None:
    """Set how much the model thinks."""
    wanted = argument.lower()
    if not wanted:
        levels = "|".join((*_THINKING_LEVELS, *_SHOWN))
        conversation = front.runtime.conversation
        effort = thinking_effort(conversation.thinking, conversation.model_info)
        meant = f" ({effort})" if conversation.thinking == "auto" else ""
        front.say(f"Thinking is {conversation.thinking}{meant}. Use /thinking {levels}.")
        return
    if wanted in _SHOWN:
        front.show_thinking(_SHOWN[wanted])
        return
    for level in _THINKING_LEVELS:
        if level == wanted:
            front.show_events(front.runtime.set_thinking(level))
            front.say(f"Thinking: {level}")
            return
    known = ", ".join((*_THINKING_LEVELS, *_SHOWN))
    front.say(f"Unknown level {argument}. Use one of {known}.", "warning")


@dataclass(frozen=True, slots=True)
class PickableModels:
    """The one in use, favourites, recently chosen ones, then the others, newest first."""

    models: ModelSource
    present: ModelRef
    known: KnownModels

    async def listing(self) -> Listing[ModelRef]:
        """The one in use, favourites, recently chosen ones, then the others, newest first."""
        await asyncio.to_thread(self.known.load)
        found = await find_with_present(self.models, self.present)
        ordered = in_order(found, self.present, self.known)
        choices = [Choice(each.ref, each.ref.name, details=self._details(each)) for each in ordered]
        nothing = "No models available: no API key is set and no local server responds."
        return Listing("Choose a model", tuple(choices), nothing, typed="a model name")

    def _details(self, model: FoundModel) -> str:
        in_use = "in use · " if is_same(model.ref, self.present) else ""
        return f"{in_use}window {facts_of(model).in_one_line}"


async def find_with_present(models: ModelSource, present: ModelRef) -> tuple[FoundModel, ...]:
    """Every usable model, and the one in use even if nothing lists it."""
    found = await models.list_models()
    if not present.name or any(is_same(model.ref, present) for model in found):
        return found
    return (FoundModel(present, models.info(present)), *found)


def in_order(
    found: Iterable[FoundModel], present: ModelRef, known: KnownModels
) -> list[FoundModel]:
    """`found` with the one in use first, then favourites, then recently chosen ones."""
    return sorted(
        found, key=lambda model: (not is_same(model.ref, present), known.place(model.ref))
    )


def is_same(ref: ModelRef, present: ModelRef) -> bool:
    """Whether both mean one model; a model at a server may have two names."""
    if ref.base_url != present.base_url:
        return False
    return present.name in ((ref.name, ref.model_id) if ref.base_url else (ref.name,))


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Short facts about a model, shown beside its name."""

    prices: str
    window: str
    state: str
    via: str

    @property
    def in_one_line(self) -> str:
        """All known facts."""
        prices = "" if self.prices == _NO_PRICE else f"$ {self.prices}"
        return " · ".join(part for part in (self.window, prices, self.state, self.via) if part)


_NO_PRICE = "–"


def facts_of(model: FoundModel) -> ModelFacts:
    """Prices in dollars per million tokens in and out, the window, the state and the source."""
    info = model.info
    return ModelFacts(
        _prices(info),
        ("~" if info.source == "guess" else "") + short_count(info.window),
        safe_text(model.state, keep_newlines=False),
        safe_text(short_via(model.via), keep_newlines=False),
    )


def _prices(info: ModelInfo) -> str:
    if info.input_price is None and info.output_price is None:
        return _NO_PRICE
    return f"{_price(info.input_price)}/{_price(info.output_price)}"


def _price(dollars_per_million: float | None) -> str:
    return _NO_PRICE if dollars_per_million is None else f"{dollars_per_million:.2f}"


def no_model_error() -> UsageError:
    """The error that no model is chosen, with the ways to one."""
    ways = [
        "Choose one with -m (and --base-url for your own server)",
        "set a key such as ANTHROPIC_API_KEY",
    ]
    if (option := local_option()) is not None:
        ways.append(f"use a small local model with --{option.name}")
    advice = f"{', '.join(ways[:-1])}, or {ways[-1]}."
    return UsageError("No model chosen and no provider key found.", advice)
