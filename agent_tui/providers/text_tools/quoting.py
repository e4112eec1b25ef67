"""Telling a call that is only shown from one that is made, by where and how it stands."""

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUOTING_ELEMENTS: Final = _words(
    "code command-output content context diff directory document documents example examples file "
    "file-content file-contents file_content file_contents files folder function_result "
    "function_results instructions observation output pre quote result results skill snippet "
    "source summary system-reminder system_reminder text tool_output tool_response tool_responses "
    "tool_result tool_results user"
)
"""Elements that hold what others wrote, even where the model forgets to close them."""

THINKING_ELEMENTS: Final = frozenset({"think", "thinking", "reasoning", "thought", "thoughts"})

CALL_FENCES: Final = _words(
    "json json5 jsonc tool_call tool_calls tool_code tool_use tool tools function function_call "
    "python py xml text plaintext"
) | {""}
"""What may stand after the marks of a fence whose content is a call."""

MAX_WORDS_CHARS = 240
"""How far back the words that introduce a call are looked at."""
MAX_PROSE_AFTER_CHARS = 280

_QUOTED_LINE = re.compile(
    r"""
    \s* (?: \d+ \s* (?:\t|\||:|→|-\s)         # numbered, as tools print files
          | [+>|#;%"'“‘«] | \*(?!\*) | -[ ]?            # diffs, block quotes, comments, quotes
          | // | /\* | <!--
        )
  | \t | [ ]{4}                               # indented code
  | \S+:\d+:                                  # grep
    """,
    re.X,
)
_OPEN_QUOTE = re.compile(r"""["'“‘«=(]\s*\Z""")
_SENTENCE_END = re.compile(r"""[.!?]["')]?\s+(?=["'(`*]?[A-Z])""")
_EXAMPLE = re.compile(
    r"""
    \b(?: examples? | e\.?g\b | for\s+instance | syntax | would\s+(?:be|look|write|call|use)
      | (?:looks?|looking|something)\s+like | such\s+as | sample | template | placeholder
      | quot(?:e|ed|es|ing|ation) | (?:as\s+)?follow(?:s|ing)\s+format | (?:tool|call)\s+format
      | you\s+(?:can|could|would|should|may|might) | how\s+to\s+(?:call|use|write|format)
      | don'?t\s+(?:run|execute|call) | do\s+not\s+(?:run|execute|call) | never\s+(?:run|execute)
      | instead\s+of | injection | malicious | suspicious
    )\b
    """,
    re.X | re.I,
)
_SHOWN = re.compile(
    r"""
    \b(?: contain(?:s|ed|ing)? | contents? | says? | said | reads?\s*: | states? | stated
      | output(?:s|ted)? | results?\s*(?::|is|was|are) | returns? | returned | prints? | printed
      | formats? | written\s+in | found\s+in | include[sd]? | shows? | shown | wrote
      | (?:the|this|that|its|a)\s+(?:line|snippet|text|section|entry|prompt|instruction|comment|log)
    )\b
    """,
    re.X | re.I,
)
_INTENT = re.compile(
    r"\b(?:let\s+me|let'?s|let\s+us|i'?ll|i\s+will|i'?m\s+going\s+to|i\s+am\s+going\s+to"
    r"|i\s+(?:need|want|have)\s+to|i\s+should|we\s+(?:need|should)|now\s+i|calling|running)\b",
    re.I,
)
_BEGINS_STEP = re.compile(
    r"""
    \W* (?:(?:step\s+)?\d+[.):]\s*)? (?:(?:first|next|then|now|ok(?:ay)?|sure)[,!.]?\s+)*
    (?:read|check|list|run|search|find|look|open|view|get|us|call|execut|inspect|examin)
    (?:e|n?ing)?\b (?![^\n]*\b(?:says?|said|contains?|states?|wrote)\b)
    """,
    re.X | re.I,
)
"""What a model does next, as a heading of its own: "1. Read the file:"."""

_NAMES_TOOL = re.compile(
    r"""
    \b(?: us(?:e|ing) | call(?:ing)? | run(?:ning)? | execut(?:e|ing) | invok(?:e|ing) )
    \s+ (?:the\s+)? [`'"*]* [\w.]+ [`'"*]* \s+ (?:tool|function|command)\b
    """,
    re.X | re.I,
)
_PURPOSE = re.compile(r"\W*(?:in\s+order\s+)?to\s[^\n]*?(?=\b(?:i|we|i'll|let)\b)", re.I)
_RETELLING = re.compile(
    r"\b(?:show\s+(?:you|what|how|the)|quot|paste|print|repeat|cite|tell|explain|share|copy"
    r"|summari[sz]e|reproduce|here\s+is|here'?s)",
    re.I,
)
_INTRODUCES_FILE = re.compile(
    r"""
    \b(?: contain(?:s|ed|ing)? | contents? | says? | said | reads? | states? | stated | shows?
      | found | include[sd]? | wrote | written | output | (?:line|snippet|text|comment|log|section)
    )\b [^\n]* : \s*\Z
    """,
    re.X | re.I,
)
_EXPLAINS = re.compile(
    r"""
    \b(?: examples? | you\s+(?:can|could|should|would|may|might|need\s+to) | would | placeholder
      | replace | substitute | instead\s+of | demonstrates? | illustrates? | syntax
    )\b
    """,
    re.X | re.I,
)


def is_quoted_line(before: str) -> bool:
    """Whether the line whose part in front of a call is `before` is shown, not said."""
    return _QUOTED_LINE.match(before) is not None or _OPEN_QUOTE.search(before) is not None


def introduces_quote(words: str, *, is_tagged: bool) -> bool:
    """Whether `words`, the end of what stands before a call, say that it is only shown.

    Between tags made for calls a call is rarely an example, so only a sentence counts that
    clearly does so. "Let me see what it contains" announces a call, "let me show you what it
    contains" a quotation.
    """
    line = words.rstrip()[-MAX_WORDS_CHARS:].rpartition("\n")[2]
    sentence = _SENTENCE_END.split(line)[-1]
    announces = _announces_call(sentence)
    if is_tagged:
        is_shown = _EXAMPLE.search(sentence) or _INTRODUCES_FILE.search(sentence)
        return is_shown is not None and not announces
    if _EXAMPLE.search(line) is not None:
        return True
    return _SHOWN.search(sentence) is not None and not announces


def _announces_call(sentence: str) -> bool:
    """Whether `sentence` says what the model does now rather than what it retells."""
    if purpose := _PURPOSE.match(sentence):
        sentence = sentence[purpose.end() :]
    if _BEGINS_STEP.match(sentence):
        return True
    tool, retelling = _NAMES_TOOL.search(sentence), _RETELLING.search(sentence)
    says_how = tool is not None and retelling is not None and tool.start() < retelling.start()
    return _INTENT.search(sentence) is not None and (retelling is None or says_how)


def explains_call(prose: str) -> bool:
    """Whether `prose` after a call without tags talks about it rather than goes with it."""
    return len(prose) > MAX_PROSE_AFTER_CHARS or _EXPLAINS.search(prose) is not None
