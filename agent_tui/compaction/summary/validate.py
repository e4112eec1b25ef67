"""Check whether a model's text can replace a conversation or single messages of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from agent_tui.compaction.summary.degeneration import is_echo, is_noise, is_repetitive, says_nothing
from agent_tui.compaction.summary.templates import Template, fit_to_tokens
from agent_tui.compaction.transcript import UNLIMITED, escape_tags, message_texts
from agent_tui.messages import Message
from agent_tui.providers.client import ModelReply
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

    def find_invented_paths(self, document: str) -> tuple[str, ...]:
        """The paths in `document` that never occurred, if most of its paths did not.

        A path counts as known if its last part occurred anywhere.
        """
        paths = paths_in(document)
        invented = {p for p in paths if PurePosixPath(p).name.casefold() not in self._folded}
        if len(paths) < _LEAST_PATHS or len(invented) <= _INVENTED_SHARE * len(paths):
            return ()
        return tuple(sorted(invented))

    @property
    def least_words(self) -> int:
        """If a document has fewer words, it says almost nothing about the conversation."""
        return min(self.tokens // _TOKENS_PER_WORD, _MOST_DEMANDED_WORDS)


def paths_in(text: str) -> frozenset[str]:
    """The files that `text` names, recognized by their endings; URLs do not count."""
    return frozenset(path for path in _PATH.findall(_URL.sub(" ", text)) if _is_path(path))


def summary_source(messages: Sequence[Message], counter: TokenCounter) -> SummarySource:
    """The source to check a summary of `messages` against."""
    text = "\n".join(message_texts(messages, UNLIMITED))
    return SummarySource(text, counter.count_messages(messages))


def _is_path(text: str) -> bool:
    """Whether `text` is a file's name rather than ``os.path`` or ``e.g``."""
    return text.rpartition(".")[2].casefold() in _FILE_ENDINGS


@dataclass(frozen=True, slots=True)
class NotesJudgement:
    """The judgement of a reply.

    Args:
        text: Its usable part; empty if there is none.
        problem: What is wrong with it, as a clause for the model and the user ("it was empty");
            empty if nothing. If there is also a `text`, that is usable but incomplete.
        is_minor: Whether the text will do if the model, told the problem, does not mend it: it says
            nothing in a section that can be empty.
    """

    text: str
    problem: str = ""
    is_minor: bool = False


def refuse(problem: str) -> NotesJudgement:
    """The judgement of an unusable reply."""
    return NotesJudgement("", problem)


class SummaryJudge:
    """Judges whether a text can replace a conversation.

    Args:
        template: The requested form.
        source: The conversation that the text must be about.
        counter: Counts tokens of documents.
        max_tokens: The size that a document is cut to.
        asked: The rest of the request, which the model must not echo.
    """

    def __init__(
        self,
        template: Template,
        source: SummarySource,
        counter: TokenCounter,
        max_tokens: int,
        asked: str = "",
    ) -> None:
        self._template = template
        self._source = source
        self._counter = counter
        self._max_tokens = max_tokens
        self._prompt = f"{asked}\n{template.form}"

    def judge(self, reply: ModelReply) -> NotesJudgement:
        """The document in `reply` in exactly the template's form, or what is wrong with it.

        Wrapping (reasoning tags, a code fence, a remark before the first heading) is removed.
        Sections that are empty, echo the prompt, repeat themselves or are noise are left out. A
        reply is unusable if it calls a tool, says nothing, or names mostly files that never
        occurred. It has a problem if it is cut off, lacks a core section or the goal, or is far too
        short.
        """
        text, problem = plain_text(reply.text), why_unusable(reply)
        bodies = {h: body for h, body in self._template.parse(text).items() if h}
        if not bodies and not problem and sounds_like_refusal(text):
            return refuse("it was a refusal")
        if not bodies:
            return refuse(problem or _why_missing(self._template.core, bodies))
        is_cut = reply.finish == "length"
        if problem and not is_cut:
            return refuse(problem)
        if is_cut:
            bodies = _without_the_cut(bodies)
        useful = {heading: body for heading, body in bodies.items() if not self._is_no_use(body)}
        if useless := self._why_useless(bodies, useful):
            return refuse(useless)
        document = fit_to_tokens(
            escape_tags(self._template.render(useful)),
            template=self._template,
            counter=self._counter,
            max_tokens=self._max_tokens,
        )
        thin = self._why_thin(useful)
        if missing := self._missing(useful):
            is_minor = not (problem or thin) and missing == [self._template.next_steps]
            return NotesJudgement(document, problem or _why_missing(missing, bodies), is_minor)
        return NotesJudgement(document, problem or thin)

    def _missing(self, useful: Mapping[str, str]) -> list[str]:
        """The required headings without text; a goal has to say something."""
        missing = [heading for heading in self._template.core if not useful.get(heading)]
        goal = self._template.goal
        if goal not in missing and says_nothing(useful[goal]):
            missing.append(goal)
        return missing

    def _why_thin(self, useful: Mapping[str, str]) -> str:
        """Why a document is too short for its source; empty if it is not."""
        words = sum(len(body.split()) for body in useful.values() if not says_nothing(body))
        if words < self._source.least_words:
            return f"{words} words are too few for so much work"
        return ""

    def _why_useless(self, bodies: Mapping[str, str], useful: Mapping[str, str]) -> str:
        """What makes the whole document unusable; empty if some of it is usable."""
        said = [body.strip() for body in bodies.values() if not says_nothing(body)]
        if is_repetitive(_join(bodies)) or len(said) - len(set(said)) > _FORGIVEN_COPIES:
            return "it repeated itself"
        text = _join(useful)
        if not text:
            return "it only repeated the form and its rules" if said else "it said nothing"
        if invented := self._source.find_invented_paths(text):
            shown = ", ".join(invented[:_SHOWN_PATHS])
            return f"most files it named do not occur in the conversation, such as {shown}"
        return ""

    def _is_no_use(self, body: str) -> bool:
        return is_noise(body) or is_repetitive(body) or is_echo(body, self._prompt)


_SHOWN_PATHS = 3
_FORGIVEN_COPIES = 1
"""The next step may be the same as the work in progress."""

_REFUSAL = re.compile(
    r"\b(i['’]?m sorry|i am sorry|i can(?:no|['’]?)t|i['’]?m (?:not able|unable)|i am unable"
    r"|i won['’]?t|as an ai)\b",
    re.IGNORECASE,
)
_WRAPPINGS = (
    re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"</?summary>", re.IGNORECASE),
)


def why_unusable(reply: ModelReply) -> str:
    """Why `reply` is unusable whatever the request was, as a clause; empty if it is not."""
    if reply.calls or reply.finish == "toolUse":
        return "it called a tool"
    if reply.finish == "contentFilter":
        return "the provider's content filter stopped it"
    if reply.finish == "length":
        return "it was cut off by the length limit"
    return "" if plain_text(reply.text) else "it was empty"


def sounds_like_refusal(text: str) -> bool:
    """Whether the beginning of `text` refuses the request."""
    return bool(_REFUSAL.search(text[:400]))


def plain_text(text: str) -> str:
    """`text` without reasoning and surrounding tags and code fence."""
    for wrapping in _WRAPPINGS:
        text = wrapping.sub("", text)
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    return text


def _join(bodies: Mapping[str, str]) -> str:
    return "\n".join(body for body in bodies.values() if not says_nothing(body))


def _why_missing(missing: Iterable[str], bodies: Mapping[str, str]) -> str:
    quoted = ", ".join(f'"{heading}"' for heading in missing)
    is_said = any(bodies.get(heading) for heading in missing)
    return f"it said nothing under {quoted}" if is_said else f"it lacked {quoted}"


def _without_the_cut(bodies: Mapping[str, str]) -> dict[str, str]:
    """All but the last line, whose meaning the cut may have changed."""
    *whole, last = bodies.items()
    heading, body = last
    return {**dict(whole), heading: body.rpartition("\n")[0]}
