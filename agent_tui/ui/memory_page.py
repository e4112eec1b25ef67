"""The page of ``/memory``: what the model is told from files, and how to change that."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.agent.memory import Change, FileInForce
from agent_tui.permissions.trust import WithheldFile
from agent_tui.ui.file_names import shown_file
from agent_tui.ui.pages import Page, Section

_NONE = "Nothing. /init has the model write AGENTS.md, /memory add TEXT begins one."
_CHANGES: dict[Change, str] = {
    "changed": "changed since it was read",
    "new": "was not there when a session began here",
    "gone": "is gone or no longer obeyed, but what it said still counts",
}
_HOW = (
    (
        "/memory add TEXT",
        "add a line to this project's; --user TEXT adds it to yours, for all folders",
    ),
    ("/memory edit [file]", "open one in $EDITOR; --user opens yours"),
    ("/memory reload", "read them again"),
    (
        "when it counts",
        "They are read when a session begins and after /compact. What you add or edit here counts "
        "from the next message on. Other changes wait for /memory reload: for a changed system "
        "prompt the provider reads the whole conversation anew, once.",
    ),
)


def memory_page(
    in_force: Sequence[FileInForce],
    changes: Sequence[tuple[Path, Change]],
    withheld: Sequence[WithheldFile],
    cwd: Path,
    *,
    window: int,
    fit_note: str,
) -> Page:
    """What is in force, the most general first; what is not, and why; how to change it.

    Args:
        in_force: What the model is given.
        changes: What is not as in the files any more.
        withheld: What of the project is not obeyed.
        cwd: The workspace.
        window: Tokens of the model's window; 0 where it is not known.
        fit_note: What of it had to be cut for that window; empty for nothing.
    """
    rows = [(shown_file(one.file.path, cwd), _size(one)) for one in in_force]
    if len(in_force) > 1:
        rows.append(("together", _tokens(sum(one.tokens for one in in_force), window)))
    sections = [Section("In force", tuple(rows) or (("", _NONE),))]
    if fit_note:
        sections.append(Section("", (("", fit_note),)))
    if changes:
        changed = tuple((shown_file(path, cwd), _CHANGES[change]) for path, change in changes)
        sections.append(Section("Not in force yet (/memory reload)", changed))
    if withheld:
        kept_back = tuple((shown_file(file.path, cwd), file.why) for file in withheld)
        sections.append(Section("Not in force (/trust)", kept_back))
    sections.append(Section("Change it", _HOW))
    return Page("What the model is told from AGENTS.md and CLAUDE.md", tuple(sections))


def _size(one: FileInForce) -> str:
    lines = len(one.file.text.splitlines())
    cut = ", cut: it is too long" if one.file.was_cut else ""
    return f"{_tokens(one.tokens, 0)}, {lines:,} {'line' if lines == 1 else 'lines'}{cut}"


def _tokens(tokens: int, window: int) -> str:
    share = f", {tokens / window:.1%} of the window" if window else ""
    return f"about {tokens:,} tokens{share}"
