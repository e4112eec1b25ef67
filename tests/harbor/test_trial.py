"""Trials by Harbor itself: agent-tui is installed, works and is verified in a scratch folder."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.harbor.table import table
from tests.support.openai_server import Call, OpenAiServer, RecordedRequest, Reply, bad_key

ROOT = Path(__file__).parents[2]
TASK = ROOT / "tests" / "support" / "harbor_task"
KEY = "sk-canary-0123456789"
PARTS = 6

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("harbor")]


def run(*line: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, text=True, capture_output=True, timeout=600, **options)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with Harbor: AGENT_TUI_HARBOR_PYTHON, this one, or made where that is possible."""
    if named := os.environ.get("AGENT_TUI_HARBOR_PYTHON"):
        return named
    if importlib.util.find_spec("harbor"):
        return sys.executable
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("no uv that could make an environment with Harbor")
    folder = tmp_path_factory.mktemp("harbor") / "venv"
    made = run(uv, "venv", "-q", "--no-python-downloads", "-p", "3.12", str(folder))
    if made.returncode:
        pytest.skip(f"no Python 3.12 for Harbor: {made.stderr.strip()}")
    wanted = f"{ROOT}[harbor]"
    python = str(folder / "bin" / "python")
    made = run(uv, "pip", "install", "-q", "--python", python, "-e", wanted)
    if made.returncode:
        pytest.skip(f"Harbor cannot be installed: {made.stderr.strip()[-300:]}")
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "-q", "--wheel", "-o", str(folder), str(ROOT))
    if built.returncode:
        pytest.skip(f"the wheel cannot be built: {built.stderr.strip()[-300:]}")
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


def summing(server: OpenAiServer) -> None:
    """Play a model that reads the parts, writes their sum and says so."""
    reads = [Call("read", {"path": f"part{number}.txt"}) for number in range(PARTS)]
    calls = iter([*reads, Call("write", {"path": "answer.txt", "content": "21"})])

    def answer(request: RecordedRequest) -> Reply:
        usage = (len(json.dumps(request.body)) // 4, 20)
        if not request.body.get("tools"):
            return Reply(text="## Goal\nThe sum of the parts.", usage=usage)
        call = next(calls, None)
        if call is None:
            return Reply(text="The sum is 21.", usage=usage)
        return Reply(tool_calls=(call,), usage=usage)

    server.play(*[answer] * 40)


@pytest.fixture
def harbor(python: str, wheel: Path, server: OpenAiServer, tmp_path: Path):
    """Runs one job under a name with further options; returns its folder and its trial's result."""
    task = tmp_path / "task"
    shutil.copytree(TASK, task)
    for number in range(PARTS):
        lines = [str(number + 1), *(f"line {n} of part {number}: nothing" for n in range(400))]
        (task / "environment" / f"part{number}.txt").write_text("\n".join(lines))
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SCRATCH_ROOT": str(tmp_path / "scratch"),
        "HOME": str(tmp_path),
    }

    def job(name: str, *options: str) -> tuple[Path, dict]:
        done = run(
            str(Path(python).parent / "harbor"),
            *("run", "--yes", "--quiet", "--path", str(task), "--job-name", name),
            *("--jobs-dir", str(tmp_path / "jobs"), "--n-concurrent", "1"),
            *("--env", "tests.support.scratch_environment:ScratchEnvironment"),
            *("--agent", "agent_tui.harbor.agent:AgentTui", "-m", "test-model"),
            *("--ak", f"wheel={wheel}", "--ak", "max_turns=20"),
            *("--ae", f"AGENT_TUI_BASE_URL={server.base_url}"),
            *("--ae", "AGENT_TUI_API_KEY_ENV=TEST_KEY", "--ae", f"TEST_KEY={KEY}"),
            *(part for option in options for part in option.split(" ", 1)),
            env=environ,
            cwd=tmp_path,
        )
        folder = tmp_path / "jobs" / name
        results = list(folder.glob("*/result.json"))
        assert results, done.stdout + done.stderr
        return folder, json.loads(results[0].read_text())

    return job


def test_the_same_task_with_compaction_and_without_it(harbor, server: OpenAiServer) -> None:
    fires = "--ae AGENT_TUI_COMPACTION__TRIGGER_TOKENS=14000"
    summing(server)
    on, compacted = harbor("compaction-on", fires)
    server.reset()
    summing(server)
    off, whole = harbor("compaction-off", fires, "--ae AGENT_TUI_COMPACTION__AUTO=false")
    for folder, result in ((on, compacted), (off, whole)):
        assert result["exception_info"] is None, result["exception_info"]
        assert result["verifier_result"]["rewards"] == {"reward": 1.0}
        (trajectory,) = folder.glob("*/agent/trajectory.json")
        told = json.loads(trajectory.read_text())
        used = result["agent_result"]
        assert told["final_metrics"]["total_prompt_tokens"] == used["n_input_tokens"] > 0
        assert used["metadata"]["replies"] == PARTS + 2
        assert used["model_usage"]
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert not [path for path in files if KEY.encode() in path.read_bytes()]
    used_on, used_off = compacted["agent_result"], whole["agent_result"]
    assert used_on["metadata"]["compactions"] > 0 == used_off["metadata"]["compactions"]
    assert used_on["n_input_tokens"] < used_off["n_input_tokens"]
    rows = table([on, off]).splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:]] == ["compaction-on", "compaction-off"]
    print("\n".join(rows))


def test_a_limit_is_an_ending_and_what_was_used_is_told(harbor, server: OpenAiServer) -> None:
    summing(server)
    _, result = harbor("limited", "--ak max_turns=2")
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"] == {"reward": 0.0}
    assert result["agent_result"]["metadata"]["replies"] == 2


def test_a_failed_run_says_why(harbor, server: OpenAiServer) -> None:
    server.play(*[bad_key()] * 4)
    _, result = harbor("failed")
    told = result["exception_info"]
    assert told["exception_type"] == "AgentAuthenticationError"
    assert "Incorrect API key" in told["exception_message"]
