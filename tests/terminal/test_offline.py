"""A start and a tour without a network: no socket but loopback, in any process of ours."""

import sys

import pytest

from tests.support.pty_program import PtyProgram

WATCHER = """
import os, sys

def _watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto"):
        address = arguments[1]
        note(event, address)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        note(event, arguments[0])

def note(event, address):
    with open(os.environ["SOCKET_LOG"], "a") as log:
        log.write(f"{os.getpid()} {event} {address!r}\\n")

with open(os.environ["SOCKET_LOG"], "a") as log:
    log.write(f"{os.getpid()} started {sys.argv!r}\\n")
sys.addaudithook(_watch)
"""
LOOPBACK = ("'127.", "'localhost'", "'::1'", "b'localhost'")


@pytest.mark.thorough
def test_an_offline_start_opens_no_socket_but_loopback(environ, tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(WATCHER)
    log = tmp_path / "sockets.log"
    environ = {**environ, "PYTHONPATH": str(hooks), "SOCKET_LOG": str(log)}
    argv = [sys.executable, "-m", "agent_tui", "-m", "perplexity/sonar-pro"]
    with PtyProgram(argv, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        program.send("/model\r")
        program.wait_for("sonar-pro")
        _wait_until_warm(program)
    lines = log.read_text().splitlines()
    assert len({line.split()[0] for line in lines}) >= 2, "litellm's process was watched too"
    outside = [
        line
        for line in lines
        if " started " not in line
        and not any(place in line for place in LOOPBACK)
        and "'/" not in line  # unix sockets
    ]
    assert outside == []


def _wait_until_warm(program: PtyProgram) -> None:
    """Until litellm's process has imported it and waits for requests."""
    import time

    import psutil

    parent = psutil.Process(program.process.pid)
    before, quiet = 0, 0
    for _ in range(300):
        now = sum(child.memory_info().rss for child in parent.children(recursive=True))
        quiet = quiet + 1 if now == before and now > 40e6 else 0
        if quiet == 20:
            return
        before = now
        time.sleep(0.1)
    raise TimeoutError("litellm's process never warmed up")
