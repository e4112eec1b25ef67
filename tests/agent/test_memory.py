"""What a conversation must not load into the process of the screen."""

import subprocess
import sys

WORK = """
import asyncio, sys, tempfile
from pathlib import Path
from agent_tui.events import CompactionFinished
from agent_tui.features.tour.scripted import Reply
from tests.support.runtime import Stage, collect, of_kind

async def work(folder):
    runtime = Stage(folder).runtime([Reply(text="It is as you say. " * 300)] * 6, window=4_096)
    for number in range(3):
        await collect(runtime.submit(f"Say part {number}. " * 20))
    return of_kind(await collect(runtime.compact_here("tiered")), CompactionFinished)

with tempfile.TemporaryDirectory() as folder:
    print(len(asyncio.run(work(Path(folder)))), "tiktoken" in sys.modules)
"""


def test_no_conversation_loads_a_vocabulary_even_to_compact_a_small_window():
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
