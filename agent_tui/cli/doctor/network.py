"""The network: what was left alone, and what stands between us and it."""

from collections.abc import Iterator
from pathlib import Path

from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.surroundings import Surroundings

_SECTION = "network"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def check_network(around: Surroundings) -> Iterator[Check]:
    """Proxies and certificates by name; providers are not called."""
    yield Check(_SECTION, "providers", "info", "not checked: keys are only tried when used")
    names = (spelling for name in _PROXIES for spelling in (name, name.lower()))
    if proxies := [name for name in names if around.environ.get(name)]:
        yield Check(_SECTION, "proxy", "info", f"{', '.join(proxies)} set")
    for name in _CERTIFICATES:
        place = around.environ.get(name)
        if place and not Path(place).exists():
            found = f"{name} names something that does not exist: no provider can be reached"
            yield Check(_SECTION, name, "bad", found, f"Mend it, or: unset {name}")
