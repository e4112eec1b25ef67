"""What an editor can do: as it says, and as was seen in trying it."""

from dataclasses import dataclass, field

from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation


@dataclass(frozen=True, slots=True)
class EditorTraits:
    """What of an editor is made use of.

    Attributes:
        files: Whether texts are read and written through it.
        shows_forms: Whether it asks for texts and shows lists to pick from.
        signs_in: Whether it opens a terminal to sign in.
        shows_title_only: Of a question it shows the title, of an answer its kind: the rest is told
            in the chat, and answers of one kind are asked for one at a time.
    """

    files: FileSystemCapabilities = field(default_factory=FileSystemCapabilities)
    shows_forms: bool = False
    signs_in: bool = False
    shows_title_only: bool = False


_TITLE_ONLY = frozenset({"CodeCompanion.nvim"})

_LOSES_UNSAVED = frozenset({"CodeCompanion.nvim"})
"""They read files from the disk and write them into their buffers: what is typed there and not
saved would be lost, so files are read and written on the disk."""


def traits_of(offered: ClientCapabilities | None, editor: Implementation | None) -> EditorTraits:
    """Those of an editor, from how it introduces itself."""
    offered = offered or ClientCapabilities()
    name = editor.name if editor is not None else ""
    files = None if name in _LOSES_UNSAVED else offered.fs
    return EditorTraits(
        files=files or FileSystemCapabilities(),
        shows_forms=offered.elicitation is not None and offered.elicitation.form is not None,
        signs_in=offered.auth is not None and bool(offered.auth.terminal),
        shows_title_only=name in _TITLE_ONLY,
    )
