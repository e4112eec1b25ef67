"""The source conversation of a summary, for checking that the summary is about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from agent_tui.compaction.transcript.text import UNLIMITED, message_texts
from agent_tui.messages import Message
from agent_tui.tokens import TokenCounter


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEAST_PATHS = 3
_INVENTED_SHARE = 0.5

_TOKENS_PER_WORD = 200
_MOST_DEMANDED_WORDS = 40
"""The shortest recorded summary of a large model has 400 words for 175,000 tokens.

A tenth of that is required. A model of 135M parameters wrote 13 words for 6,700 tokens.
"""

_PATH = re.compile(
    r"(?<![\w/.:@])(?:~?/|\.{1,2}/)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,6}"
)
_URL = re.compile(r"\w+://\S+")
_FILE_ENDINGS = _word_set("""
    bash bat c cc cfg conf cpp cs css csv dart diff env ex exs go gradle h heex hpp html hs ini
    ipynb java jl js json jsonl jsx kt less lock log lua m md mjs mk mm php pl proto ps1 py pyi r
    rb rs rst sass scala scss sh sql svelte svg swift tf toml ts tsx txt vue xml yaml yml zig
""")


@dataclass(frozen=True)
class SummarySource:
    """The conversation that a summary replaces, as far as code can check it.

    Args:
        text: All messages, calls, outputs and earlier summaries.
        tokens: Its size as messages.
    """

    text: str
    tokens: int

    @cached_property
    def _folded(self) -> str:
        return self.text.casefold()

    def invented_paths(self, document: str) -> tuple[str, ...]:
        """The paths in `document` that never occurred, if most of its paths did not.

        A path counts as known if its last part occurred anywhere.
        """
        paths = named_paths(document)
        invented = {p for p in paths if PurePosixPath(p).name.casefold() not in self._folded}
        if len(paths) < _LEAST_PATHS or len(invented) <= _INVENTED_SHARE * len(paths):
            return ()
        return tuple(sorted(invented))

    @property
    def least_words(self) -> int:
        """If a document has fewer words, it says almost nothing about the conversation."""
        return min(self.tokens // _TOKENS_PER_WORD, _MOST_DEMANDED_WORDS)


def named_paths(text: str) -> frozenset[str]:
    """The files that `text` names, recognized by their endings; URLs do not count."""
    return frozenset(path for path in _PATH.findall(_URL.sub(" ", text)) if _is_path(path))


def summary_source(messages: Sequence[Message], counter: TokenCounter) -> SummarySource:
    """The source to check a summary of `messages` against."""
    text = "\n".join(message_texts(messages, UNLIMITED))
    return SummarySource(text, counter.count_messages(messages))


def _is_path(text: str) -> bool:
    """Whether `text` is a file's name rather than ``os.path`` or ``e.g``."""
    return text.rpartition(".")[2].casefold() in _FILE_ENDINGS
