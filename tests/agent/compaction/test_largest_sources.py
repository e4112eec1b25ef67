"""What is said to fill a context."""

from agent_tui.agent.compaction.sources import largest_sources
from agent_tui.sessions.context import build_context
from agent_tui.tokens import ExactCounter
from tests.support.talk import Talk


def test_the_largest_sources_are_named_with_their_shares():
    talk = Talk()
    talk.user("Fix it.")
    for _ in range(2):
        talk.tool("read", {"path": "src/large.py"}, "a line of it\n" * 300)
    talk.tool("bash", {"command": "make"}, "one line of many\n" * 100)
    talk.reply("Done. " * 60)
    words = largest_sources(build_context(talk.path), ExactCounter())
    first, second, third = words.split(", ")
    assert first.startswith("read src/large.py ")
    assert second.startswith("$ make ")
    assert third.startswith("replies and calls ")
    shares = [int(part.split()[-2]) for part in (first, second, third)]
    assert shares == sorted(shares, reverse=True)
    assert 90 <= sum(shares) <= 100


def test_a_summary_is_told_from_what_the_person_wrote():
    talk = Talk()
    talk.user("Fix it.")
    kept = talk.user("Go on. " * 20)
    talk.compaction("What was done. " * 100, kept.id)
    words = largest_sources(build_context(talk.path), ExactCounter())
    assert words.startswith("the summary ")
    assert "your messages" in words


def test_a_context_of_nothing_has_no_sources():
    assert largest_sources(build_context(()), ExactCounter()) == ""


def test_a_long_command_is_named_in_one_short_line():
    talk = Talk()
    talk.user("Run it.")
    talk.tool("bash", {"command": "echo a\n" * 50}, "printed\n" * 200)
    words = largest_sources(build_context(talk.path), ExactCounter())
    assert "\n" not in words
    assert len(words.partition(", ")[0]) <= 70
