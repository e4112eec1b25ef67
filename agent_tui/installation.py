"""How this copy of the program was installed, and commands to change that installation."""

import importlib.util
import json
import shlex
import shutil
import site
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

Extra: TypeAlias = Literal["local", "mcp", "acp", "vertex", "keyring", "encryption"]
Installer: TypeAlias = Literal["pip", "uv", "uv tool", "pipx"]

DISTRIBUTION: Final = "agent-tui-cli"
"""The name of the program in package indexes."""

COMMAND: Final = "agent-tui"
_FOREIGN: Final = COMMAND
_SPECIAL_IN_DOUBLE_QUOTES: Final = frozenset('"$`\\!')


@dataclass(frozen=True, slots=True)
class Installation:
    """The source of this copy.

    Attributes:
        installer: The tool that manages its environment.
        folder: The folder it runs from (editable); empty if it was copied.
        address: Address of the source file or repository; empty for a package index.
    """

    installer: Installer = "pip"
    folder: str = ""
    address: str = ""

    def requirement(self, extra: Extra | None = None) -> str:
        """This copy as a requirement, with `extra`, quoted for a shell."""
        extras = f"[{extra}]" if extra else ""
        if self.folder:
            return f"{'' if self.installer == 'uv tool' else '-e '}{_quote(self.folder + extras)}"
        source = f" @ {self.address}" if self.address else ""
        return _quote(f"{DISTRIBUTION}{extras}{source}")

    def command(self, extra: Extra | None = None, *, again: bool = False) -> str:
        """The command that installs `extra` beside this program, as typed here.

        Args:
            extra: A group of optional packages; None for the program alone.
            again: Whether to replace installed packages.
        """
        wanted = self.requirement(extra)
        match self.installer:
            case "pipx":
                return f"pipx install --force {wanted}"
            case "uv tool":
                editable = "--editable " if self.folder else ""
                renewed = " --reinstall" if again else ""
                return f"uv tool install --force{renewed} {editable}{wanted}"
            case "uv":
                renewed = "--reinstall " if again else ""
                return f"uv pip install {renewed}--python {shlex.quote(sys.executable)} {wanted}"
            case "pip":
                renewed = "--force-reinstall " if again else ""
                return f"{python_command()} -m pip install {renewed}{wanted}"


def install_command(extra: Extra | None = None, *, again: bool = False) -> str:
    """The command that installs `extra` for this copy of the program, as typed here."""
    return this_installation().command(extra, again=again)


def package_command(package: str) -> str:
    """The command that installs `package` into this program's environment."""
    match this_installation().installer:
        case "pipx":
            return f"pipx inject {DISTRIBUTION} {package}"
        case "uv tool" | "uv":
            return f"uv pip install --python {shlex.quote(sys.executable)} {package}"
        case "pip":
            return f"{python_command()} -m pip install {package}"


def this_installation() -> Installation:
    """How this copy was installed, from the files that its installer left."""
    installer = _installer(Path(sys.prefix))
    found = _find_distribution(DISTRIBUTION)
    given = found.read_text("direct_url.json") if found else None
    if not given:
        return Installation(installer)
    try:
        read = json.loads(given)
    except ValueError:
        return Installation(installer)
    if not isinstance(read, dict):
        return Installation(installer)
    origin = cast("dict[str, object]", read)
    url = str(origin.get("url", ""))
    match origin:
        case {"dir_info": {"editable": True}}:
            return Installation(installer, folder=unquote(urlsplit(url).path))
        case {"vcs_info": {"vcs": str(vcs), "commit_id": str(commit)}}:
            return Installation(installer, address=f"{vcs}+{url}@{commit}")
        case _:
            return Installation(installer, address=url)


def find_code_folders() -> tuple[Path, ...]:
    """Where the code is that a start of this program runs: what writes there, runs at the next one.

    These are the folder around the package, the environment with its settings and ``.pth`` files,
    and wherever the interpreter imports from, also a folder for the user's packages that is not
    there yet.
    """
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    places = (sys.prefix, sys.exec_prefix, sys.base_prefix, *sys.path, *users)
    around = Path(__file__).parents[1]
    return tuple(dict.fromkeys((around, *(Path(place) for place in places if place))))


def foreign_program() -> tuple[str, str]:
    """What is wrong with another program of our name in this environment, and what to do.

    Both empty if there is none. Its command and its package have our names, so either of the two
    may run.
    """
    other = _find_distribution(_FOREIGN)
    if other is None or "agent_tui.__main__:main" in (other.read_text("entry_points.txt") or ""):
        return "", ""
    return (
        f"Another program named {_FOREIGN} ({other.version}) is installed in this environment. "
        f"Both run as `{COMMAND}` and overwrite each other's files.",
        f"Remove it, then reinstall this one: {_removal()}, {install_command(again=True)}",
    )


def python_command() -> str:
    """``python`` if that runs this program, else its path."""
    found = shutil.which("python")
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "python" if is_ours else shlex.quote(sys.executable)


def _removal() -> str:
    match this_installation().installer:
        case "pipx":
            return f"pipx uninject {DISTRIBUTION} {_FOREIGN}"
        case "uv tool" | "uv":
            return f"uv pip uninstall --python {shlex.quote(sys.executable)} {_FOREIGN}"
        case "pip":
            return f"{python_command()} -m pip uninstall {_FOREIGN}"


def _installer(environment: Path) -> Installer:
    """The tool that manages `environment`. One made by uv has no pip."""
    if (environment / "pipx_metadata.json").is_file():
        return "pipx"
    if (environment / "uv-receipt.toml").is_file():
        return "uv tool"
    return "uv" if importlib.util.find_spec("pip") is None else "pip"


def _find_distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _quote(text: str) -> str:
    is_plain = not _SPECIAL_IN_DOUBLE_QUOTES & set(text)
    return f'"{text}"' if is_plain else shlex.quote(text)
