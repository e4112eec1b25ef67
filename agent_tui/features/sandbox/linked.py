"""What the user and the model are told about links in the home folder."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import show_name

_APPROVAL: Final = (
    "so changes need the approval of the user, except with Landlock in a folder of more than 2,000 "
    "files or 20 MB."
)
_WITHIN: Final = (
    "Links in the home folder lead to files here: {}. Programs outside read them at their start, "
    + _APPROVAL
)
_WHOLE: Final = (
    "{} leads to {}. Programs outside read what commands write there. Only changes of files that "
    "agent-tui knows need approval."
)
_NAMED: Final = (
    "Variables of your environment name settings here: {}. Programs outside read them at their "
    "start, " + _APPROVAL
)
_MOST_NAMED: Final = 5


def describe_linked(linked: Mapping[Path, Path], roots: Collection[Path]) -> Iterator[str]:
    """What the user and the model are told about `linked`; see `find_linked`."""
    below = {place: link for place, link in linked.items() if place not in roots}
    if within := sorted({link for place, link in below.items() if place != link}):
        yield _WITHIN.format(name_first(within))
    if named := sorted(place for place, link in below.items() if place == link):
        yield _NAMED.format(name_first(named))
    for root, link in linked.items():
        if root in roots and link != root:
            yield _WHOLE.format(link, root)


def name_first(named: Sequence[Path]) -> str:
    """The first of the paths `named` for the user, and how many more there are."""
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(show_name(str(path)) for path in named[:_MOST_NAMED]) + more
