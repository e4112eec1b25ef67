"""New compaction strategy: a module in ``features/strategies/`` and its name in ``feature.py``."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

MODULE = '''\
"""Strategy `abridge`: long messages keep their first words, all but the newest."""

from agent_tui.compaction.request import CompactionRequest
from agent_tui.providers.client import OnProgress, OnUsage
from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.strategies.base import BuiltInStrategy, StrategyServices
from agent_tui.errors import NothingToCompactError
from agent_tui.sessions.entries import ContextEditEntry, Entry, MessageEntry

_KEPT_CHARS = 60


class AbridgeStrategy:
    """Cuts what is long, whatever it is.

    Args:
        services: What it uses.
    """

    def __init__(self, services: StrategyServices) -> None:
        self._counter = services.counter

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> Outcome:
        """Cut every long message but the newest two.

        Raises:
            NothingToCompactError: None is long.
        """
        on_progress("abridging", 0)
        said = [entry for entry in request.path if isinstance(entry, MessageEntry)][:-2]
        long = [entry for entry in said if len(entry.message.text) > _KEPT_CHARS]
        if not long:
            raise NothingToCompactError("Nothing to compact: no older message is long.")
        freed = sum(self._counter.count_text(entry.message.text[_KEPT_CHARS:]) for entry in long)
        return Outcome(
            edits=tuple(_edit(entry, entry.message.text) for entry in long),
            tokens_before=request.sizes.used,
            tokens_after=request.sizes.used - freed,
            statistics={"messages_abridged": len(long)},
        )


def _edit(entry: Entry, text: str) -> ContextEditEntry:
    return ContextEditEntry(target_id=entry.id, replacement=text[:_KEPT_CHARS], batch="abridge")


abridge = BuiltInStrategy("the first words of long messages", AbridgeStrategy)
'''
NAME = '            "agent_tui.features.strategies.abridge:abridge",\n'
FEATURE = "agent_tui/features/strategies/feature.py"
CHOSEN = '[compaction]\nstrategy = "abridge"\n'
DONE = "abridge: 38 messages abridged"
DONE_BESIDE_A_PROMPT = "abridge: 39 messages abridged"


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New compaction strategy")
    made.add_file("agent_tui/features/strategies/abridge.py", MODULE)
    made.insert_before(FEATURE, "        )\n    },", NAME)
    return made


@pytest.fixture
def session(copy) -> str:
    """The id of a session with forty long messages."""
    records = [{"type": "session", "version": 3, "id": "", "cwd": str(copy.work)}]
    for number in range(40):
        said = {"content": f"Note {number}: " + "the tide is high at noon. " * 40}
        role = ("user", "assistant")[number % 2]
        records.append(
            {
                "type": "message",
                "id": f"{number + 1:08x}",
                "parentId": f"{number:08x}" if number else None,
                "timestamp": "2026-01-01T10:00:00.000Z",
                "message": {"role": role, **(said if role == "user" else _reply(**said))},
            }
        )
    file = copy.work / "notes.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    done = copy.run("sessions", "import", str(file), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["id"]


def _reply(content: str) -> dict[str, object]:
    return {
        "content": [{"type": "text", "text": content}],
        "provider": "scripted",
        "model": "tour",
        "stopReason": "stop",
    }


@pytest.mark.thorough
def test_a_shell_compacts_a_session_by_it_and_its_name_is_one_of_the_setting(copy, session):
    done = copy.run("compact", session, "--strategy", "abridge", "--model", "none", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tokens_after"] < report["tokens_before"] // 2
    assert "abridge" in copy.run("compact", "--help").stdout
    assert copy.run("config", "set", "compaction.strategy", "abridge").returncode == 0
    refused = copy.run("config", "set", "compaction.strategy", "abridges")
    assert "abridge" in refused.stderr


@pytest.mark.thorough
def test_the_screen_offers_it_with_its_description_and_compacts_by_it(copy, session):
    with copy.typing("--demo", "-r", session, columns=140) as screen:
        screen.wait_for("Note 39")
        screen.send("/compact --strategy abr")
        screen.wait_for("the first words of long messages")
        screen.send("idge\r")
        screen.wait_for(DONE)


@pytest.mark.thorough
def test_the_screen_previews_a_compaction_where_the_settings_name_it(copy, session):
    copy.config_file.write_text(CHOSEN, encoding="utf-8")
    with copy.typing("--demo", "-r", session, columns=140) as screen:
        screen.wait_for("Note 39")
        screen.send("/compact --preview\r")
        screen.wait_for("What a compaction would do now")


@pytest.mark.thorough
def test_the_screen_has_it_among_the_values_of_the_setting(copy):
    with copy.typing("--demo", columns=140) as screen:
        screen.wait_for("scripted tour")
        screen.send("/settings compaction.strategy\r")
        screen.wait_for("How to compact")
        screen.send("\r")
        screen.wait_for("abridge")


@pytest.mark.thorough
def test_plain_compacts_by_it(copy, session):
    with copy.typing("--demo", "--plain", "-r", session, columns=140) as person:
        person.wait_for("] > ")
        person.send("/compact --strategy abridge\r")
        person.wait_for(DONE)


@pytest.mark.thorough
def test_a_script_that_goes_on_with_the_session_makes_room_by_it(copy, session):
    copy.config_file.write_text(f"{CHOSEN}trigger_at = 0.3\n", encoding="utf-8")
    done = copy.run("-m", "scripted/tour", "-r", session, "-p", "help")
    assert done.returncode == 0, done.stderr
    assert DONE_BESIDE_A_PROMPT in done.stderr
