"""What commands show: titled sections of rows, which each front draws in its own way."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

Row: TypeAlias = tuple[str, str]
"""A name and what is said of it; either may be empty."""


@dataclass(frozen=True, slots=True)
class PageSection:
    """Rows of two columns under a heading, which may be empty."""

    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A titled list of sections; `is_searched`: so long that one looks for a row by its words."""

    title: str
    sections: tuple[PageSection, ...]
    is_searched: bool = False

    async def page(self) -> "Page":
        """Itself: a `Showable` that needs nothing more."""
        return self


class Showable(Protocol):
    """Something to show that a front may draw better than as rows."""

    async def page(self) -> Page:
        """The same as rows.

        Raises:
            AgentTuiError: It could not be worked out.
        """
        ...


def page_lines(page: Page) -> list[str]:
    """A page as lines of text: its title, then each section's rows under its heading."""
    lines = [page.title]
    for section in page.sections:
        lines += ["", section.heading] if section.heading else [""]
        lines += [": ".join(filter(None, row)) for row in section.rows]
    return lines
