"""Bundles of hosts that are allowed together, such as all that ``pip install`` needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

REGISTRIES: Final = "registries"
"""The bundle of all package registries."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Hosts that one tool needs.

    Attributes:
        name: Its name in rules.
        kind: What it is, for the user.
        hosts: Their names; a leading ``*.`` means all subdomains.
        source: Where the list is from. Upload-only hosts are left out.
        fetched_by: A regular expression for the start of commands that connect to them, without
            their options; empty if such a command is not recognized, or never runs in the sandbox.
    """

    name: str
    kind: str
    hosts: tuple[str, ...]
    source: str
    fetched_by: str = ""

    def has(self, host: str) -> bool:
        """Whether `host` (lowercase) is one of them."""
        return any(
            host.endswith(name[1:]) if name.startswith("*.") else host == name
            for name in self.hosts
        )


_PACKAGES = "package registry"
_BUNDLES = (
    Bundle(
        "pypi",
        _PACKAGES,
        ("pypi.org", "files.pythonhosted.org", "pypi.python.org"),
        "https://docs.pypi.org/api/index-api/",
        r"(?:python[\d.]* )?pip[\d.]* (?:install|download|wheel)|uvx|pipx (?:install|run|upgrade)"
        r"|uv (?:add|sync|lock|pip (?:install|sync|compile)|tool (?:install|run|upgrade))"
        r"|poetry (?:add|install|update|lock|sync)",
    ),
    Bundle(
        "npm",
        _PACKAGES,
        ("registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com", "nodejs.org"),
        "https://docs.npmjs.com/cli/using-npm/registry, https://yarnpkg.com/configuration/yarnrc "
        "(nodejs.org: headers for node-gyp)",
        r"(?:npm|pnpm|yarn|bun) (?:global )?(?:install|i|ci|add|update|create|publish|login)"
        r"|yarn$|npx|bunx",
    ),
    Bundle(
        "crates",
        _PACKAGES,
        ("crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"),
        "https://doc.rust-lang.org/cargo/reference/registries.html, "
        "https://rust-lang.github.io/rustup/environment-variables.html",
        r"cargo (?:add|fetch|install|update|publish|login)",
    ),
    Bundle(
        "go",
        _PACKAGES,
        ("proxy.golang.org", "sum.golang.org"),
        "https://go.dev/ref/mod#environment-variables",
        r"go (?:get|install|mod (?:download|tidy))",
    ),
    Bundle(
        "rubygems",
        _PACKAGES,
        ("rubygems.org", "index.rubygems.org"),
        "https://guides.rubygems.org/rubygems-org-compact-index-api/",
        r"gem (?:install|update|fetch|push)|bundle (?:install|update|add)",
    ),
    Bundle(
        "packagist",
        _PACKAGES,
        ("repo.packagist.org", "packagist.org"),
        "https://packagist.org/apidoc",
        r"composer (?:global )?(?:install|update|require|create-project)",
    ),
    Bundle(
        "maven",
        _PACKAGES,
        (
            *("repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"),
            *("plugins-artifacts.gradle.org", "services.gradle.org", "downloads.gradle.org"),
        ),
        "https://central.sonatype.org/consume/, "
        "https://docs.gradle.org/current/userguide/gradle_wrapper.html",
    ),
    Bundle(
        "conda",
        _PACKAGES,
        ("conda.anaconda.org", "repo.anaconda.com", "repo.prefix.dev"),
        "https://docs.conda.io/projects/conda/en/latest/user-guide/concepts/channels.html",
        r"(?:conda|mamba|micromamba) (?:env )?(?:create|install|update)",
    ),
    Bundle(
        "debian",
        _PACKAGES,
        (
            *("deb.debian.org", "security.debian.org", "archive.ubuntu.com", "ports.ubuntu.com"),
            "security.ubuntu.com",
        ),
        "https://wiki.debian.org/SourcesList, https://ubuntu.com/server/docs/package-management",
    ),
    Bundle(
        "docker",
        "container registry",
        (
            *("registry-1.docker.io", "auth.docker.io", "index.docker.io"),
            *("production.cloudflare.docker.com", "production.cloudfront.docker.com"),
        ),
        "https://docs.docker.com/desktop/setup/allow-list/",
    ),
    Bundle(
        "github",
        "code host",
        ("github.com", "api.github.com", "codeload.github.com", "*.githubusercontent.com"),
        "https://api.github.com/meta, field domains",
        r"gh",
    ),
)

BUNDLES: Final[Mapping[str, Bundle]] = {
    REGISTRIES: Bundle(
        REGISTRIES,
        "package registries",
        tuple(host for one in _BUNDLES if one.kind == _PACKAGES for host in one.hosts),
        "all package registries here",
    ),
    **{bundle.name: bundle for bundle in _BUNDLES},
}
"""All bundles by name."""


def bundle_of(host: str) -> Bundle | None:
    """The smallest bundle that contains `host` (lowercase); None if none does."""
    return next((bundle for bundle in _BUNDLES if bundle.has(host)), None)


def bundle_fetched_by(command: str) -> Bundle | None:
    """The bundle to which a simple command connects, such as ``pip install cowsay``; None if none.

    Args:
        command: The program's name without its folder, and its arguments, separated by spaces.
    """
    words = " ".join(word for word in command.split(" ") if not word.startswith(("-", "+")))
    return next(
        (
            bundle
            for bundle in _BUNDLES
            if bundle.fetched_by and re.match(rf"(?:{bundle.fetched_by})(?= |$)", words)
        ),
        None,
    )
