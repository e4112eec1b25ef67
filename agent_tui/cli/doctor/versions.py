"""The program's own parts: versions, and whether they fit together."""

import importlib.metadata
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from agent_tui import __version__
from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.wording import shown_path
from agent_tui.tokens import vocabulary_file

_SECTION = "versions"
_DISTRIBUTION = "agent-tui"
_MAIN_PACKAGES = ("textual", "rich", "litellm", "tiktoken")
_REINSTALL = 'Install again: python -m pip install --upgrade "agent-tui"'


def check_program(around: Surroundings) -> Iterator[Check]:
    """This program, Python and the machine."""
    yield Check(_SECTION, _DISTRIBUTION, "ok", __version__)
    python = f"{platform.python_version()} ({shown_path(Path(sys.executable), around.environ)})"
    yield Check(_SECTION, "Python", "ok", python)
    yield Check(_SECTION, "platform", "info", f"{platform.system()} {platform.release()}, {_cpu()}")
    yield _libc_check()


def check_packages(_around: Surroundings) -> Iterator[Check]:
    """The packages the program stands on, against what its own metadata asks for."""
    wanted = _requirements()
    if not wanted:
        yield Check(
            _SECTION,
            "packages",
            "info",
            f"{_DISTRIBUTION} is run from its source, not installed: requirements are not known",
        )
    fitting = 0
    for name in (*_MAIN_PACKAGES, *sorted(wanted.keys() - {*_MAIN_PACKAGES})):
        check = _package_check(name, wanted.get(name, ""))
        if name in _MAIN_PACKAGES or check.state != "ok":
            yield check
        else:
            fitting += 1
    if fitting:
        yield Check(_SECTION, "others", "ok", f"{fitting} more packages as required")


def check_pip(_around: Surroundings) -> Iterator[Check]:
    """What fetches the built-in model."""
    if version := package_version("pip"):
        yield Check(_SECTION, "pip", "ok", version)
        return
    found = "not installed here; only `agent-tui models pull` needs it"
    yield Check(_SECTION, "pip", "info", found, "To have it: python -m ensurepip")


def check_counting(around: Surroundings) -> Iterator[Check]:
    """The vocabulary that tokens are counted with."""
    if vocabulary_file(around.environ) is not None:
        yield Check(_SECTION, "vocabulary", "ok", "on this disk: tokens are counted offline")
        return
    found = "not on this disk: the first count fetches it from the network"
    advice = "Unset TIKTOKEN_CACHE_DIR, or let it name a folder with the vocabulary in it."
    yield Check(_SECTION, "vocabulary", "warning", found, advice)


def is_musl() -> bool:
    """Whether this Python was built for musl (Alpine), for which some wheels do not exist."""
    names = ("SOABI", "HOST_GNU_TYPE", "MULTIARCH")
    return any("musl" in str(sysconfig.get_config_var(name)) for name in names)


def package_version(name: str) -> str:
    """The installed version of a distribution, without importing it; empty if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def fits(version: str, specifier: str) -> bool:
    """Whether `version` meets a pip specifier made of plain comparisons, such as ``>=1.2,<2``."""
    return all(
        _compares(_numbers(version), operator, _numbers(bound))
        for operator, bound in re.findall(r"(>=|<=|==|!=|<|>)\s*([\w.]+)", specifier)
    )


def _compares(version: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    pairs = list(zip_longest(version, bound, fillvalue=0))
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    match operator:
        case ">=":
            return left >= right
        case "<=":
            return left <= right
        case "<":
            return left < right
        case ">":
            return left > right
        case "==":
            return left == right
        case _:
            return left != right


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _requirements() -> Mapping[str, str]:
    """Package -> specifier, without those of the extras; empty if we are not installed."""
    try:
        lines = importlib.metadata.requires(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    plain = (line for line in lines if ";" not in line)
    found = (re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*(.*)", line) for line in plain)
    return {match[1].lower(): match[2] for match in found if match}


def _package_check(name: str, specifier: str) -> Check:
    version = package_version(name)
    if not version:
        return Check(_SECTION, name, "bad", "not installed", _REINSTALL)
    if not fits(version, specifier):
        wanted = f"{version}, but {specifier} is needed"
        return Check(_SECTION, name, "bad", wanted, _REINSTALL)
    return Check(_SECTION, name, "ok", version)


def _cpu() -> str:
    return f"{platform.machine()}, {os.cpu_count() or 1} cores"


def _libc_check() -> Check:
    if is_musl():
        return Check(
            _SECTION,
            "C library",
            "info",
            "musl: there is no wheel for models on this machine",
            "Use a model server (Ollama, llama.cpp, ...) or a system with glibc for those.",
        )
    name, version = platform.libc_ver()
    return Check(
        _SECTION, "C library", "ok" if name else "info", f"{name} {version}".strip() or "-"
    )
