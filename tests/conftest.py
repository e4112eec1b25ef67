"""Which tests run when nothing is chosen, and what holds for all of them."""

import contextlib
import ctypes
import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer

from agent_tui.cli import own_files
from agent_tui.tools import bash
from agent_tui.tools.processes import shell
from tests.support.cpu_times import CpuTimes, read_listed
from tests.support.left_out import leave_out, marks_left_out, short_name
from tests.support.provider_process import (
    connections,
    connections_file,
    host,
    impatient_host,
    worker_environ,
    worker_log,
)
from tests.support.real_model import real_model_data, real_model_file
from tests.support.scheduling import FileScheduling

__all__ = [
    "connections",
    "connections_file",
    "host",
    "impatient_host",
    "real_model_data",
    "real_model_file",
    "worker_environ",
    "worker_log",
]

# No property is about time: neither a slow example nor slow generation fails a test. A run draws
# what the run before it drew, so that only a change makes it fail; `--hypothesis-profile=anew`
# draws other examples each time.
settings.register_profile(
    "anew", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("repeatable", settings.get_profile("anew"), derandomize=True)
settings.load_profile("repeatable")

# Looked for garbage after so many new objects, instead of 700; while tests are collected, nearly
# all objects stay.
_GARBAGE_THRESHOLDS = (10_000, 10, 10)
_COLLECTION_THRESHOLDS = (50_000, 20, 100)
_MANY_FILES = 400
_TESTS_BETWEEN_RETURNS = 100
_C_LIBRARY = ctypes.CDLL(None)
_test_numbers = count(1)
_ended_tests = count(1)
_folder_numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
_freeze = gc.freeze
_PROVIDER_FIXTURES = frozenset({"host", "impatient_host"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """See `tests.support.cpu_times`."""
    parser.addoption("--cpu-times", metavar="FILE", help="write each test's CPU seconds to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests, and the programs that they start, surroundings that are always the same.

    Home is a folder of their own. Ctrl+C works, also below a shell that ignores it for a job in
    the background. Programs have no sandbox unless a test wants one: it would be another on another
    machine. Bytecode is kept, whatever the environment says: to compile all of it anew
    takes each worker eight seconds, and half of every program's start. The tests' own processes
    wait for no disk: what is on it after a power cut is nothing that they could see.
    """
    os.fsync = os.fstat  # an error all the same for what is not open
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["AGENT_TUI_SANDBOX"] = "off"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--hypothesis-profile") != "anew":
        _draw_no_constants()
    if file := config.option.cpu_times:
        config.pluginmanager.register(CpuTimes(Path(file)), "cpu-times")
    if not hasattr(config, "workerinput"):  # workers inherit it
        _move_home(config)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what a whole run says nowhere else."""
    return f"left out unless -m names them: {', '.join(marks_left_out(config)) or 'none'}"


def pytest_make_parametrize_id(val: object) -> str | None:
    """See `short_name`."""
    return short_name(val)


def pytest_collection_finish() -> None:
    """Keep the tests themselves, two million objects, out of the garbage collector's way.

    To collect them takes half as long then. What the program freezes for its own lifetime stays
    free: many tests share one process.
    """
    _return_memory()
    _freeze()
    gc.freeze = lambda: None
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """See `_return_memory`."""
    if next(_test_numbers) % _TESTS_BETWEEN_RETURNS == 0:
        _return_memory()


def _return_memory() -> None:
    """Return free memory to the kernel, where the C library can: threads leave much of it."""
    if hasattr(_C_LIBRARY, "malloc_trim"):
        _C_LIBRARY.malloc_trim(0)


def pytest_runtest_teardown() -> None:
    """Look for garbage now and then, and once it holds many files open.

    It keeps memory: 50 MB in a whole run. `select` takes no more than 1,024 files.
    """
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    if lowest_free > _MANY_FILES or next(_ended_tests) % _TESTS_BETWEEN_RETURNS == 0:
        gc.collect()


def _draw_no_constants() -> None:
    """Hypothesis draws constants of all modules at times, which it parses for that.

    This takes each worker up to eight seconds, and any change of the program would change what the
    properties of all others draw.
    """
    providers.__dict__["_get_local_constants"] = lambda: vars(providers)["_local_constants"]


def _move_home(config: pytest.Config) -> None:
    """An empty home; only what was downloaded for building packages is still found."""
    caches = Path.home() / ".cache"
    os.environ.setdefault("UV_CACHE_DIR", str(caches / "uv"))
    os.environ.setdefault("PIP_CACHE_DIR", str(caches / "pip"))
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    home = tempfile.mkdtemp(prefix="agent-tui-home-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ["HOME"] = home


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling | None:
    """See `FileScheduling`."""
    return FileScheduling(config, log) if config.option.dist == "loadgroup" else None


@pytest.fixture(scope="session", autouse=True)
def own_files_known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The first start in a home looks at all files of the environment: one look for all homes."""
    folder = tmp_path_factory.mktemp("own-files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_files, "user_data_dir", lambda: folder)
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which reads all the thousands of folders for each new one's number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    for number in _folder_numbers[name]:
        with contextlib.suppress(FileExistsError):
            folder = tmp_path_factory.getbasetemp() / f"{name}{number}"
            folder.mkdir(mode=0o700)
            return folder
    raise AssertionError("numbers do not end")


@pytest.fixture
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second, not a whole one, until a command counts as a background job."""
    monkeypatch.setattr(bash, "_SETTLE_S", 0.1)
    monkeypatch.setattr(shell, "_LEFTOVERS_S", 0.1)


def pytest_sessionfinish() -> None:
    """Look for garbage once more; pytest would look five times, for seconds."""
    gc.collect()
    _freeze()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the kinds out that ``-m`` does not name; see `leave_out`.

    What shares a provider process runs in one worker: each other one would start its own, which
    takes five seconds of a core.
    """
    listed = read_listed()
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.thorough)
        if isinstance(item, pytest.Function) and _PROVIDER_FIXTURES & set(item.fixturenames):
            item.add_marker(pytest.mark.xdist_group("provider process"))
    leave_out(config, items)
