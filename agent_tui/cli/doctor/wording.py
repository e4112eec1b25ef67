"""How paths, addresses and names are written in the report."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

_MAX_NAME_CHARS = 32


def shown_path(path: Path, environ: Mapping[str, str]) -> str:
    """`path` with the home folder as ``~``."""
    home = environ.get("HOME", "")
    if home not in ("", "/") and path.is_relative_to(home):
        return str(Path("~", path.relative_to(home)))
    return str(path)


def shown_address(url: str) -> str:
    """`url` without a name, a password or a query in it."""
    try:
        address = urlsplit(url)
        host, port = address.hostname or "", address.port
    except ValueError:
        return "an address that cannot be read"
    if ":" in host:
        host = f"[{host}]"
    return f"{address.scheme}://{host}{f':{port}' if port else ''}{address.path}"


def listed(names: list[str], limit: int = 8) -> str:
    """`names` with commas, long ones by their ends, those beyond `limit` as a number.

    Servers call models by the path of their file, which ends in what tells them apart.
    """
    shown = (
        name if len(name) <= _MAX_NAME_CHARS else f"...{name[-_MAX_NAME_CHARS + 3 :]}"
        for name in names[:limit]
    )
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(shown) + more
