"""Whether what a model made of one message can stand for it."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from agent_tui.compaction.summary.degeneration import is_repetitive, says_nothing
from agent_tui.compaction.summary.source import named_paths
from agent_tui.compaction.summary.validate import sounds_like_refusal

_FOLDER_PATH = re.compile(r"(?<![\w./~:-])(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*\w")
_WORD = re.compile(r"[^\W\d_]+")
_CONTENT_WORD = re.compile(r"[^\W_]{4,}")
_STEM_CHARS = 5

_FUNCTION_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "English": "the and is are of to with that this for it was not you what does please",
        "German": "der die das und ist nicht mit ein eine zu auf für wir ich bitte",
        "French": "le les et est des une dans pour que pas avec sur nous vous du",
        "Spanish": "el los las y es una que para con por del se como pero esta",
        "Italian": "il gli che e di una per con non sono della nel questo anche",
        "Portuguese": "uma que para com não da em por como mas você isso ao dos são",
        "Dutch": "de het een en is van niet met voor dat op zijn wij ook",
    }
)
_LEAST_HITS = 3
_SCRIPT_SHARE = 0.25
"""Of the letters: names and paths in a Japanese or Russian text are mostly Latin."""

_JAPANESE = frozenset({"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"})
_LOOKED_AT_CHARS = 8_000


def condensed_problem(text: str, original: str) -> str:
    """Why `text` cannot stand for `original`, as a clause; empty where it can.

    It has to say something, about the same, in the same language, and may name no path that
    `original` does not.
    """
    if not text.strip() or says_nothing(text):
        return "it says nothing"
    if is_repetitive(text):
        return "it repeats itself"
    if sounds_like_refusal(text) and not sounds_like_refusal(original):
        return "it is a refusal"
    if invented := invented_paths(text, original):
        return f"it names {invented[0]}, which the message does not"
    if not _is_same_language(text, original):
        return "it is in another language"
    if not _is_about_the_same(text, original):
        return "it is about something else"
    return ""


def invented_paths(text: str, original: str) -> tuple[str, ...]:
    """Files and folders that `text` names and `original` does not, sorted."""
    named = {*named_paths(text), *_FOLDER_PATH.findall(text)}
    return tuple(sorted(path for path in named if path not in original))


def _is_same_language(text: str, original: str) -> bool:
    scripts, expected = _scripts(text), _scripts(original)
    if scripts and expected:
        main = expected.most_common(1)[0][0]
        if scripts[main] < _SCRIPT_SHARE * scripts.total():
            return False
    spoken, wanted = _language(text), _language(original)
    return not (spoken and wanted) or spoken == wanted


def _scripts(text: str) -> Counter[str]:
    """How many letters `text` has of which script, by the first word of their Unicode names.

    The three of Japanese count as one: a short sentence may do without any of them.
    """
    letters = (sign for sign in text[:_LOOKED_AT_CHARS] if sign.isalpha())
    names = (unicodedata.name(letter, "?").partition(" ")[0] for letter in letters)
    return Counter("CJK" if name in _JAPANESE else name for name in names)


def _language(text: str) -> str:
    """The language that the small words of `text` are of; empty where they do not tell."""
    words = Counter(_WORD.findall(text[:_LOOKED_AT_CHARS].casefold()))
    hits = Counter(
        {
            language: sum(words[word] for word in small.split())
            for language, small in _FUNCTION_WORDS.items()
        }
    )
    (best, most), (_, next_best) = hits.most_common(2)
    return best if most >= _LEAST_HITS and most >= 2 * next_best else ""


def _is_about_the_same(text: str, original: str) -> bool:
    """Whether the beginning of some word is in both, where `text` has words of any length."""
    words = _CONTENT_WORD.findall(text.casefold())
    known = original.casefold()
    return not words or any(word[:_STEM_CHARS] in known for word in words)
