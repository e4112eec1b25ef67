"""What is known of the files that were read, by their content: size, outline, description."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.shorten import one_line
from agent_tui.compaction.strategies.hybrid.outline import Outline, outline_of
from agent_tui.compaction.tiers.model import Output, Unit
from agent_tui.messages import AssistantMessage

_DESCRIPTION_CHARS = 140
_LEAST_DESCRIPTION_CHARS = 12

_VERBS = (
    "is|has|holds|contains|defines|implements|handles|provides|does|reads|writes|parses|builds"
    "|describes|declares|exports|registers|runs|tests|keeps|stores|returns|wraps|loads|configures"
    "|ist|hat|enthält|definiert|liest|schreibt|est|contient|définit|es|contiene|define"
)
_DESCRIBES = re.compile(
    r"(?P<path>[\w./~@-]*[\w-]\.[A-Za-z]\w{0,7})[`*_\"')]{0,4}"
    rf"(?:\s*(?::|—|–|->|→)\s+|\s+-\s+|\s+(?=(?:{_VERBS})\b))"
    r"(?P<description>[^\n]{12,400})"
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True, slots=True)
class FileSummary:
    """One file as it was read; `description` is how the model described it last, if it did."""

    digest: str
    lines: int
    outline: Outline
    description: str = ""


@dataclass(frozen=True, slots=True)
class FileCache:
    """Summaries of the files of one conversation, made when first asked for.

    Args:
        folders: Names of the working folder, as for `normalise_path`.
        descriptions: What the model said of a file last, by its path in that form.
    """

    folders: Sequence[str]
    descriptions: Mapping[str, str]
    _known: dict[str, FileSummary] = field(default_factory=dict[str, FileSummary])

    def summary(self, output: Output) -> FileSummary:
        """The summary of what `output`, of a read, shows; the same content is looked at once."""
        content = output.text.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=4).hexdigest()
        path = output.file_key or output.action.path
        key = f"{digest} {path}"
        if (known := self._known.get(key)) is None:
            known = self._known[key] = FileSummary(
                digest=digest,
                lines=output.text.rstrip("\n").count("\n") + 1,
                outline=outline_of(output.text, path),
                description=self.descriptions.get(normalise_path(path, self.folders), ""),
            )
        return known


def read_file_cache(units: Iterable[Unit], folders: Sequence[str]) -> FileCache:
    """The cache of a conversation, rebuilt from its messages.

    A description is a line of the model's own that begins with the name of a file that was read
    before: ``src/a.py: the parser`` or ``a.py holds the parser``.
    """
    files_named: dict[str, dict[str, None]] = {}
    descriptions: dict[str, str] = {}
    for unit in units:
        output = unit.output
        if output is not None and output.action.kind == "read" and not output.has_failed:
            if file := normalise_path(output.file_key or output.action.path, folders):
                files_named.setdefault(PurePosixPath(file).name, {})[file] = None
        elif isinstance(unit.message, AssistantMessage) and files_named:
            for found in _DESCRIBES.finditer(unit.message.text):
                file = _file_meant(found["path"], files_named)
                if file and (words := _first_sentence(found["description"])):
                    descriptions[file] = words
    return FileCache(folders, descriptions)


def _file_meant(written: str, files_named: Mapping[str, Mapping[str, None]]) -> str:
    """The one known file that `written` can mean; empty where there is none, or more than one."""
    path = PurePosixPath(written)
    ends = f"/{str(path).lstrip('./')}"
    fitting = [file for file in files_named.get(path.name, ()) if f"/{file}".endswith(ends)]
    return fitting[0] if len(fitting) == 1 else ""


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    words = one_line(text[: end.start()] if end else text, _DESCRIPTION_CHARS)
    return words if len(words) >= _LEAST_DESCRIPTION_CHARS else ""
