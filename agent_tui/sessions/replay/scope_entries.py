"""The entries that mark a scope: a stretch of a conversation that may be summed up at its end."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from pydantic import ValidationError

from agent_tui.messages import Stored
from agent_tui.sessions.entries import CustomEntry, CustomMessageEntry, Entry

ScopeKind: TypeAlias = Literal["loop", "tool"]
"""Who opened it: a loop of the person's, or the model with a tool."""

ScopeEnding: TypeAlias = Literal["done", "break", "stopped"]
"""It came to its end, was left early on purpose, or something got in between."""


class ScopeEnter(Stored):
    """A scope begins; its entry's id names it from here on.

    Args:
        kind: Who opened it.
        label: What it is called in the chat and before the model.
        is_compressed: It is summed up when it ends.
        prompt: What its summary is to be about; empty for the default wording.
    """

    kind: ScopeKind = "tool"
    label: str = ""
    is_compressed: bool = False
    prompt: str = ""


class ScopeStep(Stored):
    """A loop begins its round `number` of `count`; `item` is what this one is about, if given."""

    scope: str
    number: int
    count: int
    item: str | None = None


class ScopeBreak(Stored):
    """The model wants to leave a loop after the present round."""

    scope: str


class ScopeExit(Stored):
    """A scope has been left. With a `summary`, that stands for the entries it `replaces`.

    Sizes in tokens of the whole request, as measured; 0 where nothing was summed up.
    """

    scope: str
    label: str
    ending: ScopeEnding = "done"
    summary: str = ""
    replaces: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0


class ScopePending(Stored):
    """A scope has ended and waits for its summary.

    Args:
        scope: Which.
        kind: Who opened it.
        label: What it is called.
        prompt: What the summary is to be about; None for the default wording.
        entries: Ids of what the summary will stand for, oldest first.
        at: The entry after which the scope ended.
        ending: How it ended.
    """

    scope: str
    kind: ScopeKind
    label: str
    prompt: str | None = None
    entries: tuple[str, ...] = ()
    at: str = ""
    ending: ScopeEnding = "done"

    def exit_with(self, summary: str, tokens_before: int = 0, tokens_after: int = 0) -> ScopeExit:
        """The mark that leaves the scope and puts `summary` in the place of what was in it.

        Sizes are those of the request before and after, in tokens.
        """
        return ScopeExit(
            scope=self.scope,
            label=self.label,
            ending=self.ending,
            summary=summary.strip(),
            replaces=self.entries,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )

    def exit_without_summary(self, ending: ScopeEnding) -> ScopeExit:
        """The mark that leaves the scope as it is."""
        return ScopeExit(scope=self.scope, label=self.label, ending=ending)


ScopeMark: TypeAlias = ScopeEnter | ScopeStep | ScopeBreak | ScopePending | ScopeExit

_CUSTOM_TYPES: Mapping[str, type[ScopeMark]] = MappingProxyType(
    {
        "scope_enter": ScopeEnter,
        "scope_step": ScopeStep,
        "scope_break": ScopeBreak,
        "scope_pending": ScopePending,
        "scope_exit": ScopeExit,
    }
)


def mark_of(entry: Entry) -> ScopeMark | None:
    """The mark that `entry` is; None for any other entry or one that cannot be read."""
    match entry:
        case CustomMessageEntry(custom_type=name, details=data) if name in _CUSTOM_TYPES:
            pass
        case CustomEntry(custom_type=name, data=data) if name in _CUSTOM_TYPES:
            pass
        case _:
            return None
    try:
        return _CUSTOM_TYPES[name].model_validate(data)
    except ValidationError:
        return None


def mark_entry(mark: ScopeMark) -> CustomMessageEntry | CustomEntry:
    """`mark` as an entry. Where a scope begins and ends is seen by the model, the rest is not."""
    name = next(name for name, kind in _CUSTOM_TYPES.items() if isinstance(mark, kind))
    data = mark.model_dump(mode="json", by_alias=True)
    match mark:
        case ScopeEnter():
            text = enter_line(mark.label)
        case ScopeExit():
            line = exit_line(mark.label)
            text = f"<summary>\n{mark.summary}\n</summary>\n{line}" if mark.summary else line
        case ScopeStep() | ScopeBreak() | ScopePending():
            return CustomEntry(custom_type=name, data=data)
    return CustomMessageEntry(custom_type=name, content=text, display=False, details=data)


def enter_line(label: str) -> str:
    """How the beginning of a scope is shown."""
    return f"==> {label}"


def exit_line(label: str) -> str:
    """How the end of a scope is shown."""
    return f"<== {label}"


def compression_of(entry: Entry) -> ScopeExit | None:
    """The end of a scope that `entry` is, if a summary stands for what was in it."""
    mark = mark_of(entry)
    return mark if isinstance(mark, ScopeExit) and mark.replaces else None


def replaced_by_scopes(entries: Iterable[Entry]) -> frozenset[str]:
    """Ids of the entries that summaries of scopes among `entries` stand for."""
    found = (compression_of(entry) for entry in entries)
    return frozenset(entry_id for mark in found if mark for entry_id in mark.replaces)
