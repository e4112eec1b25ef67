"""What other packages can bring into the program: what a kind is, and what was brought."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from agent_tui.config.keys import SettingKey

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    """What can be brought: it has a name that is unique within its kind."""

    @property
    def name(self) -> str:
        """What a person or a model calls it by."""
        ...


ValueT = TypeVar("ValueT", bound=Named)


def _none() -> tuple[()]:
    return ()


def _its_name(value: Named) -> tuple[str, ...]:
    return (value.name,)


def _as_it_is(value: ValueT) -> ValueT:
    return value


@dataclass(frozen=True, slots=True)
class Kind(Generic[ValueT]):
    """One thing that a package can bring: a row of the table in `plugin_kinds`.

    Attributes:
        group: The group of entry points that names such values.
        maker: What a value is made with: the name below ``agent_tui``.
        value_type: What a value must be; imported when a package brings one.
        own: What the program itself has of this kind; it comes first.
        reserved: Further names that a value must not have.
        names: All names of a value; none of them may be taken.
        guarded: The value as the program uses it: what its code does wrong breaks nothing else.
        setting: The setting that takes the name of one; empty if there is none.
    """

    group: str
    maker: str
    value_type: Callable[[], type[ValueT]]
    own: Callable[[], Sequence[ValueT]] = _none
    reserved: Callable[[], Iterable[str]] = _none
    names: Callable[[ValueT], Iterable[str]] = _its_name
    guarded: Callable[[ValueT], ValueT] = _as_it_is
    setting: SettingKey = ()


AnyKind: TypeAlias = Kind[Any]


def find_installed(kinds: Iterable[AnyKind]) -> Mapping[str, Sequence["EntryPoint"]]:
    """The installed packages with entry points of `kinds`, by name; imports none of them."""
    from importlib.metadata import entry_points  # slow to load

    found: dict[str, list[EntryPoint]] = {}
    for kind in kinds:
        for entry in entry_points(group=kind.group):
            if entry.dist is not None:
                found.setdefault(entry.dist.name, []).append(entry)
    return found


def package_with(kind: AnyKind, name: str) -> str:
    """The installed package with an entry point of `kind` called `name`; empty without one."""
    found = find_installed([kind])
    return next((one for one in found if any(e.name == name for e in found[one])), "")


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was loaded, and for the person a line about each thing that was not.

    Args:
        brought: The values of packages, by the group of their kind.
        problems: What could not be loaded, and what to do.
        parts: What each package brings, such as ``tool weather``.
    """

    brought: Mapping[str, Sequence[Named]] = field(default_factory=dict[str, Sequence[Named]])
    problems: tuple[str, ...] = ()
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def of(self, kind: Kind[ValueT]) -> tuple[ValueT, ...]:
        """All of `kind`: the program's own, then those of packages."""
        return (*kind.own(), *cast(Sequence[ValueT], self.brought.get(kind.group, ())))

    def in_group(self, group: str) -> Sequence[Named]:
        """What packages bring of the kind with this `group`."""
        return self.brought.get(group, ())
