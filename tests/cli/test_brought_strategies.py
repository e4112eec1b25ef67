"""Compaction strategies of other packages: loaded, refused, used, and what their faults do."""

import asyncio
import json
from pathlib import Path

import pytest

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import STRATEGIES
from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.compaction.strategies.registry import CompactionStrategy, StrategyRequest
from agent_tui.config import CompactionSettings
from agent_tui.providers.base import ModelRef, Provider
from agent_tui.providers.client import ignore_usage, unseen
from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ExactCounter
from tests.compaction.writer import Models, Writer, client_of
from tests.features.strategies.hybrid.scene import questions, with_reads
from tests.support.context_checks import assert_sendable
from tests.support.packages import (
    call_with_packages,
    documented_plugin,
    make_package,
    run_with_packages,
)
from tests.support.rows import each_row

MORE = """
open("{marker}", "w").close()
TIERED = CompactionStrategy("tiered", "another one", shorten)
WORDY = CompactionStrategy("two words", "a name that cannot be typed", shorten)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is the example of the page."""
    site = tmp_path / "site"
    code = documented_plugin("CompactionStrategy(")
    code += MORE.replace("{marker}", str(tmp_path / "imported"))
    names = ("abridge", "TIERED", "WORDY", "shorten")
    make_package(
        site, "abridge-plugin", code, {"agent_tui.strategies": {name: name for name in names}}
    )
    monkeypatch.syspath_prepend(str(site))
    return site


def compacted(
    strategy: str,
    brought: tuple[CompactionStrategy, ...] = (),
    *,
    path: tuple[Entry, ...] | None = None,
    writer: Provider | None = None,
    target: int = 1_500,
) -> Outcome:
    """What a compaction of some 5,000 tokens by `strategy` comes to."""
    planner = CompactionPlanner(client_of(writer), ExactCounter(), Models(), brought=brought)
    request = CompactionRequest(
        path=path or tuple(questions().path),
        previous=None,
        model=ModelRef("scripted/one"),
        cwd=Path("/project"),
        settings=CompactionSettings(),
        sizes=ContextSizes(window=20_000, used=5_000, target=target),
        occasion="asked",
    )
    return asyncio.run(planner.outcome(request, strategy, unseen, ignore_usage))


@pytest.mark.usefixtures("site")
def test_a_strategy_is_loaded_and_others_are_refused_with_their_reason(tmp_path: Path) -> None:
    found = load_plugins(["abridge-plugin"], [tmp_path / "work"])
    assert [one.name for one in found.of(STRATEGIES)] == ["abridge"]
    taken, unusable, wrong = found.problems
    assert "tiered exists already" in taken
    assert "its name 'two words' is not a word" in unusable
    assert "shorten was not made by agent_tui.CompactionStrategy" in wrong


def test_one_where_commands_may_write_or_that_nobody_named_is_not_imported(
    site: Path, tmp_path: Path
) -> None:
    found = load_plugins(["abridge-plugin"], [site.parent])
    assert found.of(STRATEGIES) == ()
    assert "where the model's commands can write" in found.problems[0]
    assert load_plugins([], []).of(STRATEGIES) == ()
    assert not (tmp_path / "imported").exists()


@pytest.mark.usefixtures("site")
def test_it_shortens_what_is_old_until_the_target_is_reached() -> None:
    brought = load_plugins(["abridge-plugin"], []).of(STRATEGIES)
    path = tuple(questions().path)
    outcome = compacted("abridge", brought, path=path, target=4_000)
    assert (outcome.strategy, outcome.summary) == ("abridge", None)
    assert outcome.tokens_after <= 4_000 < outcome.tokens_before
    assert outcome.statistics["messages_shortened"] == len(outcome.edits) > 0
    edited = [edit.target_id for edit in outcome.edits]
    assert edited == [entry.id for entry in path if entry.id in edited], "the oldest first"
    assert path[-1].id not in edited
    assert all("recall" in str(edit.replacement) for edit in outcome.edits)
    assert_sendable((*path, *outcome.entries("manual", 5_000)))


@pytest.mark.usefixtures("site")
def test_calls_stay_with_their_results() -> None:
    brought = load_plugins(["abridge-plugin"], []).of(STRATEGIES)
    talk, results = with_reads()
    for number in range(10):
        talk.user(f"Question {number}")
        talk.reply(f"Answer {number}")
    outcome = compacted("abridge", brought, path=talk.path, target=9_000)
    assert outcome.strategy == "abridge"
    assert results["read"].id in {edit.target_id for edit in outcome.edits}
    assert_sendable((*talk.path, *outcome.entries("manual", 5_000)))


def fails(request: StrategyRequest):
    raise ValueError(f"of {len(request.messages)}")


def leaves(request: StrategyRequest):
    raise SystemExit(3)


def repeats(request: StrategyRequest):
    while True:
        yield request.messages[0].cut()


def invents(request: StrategyRequest):
    return [("first", "gone")]


def returns_nothing(request: StrategyRequest):
    return None


async def fails_later(request: StrategyRequest):
    raise KeyError("a")


@each_row(
    ("shorten", "why"),
    [
        (fails, "It failed with ValueError: of "),
        (leaves, "It failed with SystemExit: 3."),
        (repeats, "It found nothing to shorten."),
        (invents, "is no shorter form of a message that may change"),
        (returns_nothing, "It failed with TypeError"),
        (fails_later, "It failed with KeyError"),
    ],
)
def test_the_tiers_take_over_from_one_that_does_wrong(shorten, why: str) -> None:
    outcome = compacted("odd", (CompactionStrategy("odd", "does wrong", shorten),))
    assert outcome.strategy == "tiered"
    assert outcome.tokens_after < outcome.tokens_before
    assert outcome.note.startswith("odd: ")
    assert why in outcome.note
    assert "The tiers took over." in outcome.note


async def asks(request: StrategyRequest):
    said = await request.ask(f"Name what {request.focus or 'everything'} is about.")
    return [
        message.rewritten(f"{said} {message.position}")
        for message in request.messages
        if message.role == "assistant"
    ]


def test_it_may_ask_the_model_and_without_one_the_tiers_take_over() -> None:
    brought = (CompactionStrategy("asking", "asks", asks),)
    writer = Writer(["It is about the parser."])
    outcome = compacted("asking", brought, writer=writer, target=4_000)
    assert outcome.strategy == "asking"
    assert "It is about the parser." in str(outcome.edits[0].replacement)
    assert [request.messages[0].text for request in writer.requests] == [
        "Name what everything is about."
    ]
    assert "No model may be asked." in compacted("asking", brought).note


def test_a_name_that_nothing_brings_is_said_with_the_nearest_and_the_tiers_take_over() -> None:
    brought = (CompactionStrategy("abridge", "short", asks),)
    outcome = compacted("abrigde", brought)
    assert outcome.strategy == "tiered"
    assert "no compaction strategy 'abrigde'. Did you mean abridge?" in outcome.note
    assert "Available: tiered, hybrid, agent, abridge." in outcome.note


def kept_session(tmp_path: Path) -> str:
    store = SessionStore(tmp_path / "sessions", "none")
    with store.create(Header(id="1111", cwd=str(tmp_path / "here"))) as log:
        log.append_many(questions(30).path)
        return str(log.path)


def test_the_shell_and_a_conversation_compact_by_its_name(site: Path, tmp_path: Path) -> None:
    file = kept_session(tmp_path)

    def run(*argv: str, plugins: str = '["abridge-plugin"]', settings: str = ""):
        return call_with_packages(site, tmp_path, *argv, plugins=plugins, settings=settings)

    argv = ("compact", file, "--model", "none", "--json", "--target", "0.07")
    named = run(*argv, "--strategy", "abridge")
    chosen = run(*argv, settings='[compaction]\nstrategy = "abridge"\n')
    for done in (named, chosen):
        assert json.loads(done.stdout)["strategy"] == "abridge", done.stderr
    assert "abridge" in run("compact", "--help").stdout
    assert "abridge" in run("config", "show", "compaction.strategy").stdout
    assert "No plugin" not in run("config", "set", "compaction.strategy", "abridge").stderr
    unknown = run("config", "set", "compaction.strategy", "abrigde").stderr
    assert "No plugin brings abrigde. Available: tiered, hybrid, agent, abridge." in unknown
    without = run(*argv, plugins="[]", settings='[compaction]\nstrategy = "abridge"\n')
    assert json.loads(without.stdout)["strategy"] == "tiered"
    assert "no compaction strategy 'abridge'" in without.stderr
    refused = run(*argv, "--strategy", "abrigde")
    assert (refused.returncode, "Did you mean abridge?" in refused.stderr) == (2, True)
    argv = ("-m", "scripted/tour", "-r", file, "-p", "/compact --strategy abridge")
    talked = run_with_packages(site, tmp_path, *argv, plugins='["abridge-plugin"]')
    assert "abridge: " in talked.stdout + talked.stderr
    told = run("-m", "scripted/tour", "-p", "help", settings='[compaction]\nstrategy = "agnet"\n')
    assert "Did you mean agent?" in told.stderr
    assert "tiered compacts until you change it." in told.stderr
