"""The whole program is ended while a command of the model runs: nothing of that is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.openai_script import Call, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.processes import alive, fugitives, gone, nap_seconds
from tests.support.sandbox import needs_bwrap


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="needs subreapers")
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
@pytest.mark.parametrize("is_job", [False, True])
def test_no_process_of_the_program_outlives_it(
    tmp_path: Path, number: signal.Signals, is_job: bool
):
    seconds, ready = nap_seconds(10 * number.value + is_job), tmp_path / "ready"
    (tmp_path / "work").mkdir()
    own = {f"AGENT_TUI_{n}_DIR": str(tmp_path / n.lower()) for n in ("CONFIG", "DATA", "CACHE")}
    keys = {"TEST_KEY": "sk-canary-0123456789", "GITHUB_TOKEN": "canary"}
    with OpenAiServer() as server:
        script = f"env > {tmp_path}/environ; " + fugitives(seconds, str(ready))
        (tmp_path / "work" / "script.sh").write_text(script)
        begin = Call("bash", {"command": "bash script.sh", "background": is_job})
        wait = Call("job", {"id": "1", "wait": 3_000})
        server.play(Reply(tool_calls=(begin,)), Reply(tool_calls=(wait,)))
        options = ["-m", "test", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"]
        argv = [sys.executable, "-m", "agent_tui", *options, "--permission-mode", "full", "-p", "x"]
        program = subprocess.Popen(
            argv,
            cwd=tmp_path / "work",
            env={**os.environ, **own, **keys},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        while not ready.exists():
            assert program.poll() is None
            time.sleep(0.01)
        assert alive(f"sleep {seconds}")
        program.send_signal(number)
        program.wait()
        if number == signal.SIGTERM:  # it has ended them itself before it left
            assert alive(f"sleep {seconds}") == []
        assert gone(f"sleep {seconds}")
    assert "canary" not in (tmp_path / "environ").read_text()


@pytest.mark.thorough
@needs_bwrap
def test_what_a_command_left_that_ran_at_the_kill_is_judged_by_the_next_start(tmp_path: Path):
    work = tmp_path / "home/src/x"
    work.mkdir(parents=True)
    own = {f"AGENT_TUI_{n}_DIR": str(tmp_path / n.lower()) for n in ("CONFIG", "DATA", "CACHE")}
    own |= {"HOME": str(tmp_path / "home"), "TEST_KEY": "sk-x", "AGENT_TUI_SANDBOX": "on"}
    environ = {**os.environ, **own}
    config, seconds = work / "sub/.git/config", nap_seconds(777)
    script = (
        "git init -q sub; git -C sub config core.fsmonitor ./evil; mkdir .vscode;"
        f"echo 1 > .vscode/tasks.json; touch ready; sleep {seconds}"
    )
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(Call("bash", {"command": script}),)), Reply("done"))
        options = ["-m", "test", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"]
        argv = [sys.executable, "-m", "agent_tui", *options, "--permission-mode", "full", "-p", "x"]
        how = {"cwd": work, "env": environ, "stdin": subprocess.DEVNULL, "text": True}
        program = subprocess.Popen(argv, **how, stdout=subprocess.DEVNULL)
        while not (work / "ready").exists():
            assert program.poll() is None
            time.sleep(0.01)
        program.kill()
        program.wait()
        assert gone(f"sleep {seconds}")
        assert "evil" in config.read_text()
        done = subprocess.run(argv, **how, capture_output=True, check=True)
    assert "evil" not in config.read_text()
    assert not (work / ".vscode").exists()
    assert "sub/.git/config was held back" in done.stderr
