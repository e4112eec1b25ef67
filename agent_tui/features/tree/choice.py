"""What the user wants of the tree."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

TreeAction: TypeAlias = Literal["go back", "summarise", "fork"]


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """The picked entry and the action on it; None to ask for one."""

    entry_id: str
    action: TreeAction | None
