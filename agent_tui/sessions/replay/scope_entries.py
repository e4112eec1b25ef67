"""Entries that mark a scope: a part of a conversation that may be summarized at its end."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from pydantic import ValidationError

from agent_tui.messages import Stored
from agent_tui.sessions.entries import CustomEntry, CustomMessageEntry, Entry

ScopeKind: TypeAlias = Literal["loop", "tool"]
"""Who opened it: a loop of the user's, or the model with a tool."""

ScopeEnding: TypeAlias = Literal["done", "break", "stopped"]
"""It ended normally, was left early on purpose, or was interrupted."""


class ScopeEnter(Stored):
    """The beginning of a scope; the entry's id identifies it.

    Args:
        kind: Who opened it.
        label: Its name in the chat and for the model.
        is_compressed: Whether a summary replaces it when it ends.
        prompt: What its summary should cover; empty for the default wording.
    """

    kind: ScopeKind = "tool"
    label: str = ""
    is_compressed: bool = False
    prompt: str = ""


class ScopeStep(Stored):
    """A loop begins round `number` of `count`; `item` is the item of the round, if any."""

    scope: str
    number: int
    count: int
    item: str | None = None


class ScopeBreak(Stored):
    """The model wants to leave a loop after the present round."""

    scope: str


class ScopeExit(Stored):
    """The end of a scope. A `summary` replaces the entries in `replaces`.

    Sizes in tokens of the whole request, as measured; 0 without a summary.
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
        scope: Its id.
        kind: Who opened it.
        label: Its name.
        prompt: What the summary should cover; None for the default wording.
        entries: Ids of the entries that the summary will replace, oldest first.
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
        """The mark that ends the scope and replaces its contents with `summary`.

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
        """The mark that ends the scope without a summary."""
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
    """The mark in `entry`; None for any other entry or an unreadable one."""
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
    """`mark` as an entry. The model sees where a scope begins and ends, not the rest."""
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
    """The text shown at the beginning of a scope."""
    return f"==> {label}"


def exit_line(label: str) -> str:
    """The text shown at the end of a scope."""
    return f"<== {label}"


def compression_of(entry: Entry) -> ScopeExit | None:
    """The end of a scope in `entry`, if it has a summary that replaces the contents."""
    mark = mark_of(entry)
    return mark if isinstance(mark, ScopeExit) and mark.replaces else None


def ids_replaced_by_scopes(entries: Iterable[Entry]) -> frozenset[str]:
    """Ids of the entries that scope summaries in `entries` replace."""
    found = (compression_of(entry) for entry in entries)
    return frozenset(entry_id for mark in found if mark for entry_id in mark.replaces)
