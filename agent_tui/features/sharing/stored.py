"""What this machine pushed to git remotes, for ``agent-tui clean``."""

import shlex
from collections.abc import Iterator

from agent_tui.feature import StoredElsewhere
from agent_tui.features.sharing.choice import ChoiceFile
from agent_tui.features.sharing.relay import REFS
from agent_tui.secret_text import without_user


def list_shared_refs() -> Iterator[StoredElsewhere]:
    """The refs of pushed sessions, by the records of what was pushed. Asks no remote; blocking."""
    for remotes in ChoiceFile.of_every_project():
        for address, choice in remotes.items():
            shown = without_user(address)
            for session_id in choice.pushed:
                ref = f"{REFS}{session_id}"
                yield StoredElsewhere(
                    f"{shown} {ref}",
                    None,
                    "a shared session, for everyone; clones that pulled it keep it",
                    f"git push {shlex.quote(shown)} :{ref}",
                )
