"""Judge a text that a model wrote in place of another one."""

import re

from agent_tui.compaction.summary.degeneration import is_noise, is_repetitive, says_nothing
from agent_tui.compaction.summary.validate import paths_in, sounds_like_refusal

_FOLDER_PATH = re.compile(r"(?<![\w./~:<-])(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*\w")
_CONTENT_WORD = re.compile(r"[^\W_]{4,}")
_STEM_CHARS = 5
_TOKENS_PER_CHAR = 40
_MOST_DEMANDED_CHARS = 125
_MOST_INVENTED = 3


def words_problem(text: str, original: str, tokens: int) -> str:
    """Why `text` cannot replace `original`, as a clause ("it says nothing"); empty if it can.

    It must say something about the same subject, and name no path that `original` lacks.

    Args:
        text: The model's text.
        original: The text that it replaces.
        tokens: Size of the original in the context.
    """
    if not text.strip() or says_nothing(text) or is_noise(text):
        return "it says nothing"
    if sounds_like_refusal(text) and not sounds_like_refusal(original):
        return "it is a refusal"
    if is_repetitive(text):
        return "it repeats itself"
    if len(text) < min(tokens // _TOKENS_PER_CHAR, _MOST_DEMANDED_CHARS):
        return f"it is too short for {tokens:,} tokens"
    known = original.casefold()
    named = {*paths_in(text), *_FOLDER_PATH.findall(text)}
    if invented := sorted(p for p in named if p.removeprefix("./").casefold() not in known):
        return f"it names {', '.join(invented[:_MOST_INVENTED])}, which does not occur there"
    content = _CONTENT_WORD.findall(text.casefold())
    if content and not any(word[:_STEM_CHARS] in known for word in content):
        return "it is about something else"
    return ""
