"""Files that commands left and outside programs would read: the user decides on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_tui.safe_paths import show_name


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A new or changed file or folder that the user decides on.

    It was set aside, unless the user may have written it: then it is still where it was.

    Args:
        path: Where a command, or the user, put it.
        who: Which program reads it there.
        aside: Where it is now.
        diff: What it would change, for the user.
        files: The digest of each file that a yes approves of: what was shown, and nothing else.
        before: The digest of what was there before, and is restored; empty for nothing.
        unstaging: The command that takes it out of git's index; empty if it is not there.
    """

    path: Path
    who: str
    aside: Path
    diff: str
    files: tuple[tuple[Path, str], ...] = ()
    before: str = ""
    unstaging: str = ""

    @property
    def places(self) -> tuple[Path, ...]:
        """Where a yes leaves files."""
        places = (path for path, _ in self.files if path.is_relative_to(self.path))
        return tuple(places) or (self.path,)

    @property
    def is_in_place(self) -> bool:
        """Whether it was left where it is."""
        return self.aside == self.path

    def outcome(self, shown: str) -> str:
        """A notice that it was set aside, or stays without an answer.

        Args:
            shown: Its name, as `show_name` shows it.
        """
        who, aside = show_name(self.who), show_name(str(self.aside))
        if self.is_in_place:
            return f"You or a command wrote {shown} ({who}): check it before you use it."
        staged = f". It is still staged; to unstage it: {self.unstaging}" if self.unstaging else ""
        return f"{shown} was held back ({who}): {aside}{staged}"


class HeldFiles(Protocol):
    """Does what the user decides on files that a call left."""

    async def decide(self, held: HeldFile, may_stay: bool) -> HeldFile:
        """Have `held` stay, or not; returns where it is.

        Raises:
            ToolError: It cannot be done; the text says why.
        """
        ...

    async def find_held(self) -> tuple[HeldFile, ...]:
        """What there is to decide on after the decisions: they may have led to further files.

        Raises:
            ToolError: Nobody can look.
        """
        ...
