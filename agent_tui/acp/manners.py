"""Where editors do otherwise than the protocol has it, as was seen in trying them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Manners:
    """What is to be known of an editor.

    Attributes:
        shows_title_only: Of a question it shows the title, of an answer its kind: the rest is told
            in the chat, and answers of one kind are asked for one at a time.
        loses_unsaved: It reads files from the disk and writes them into its buffers: what is
            typed there and not saved would be lost, so files are read and written on the disk.
    """

    shows_title_only: bool = False
    loses_unsaved: bool = False


_KNOWN = {"CodeCompanion.nvim": Manners(shows_title_only=True, loses_unsaved=True)}


def manners_of(editor: str) -> Manners:
    """Those of the editor that calls itself `editor`; of one that is not known, the protocol's."""
    return _KNOWN.get(editor, Manners())
