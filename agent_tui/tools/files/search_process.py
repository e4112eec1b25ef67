"""The search process behind `grep` where ripgrep is missing: kill it when a pattern runs wild.

Reads one JSON request from stdin and prints matches as ripgrep would with ``--heading``. Started
with ``python -P -m``, it imports little, so that it starts quickly.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from agent_tui.tools.files.walk import glob_spec, walk_files

_MAX_FILE_BYTES = 20_000_000
_SNIFFED_BYTES = 8_192
_MAX_LINE_CHARS = 500
_OVER_LINES = re.MULTILINE | re.DOTALL


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search. `below` is a folder or file relative to `root`; sizes in lines."""

    pattern: str
    root: str
    below: str
    globs: tuple[str, ...]
    excluded_names: tuple[str, ...]
    ignore_case: bool
    context_lines: int
    limit: int
    output: str = "lines"
    multiline: bool = False

    def to_json(self) -> bytes:
        """The request as this process reads it."""
        return json.dumps(asdict(self)).encode()


def search(request: SearchRequest) -> Iterator[str]:
    """Lines to print: a path, its matches, an empty line; ends after `limit` matches.

    With the output ``files`` only paths, with ``counts`` each with the number of its matches; both
    end after `limit` files.
    """
    flags = re.IGNORECASE if request.ignore_case else 0
    pattern = re.compile(request.pattern, flags | (_OVER_LINES if request.multiline else 0))
    found = 0
    for relative in _candidates(request):
        path = Path(request.root, relative)
        lines = _lines_of(path)
        hits = _hits(pattern, lines, over_lines=request.multiline)
        if not hits:
            continue
        match request.output:
            case "files":
                yield f"{path}\n"
            case "counts":
                yield f"{path}:{len(hits)}\n"
            case _:
                yield str(path)
                yield from _shown(lines, hits[: request.limit - found], request.context_lines)
                yield ""
        found += len(hits) if request.output == "lines" else 1
        if found >= request.limit:
            return


def _hits(pattern: re.Pattern[str], lines: list[str], *, over_lines: bool) -> list[int]:
    """The lines, from 0, that are matched or, `over_lines`, are part of a match."""
    if not over_lines:
        return [number for number, line in enumerate(lines) if pattern.search(line)]
    text = "\n".join(lines)
    hits: dict[int, None] = {}
    line = at = 0
    for match in pattern.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        last = line + text.count("\n", at, max(match.end() - 1, at))
        hits |= dict.fromkeys(range(line, last + 1))
    return list(hits)


def _candidates(request: SearchRequest) -> Iterator[str]:
    if Path(request.root, request.below).is_file():
        yield request.below
        return
    specs = [glob_spec(glob) for glob in request.globs]
    excluded = glob_spec("{" + ",".join(request.excluded_names) + "}")
    skipped = 0 if request.below in ("", ".") else len(request.below) + 1
    for file in walk_files(Path(request.root), request.below):
        name = file.relative[skipped:]
        if all(spec.match_file(name) for spec in specs) and not excluded.match_file(name):
            yield file.relative


def _lines_of(path: Path) -> list[str]:
    """The lines of a text file; none for binary, huge or unreadable ones."""
    try:
        status = path.lstat() if path.is_symlink() else path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return []
        content = path.read_bytes()
    except OSError:
        return []
    if b"\0" in content[:_SNIFFED_BYTES]:
        return []
    return content.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n").split("\n")


def _shown(lines: list[str], hits: list[int], context_lines: int) -> Iterator[str]:
    """``12:`` before a match, ``13-`` before its context, ``--`` between separate places."""
    matched = set(hits)
    shown_up_to = -1
    for hit in hits:
        first = max(hit - context_lines, shown_up_to + 1)
        if context_lines and 0 <= shown_up_to < first - 1:
            yield "--"
        for number in range(first, min(hit + context_lines + 1, len(lines))):
            mark = ":" if number in matched else "-"
            yield f"{number + 1}{mark}{lines[number][:_MAX_LINE_CHARS]}"
            shown_up_to = number


def main() -> int:
    """Answer one request; exit code 0 for matches, 1 for none, 2 for a bad pattern."""
    fields = json.loads(sys.stdin.buffer.read())
    out = os.fdopen(sys.stdout.fileno(), "w", encoding="utf-8", errors="replace", closefd=False)
    has_matches = False
    try:
        for line in search(SearchRequest(**fields)):
            out.write(f"{line}\n" if not line.endswith("\n") else line)
            if not line or line.endswith("\n"):
                has_matches = True
                out.flush()
    except (re.error, ValueError) as error:
        out.write(f"{error}\n")
        out.flush()
        return 2
    return 0 if has_matches else 1


if __name__ == "__main__":
    sys.exit(main())
