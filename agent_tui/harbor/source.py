"""What is installed in the environment of a task: a release, or a wheel of this machine."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_tui import __version__
from agent_tui.installation import DISTRIBUTION, Installation, this_installation

_BUILD = "Build a wheel (uv build --wheel) and pass it: --ak wheel=dist/NAME.whl"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that is to be copied into the environment."""

    path: Path


def source_of(
    wheel: str | None, version: str | None, installation: Installation | None = None
) -> Wheel | str:
    """A wheel, or a requirement as pip and uv take it: by default what runs here.

    Args:
        wheel: The file the person named.
        version: The release the person named.
        installation: How the program was installed; None: looked up.

    Raises:
        ValueError: The wheel is none, or what runs here cannot be installed elsewhere.
    """
    if wheel:
        return _checked(Path(wheel).expanduser())
    if version:
        return f"{DISTRIBUTION}=={version}"
    here = installation or this_installation()
    if here.folder:
        raise ValueError(f"agent-tui runs from the source folder {here.folder}. {_BUILD}")
    if not here.address:
        return f"{DISTRIBUTION}=={__version__}"
    if here.address.startswith("file:"):
        return _checked(Path(unquote(urlsplit(here.address).path)))
    return f"{DISTRIBUTION} @ {here.address}"


def _checked(path: Path) -> Wheel:
    if path.suffix != ".whl" or not path.is_file():
        raise ValueError(f"{path} is not a wheel. {_BUILD}")
    return Wheel(path.resolve())
