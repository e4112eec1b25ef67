"""Guards import formats: what goes wrong in one is said of the file it reads."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, cast

from agent_tui.errors import SessionError
from agent_tui.messages import JsonObject
from agent_tui.safe_text import printable_line
from agent_tui.sessions.importers.builder import (
    ForeignSession,
    ImportFormat,
    SessionEnd,
    SessionFinder,
    SessionHead,
)

ParametersT = ParamSpec("ParametersT")


_OF_PLUGIN = "Report it to the author of the plugin."


def guarded_import(known: ImportFormat, advice: str = _OF_PLUGIN) -> ImportFormat:
    """`known`, whose functions raise nothing but `SessionError`, and that only where it reads.

    A file that it fails to look at is none of its format; a folder that it fails to search holds
    no more sessions. So a faulty format hides no session of another one.

    Args:
        known: The format.
        advice: What to do when it fails to read a file.
    """
    finder = known.finder

    def read(path: Path) -> ForeignSession:
        try:
            session = cast(object, known.read(path))
        except SessionError:
            raise
        except Exception as error:
            raise SessionError(
                f"{path}: the format {known.name} failed: {type(error).__name__}:"
                f" {printable_line(str(error))}.",
                advice,
            ) from error
        if isinstance(session, ForeignSession):
            return session
        raise SessionError(f"{path}: the format {known.name} returned no session.")

    def describe_unknown(path: Path) -> str:
        with suppress(Exception):
            return str(known.describe_unknown(path))
        return ""

    return replace(
        known,
        read=read,
        is_record=_false_if_it_fails(known.is_record),
        is_document=_false_if_it_fails(known.is_document),
        is_place=_false_if_it_fails(known.is_place),
        finder=finder and _guarded_finder(finder),
        describe_unknown=describe_unknown,
    )


def _false_if_it_fails(tells: Callable[ParametersT, bool]) -> Callable[ParametersT, bool]:
    def told(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> bool:
        with suppress(Exception):
            return bool(tells(*args, **kwargs))
        return False

    return told


def _guarded_finder(finder: SessionFinder) -> SessionFinder:
    def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        with suppress(Exception):
            yield from map(Path, finder.files(home, environ))

    def read_head(head: SessionHead, number: int, line: JsonObject) -> None:
        is_read = False
        with suppress(Exception):
            finder.read_head(head, number, line)
            is_read = True
        head.is_session = head.is_session and is_read

    def read_place(head: SessionHead, path: Path) -> None:
        is_read = False
        with suppress(Exception):
            finder.read_place(head, path)
            is_read = True
        head.is_session = head.is_session and is_read

    def read_end(end: SessionEnd, line: JsonObject) -> None:
        with suppress(Exception):
            finder.read_end(end, line)

    return replace(
        finder, files=files, read_head=read_head, read_place=read_place, read_end=read_end
    )
