"""The conversation that a summary is made of, to check whether the summary is about it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from agent_tui.compaction.transcript.text import UNLIMITED, message_texts
from agent_tui.messages import Message
from agent_tui.sessions.entries import Ledger


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MANY_NAMES = 12
"""A conversation with fewer names of its own may well be summed up without any of them."""

_LONG_TEXT_WORDS = 60
_OWN_WORDS_IN_LONG_TEXT = 5
_NAMES_PER_WORD = 6

_LEAST_PATHS = 3
_INVENTED_SHARE = 0.5

_TOKENS_PER_WORD = 200
_MOST_DEMANDED_WORDS = 40
"""The shortest of the recorded summaries of large models has 400 words for 175,000 tokens; a tenth
must be there. A model of 135M parameters wrote 13 words for 6,700 tokens."""

_WORD = re.compile(r"[^\W\d_]{4,}")
_CODE_WORD = re.compile(r"\w+(?:[./_-]\w+)+|\w*[a-z][A-Z]\w*|\w*[A-Za-z]\d\w*")
_PATH = re.compile(
    r"(?<![\w/.:@])(?:~?/|\.{1,2}/)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,6}"
)
_URL = re.compile(r"\w+://\S+")
_FILE_ENDINGS = _word_set("""
    bash bat c cc cfg conf cpp cs css csv dart diff env ex exs go gradle h heex hpp html hs ini
    ipynb java jl js json jsonl jsx kt less lock log lua m md mjs mk mm php pl proto ps1 py pyi r
    rb rs rst sass scala scss sh sql svelte svg swift tf toml ts tsx txt vue xml yaml yml zig
""")
_COMMON = _word_set("""
    about above after again agent also answer asked asking back been before below best better
    both change changed check code come command continue conversation could create current data
    does doing done down each edit error errors every everything file files find fine finish
    finished first following from further give goal going good have help here high important
    improve information instead into issue just keep kind know last later less like line lines
    list long look made make many more most much must name need needed needs never next nice
    none note notes okay once only open other over part person please point problem program
    progress project provide question read really right same section sentence should show since
    some something start state step steps still such sure system take task tell test tests than
    that their them then there these they thing things think this those time tool tools type
    under understand until update used user users using very want wants well were what when
    where which while will with work working would write written wrong your yourself
""")


@dataclass(frozen=True)
class SummarySource:
    """The conversation a summary stands for, as far as code can check one against it.

    Args:
        text: Everything that was said, called, read and summed up before.
        names: Small-letter words of its own: files by name and what the person spoke of.
        tokens: Estimate of the conversation's size.
    """

    text: str
    names: frozenset[str]
    tokens: int

    @cached_property
    def _folded(self) -> str:
        return self.text.casefold()

    def is_relevant(self, document: str) -> bool:
        """Whether `document` is about this conversation.

        One name of its own is enough for a short document. A longer one has to say more than
        that: a file or word that looks like code and occurred, or several of the person's own
        words. Where there are few names to choose from, anything is about them.
        """
        if len(self.names) < _MANY_NAMES:
            return True
        code = {word.casefold() for word in _CODE_WORD.findall(document)}
        if any(word in self.names or word in self._folded for word in code):
            return True
        words = {word.casefold() for word in _WORD.findall(document)} & self.names
        if len(document.split()) < _LONG_TEXT_WORDS:
            return bool(words)
        return len(words) >= min(_OWN_WORDS_IN_LONG_TEXT, len(self.names) // _NAMES_PER_WORD)

    def invented_paths(self, document: str) -> tuple[str, ...]:
        """The paths in `document` that never occurred, if they are most of those it names.

        A path counts as known when its last part occurred anywhere.
        """
        paths = named_paths(document)
        invented = {p for p in paths if PurePosixPath(p).name.casefold() not in self._folded}
        if len(paths) < _LEAST_PATHS or len(invented) <= _INVENTED_SHARE * len(paths):
            return ()
        return tuple(sorted(invented))

    @property
    def least_words(self) -> int:
        """Words below which a document says nearly nothing of this."""
        return min(self.tokens // _TOKENS_PER_WORD, _MOST_DEMANDED_WORDS)


def named_paths(text: str) -> frozenset[str]:
    """The files that `text` names, as far as their endings tell; addresses are none."""
    return frozenset(path for path in _PATH.findall(_URL.sub(" ", text)) if _is_path(path))


def summary_source(
    messages: Iterable[Message], *, previous_prose: str, ledger: Ledger, tokens: int
) -> SummarySource:
    """What a summary of `messages` that continues `previous_prose` is checked against.

    Args:
        messages: What the summary stands for.
        previous_prose: The summary so far.
        ledger: Facts of the whole conversation, that before `messages` included.
        tokens: Estimate of `messages`.
    """
    files = (*ledger.modified_files, *ledger.read_files)
    said = (*ledger.user_messages, *ledger.open_todos)
    text = "\n".join((*message_texts(messages, UNLIMITED), previous_prose, *files, *said))
    return SummarySource(text, _file_names(files) | _own_words(said), tokens)


def _file_names(paths: Sequence[str]) -> frozenset[str]:
    names = (PurePosixPath(path) for path in paths)
    return frozenset(part.casefold() for path in names for part in (path.name, path.stem) if part)


def _own_words(texts: Iterable[str]) -> frozenset[str]:
    words = (word.casefold() for text in texts for word in _WORD.findall(text))
    return frozenset(words) - _COMMON


def _is_path(text: str) -> bool:
    """Whether `text` is a file's name rather than ``os.path`` or ``e.g``."""
    return text.rpartition(".")[2].casefold() in _FILE_ENDINGS
