"""Background jobs in a conversation by lines."""

import re

from agent_tui.features.tour.scripted import Reply, call
from tests.features.plain.talking import talk
from tests.support.processes import alive, nap
from tests.support.runtime import Stage


def test_jobs_are_listed_shown_and_stopped_and_their_end_is_told(stage: Stage):
    command = f"echo printed; {nap(76901)}"
    begun = call("c1", "bash", command=command, background=True)
    runtime = stage.runtime([Reply(tool_calls=(begun,)), Reply("It runs.")])
    text = talk(stage, runtime, "start it", "/jobs", "1", "o", "/jobs 1", "/jobs stop 1", "/cost")
    assert f"1. echo printed; {nap(76901)}, job 1, running for " in text
    assert text.count("\nprinted\n") == 2
    assert re.search(r"Job 1 \(echo printed.*\) has ended: stopped after \d+ s\.", text)
    assert alive(nap(76901)) == []


def test_leaving_ends_what_runs(stage: Stage):
    begun = call("c1", "bash", command=nap(76902), background=True)
    runtime = stage.runtime([Reply(tool_calls=(begun,)), Reply("It runs.")])
    talk(stage, runtime, "start it")
    assert alive(nap(76902)) == []
