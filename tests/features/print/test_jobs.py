"""Background jobs of a run without a screen: they end with it, and it says so."""

import io
import json

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.features.print.printer import ExitCode, OutputFormat, print_turn
from agent_tui.features.tour.scripted import Reply, call
from tests.support.processes import alive, nap
from tests.support.runtime import Stage

pytestmark = pytest.mark.usefixtures("no_settling")
WAIT = "until [ -e go ]; do sleep 0.01; done"


def runtime(stage: Stage, command: str) -> AgentRuntime:
    one = call("c1", "bash", command=WAIT, background=True)
    two = call("c2", "bash", command=command, background=True)
    wait = (call("c3", "bash", command="touch go"), call("c4", "job", id="1", wait=60))
    script = [Reply(tool_calls=(one,)), Reply(tool_calls=(two,)), Reply(tool_calls=wait)]
    return stage.runtime([*script, Reply("Done.")], is_interactive=False)


async def printed(runtime: AgentRuntime, output_format: OutputFormat) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    assert await print_turn(runtime, "go", output_format, out=out, err=err) == ExitCode.DONE
    return out.getvalue(), err.getvalue()


async def test_what_still_runs_at_the_end_is_stopped_and_named(stage: Stage):
    out, err = await printed(runtime(stage, nap(76801)), "text")
    assert out == "Done.\n"
    assert f"- Job 1 ({WAIT}) has ended: exit code 0 after " in err
    assert err.endswith(f"\nStopped when the run ended: {nap(76801)}\n")
    assert alive(nap(76801)) == []


@pytest.mark.parametrize("output_format", ["json", "stream-json"])
async def test_the_result_names_what_was_stopped(stage: Stage, output_format: OutputFormat):
    out, _ = await printed(runtime(stage, nap(76802)), output_format)
    *events, result = map(json.loads, out.splitlines())
    assert result["stopped_jobs"] == [nap(76802)]
    assert alive(nap(76802)) == []
    told = [(e["type"], e["job"]["id"]) for e in events if e["type"] in ("JobStarted", "JobEnded")]
    expected = [("JobStarted", "1"), ("JobStarted", "2"), ("JobEnded", "1")]
    assert told == (expected if output_format == "stream-json" else [])


async def test_a_run_without_jobs_stops_none(stage: Stage):
    out, _ = await printed(stage.runtime([Reply("Hi.")], is_interactive=False), "json")
    assert json.loads(out)["stopped_jobs"] == []
