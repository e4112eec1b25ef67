import subprocess
import sys

ASK = """
import importlib, pkgutil, sys
import agent_tui.sessions as room
for found in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    importlib.import_module(found.name)
print(*sys.modules)
"""


def test_the_room_loads_neither_screen_nor_provider_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "pydantic" in loaded
    assert loaded.isdisjoint({"textual", "rich", "litellm", "tiktoken", "asyncio"})
