"""Commands about the talk itself: the model, what it may do, what it cost, the way out."""

from functools import partial
from typing import get_args

from agent_tui.agent.loop_plan import parse_loop
from agent_tui.config import PermissionMode
from agent_tui.errors import AgentTuiError
from agent_tui.messages import ThinkingLevel
from agent_tui.plain.command_table import command
from agent_tui.plain.host import PlainHost
from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.safe_text import safe_output
from agent_tui.sessions.listing.summary import one_line

_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)
_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
_MOST_DECISIONS = 10
_MOST_MODELS = 30


@command("[name]")
def model(host: PlainHost, argument: str) -> None:
    """Choose the model of the next requests."""
    if argument:
        choose_model(host, _model_named(host, argument))
        return
    offer_models(host, is_wanted=True)


def offer_models(host: PlainHost, *, is_wanted: bool = False) -> None:
    """Let the person choose among the models that can be used at once.

    Args:
        host: Where to ask and to tell.
        is_wanted: Ask for a name also where there are none.
    """
    host.say("Looking for models that can be used at once.")
    found = host.agent.wait(host.models.found())[:_MOST_MODELS]
    if not found:
        host.say("There are none: no key is set, and no model server answers here.")
        if not is_wanted:
            return
    picked = host.asker.numbered("a model's name", [model_row(each) for each in found])
    match picked:
        case int():
            choose_model(host, found[picked].ref)
        case str():
            choose_model(host, _model_named(host, picked))
        case None:
            pass


def model_row(found: FoundModel) -> str:
    """A model in one line: its name, its window, where it is."""
    facts = (f"window {found.info.window:,} tokens", found.via, found.state)
    return f"{found.ref.name}, {', '.join(filter(None, facts))}"


def choose_model(host: PlainHost, chosen: ModelRef) -> None:
    """Use `chosen` from the next request on."""
    host.show(host.agent.call(lambda: host.runtime.set_model(chosen)))
    host.say(f"Model: {chosen.name}")
    host.begin_warming()
    host.refresh_usage()


def _model_named(host: PlainHost, name: str) -> ModelRef:
    """The model that `name` means; running servers are asked before it is taken for unknown.

    Raises:
        AgentTuiError: There is none.
    """
    try:
        return host.models.resolve(name)
    except AgentTuiError:
        host.agent.wait(host.models.found())
        return host.models.resolve(name)


@command("[level|show|hide]")
def thinking(host: PlainHost, argument: str) -> None:
    """Let the model think more or less, and show or hide what it thinks."""
    wanted = argument.lower()
    if wanted in ("show", "hide"):
        host.narrator.shows_thinking = wanted == "show"
        host.say("Thinking is shown." if wanted == "show" else "Thinking is hidden.")
        return
    for level in _LEVELS:
        if level == wanted:
            host.show(host.agent.call(partial(host.runtime.set_thinking, level)))
            break
    present = host.runtime.conversation.thinking
    host.say(f"Thinking is {present}. There are {', '.join(_LEVELS)}, show and hide.")


@command("[mode|remove RULE]")
def permissions(host: PlainHost, argument: str) -> None:
    """Say what asks for approval and what was decided, or change the mode."""
    runtime = host.runtime
    for mode in _MODES:
        if mode == argument.lower():
            runtime.conversation.approvals.mode = mode
            host.say(f"Permission mode: {mode}")
            return
    verb, _, rule_text = argument.partition(" ")
    if verb == "remove":
        _remove_rule(host, rule_text.strip())
        return
    if argument:
        host.say(f"There is no mode {argument}: use one of {', '.join(_MODES)}.")
        return
    host.say(
        f"Permission mode: {runtime.conversation.approvals.mode}. There are {', '.join(_MODES)}."
    )
    for rule in runtime.conversation.approvals.rules:
        host.say(f"Rule: {rule.decision} {rule}, from {rule.source}.")
    for decided in runtime.conversation.approvals.log.latest[:_MOST_DECISIONS]:
        what = f"{decided.tool}, {one_line(decided.what)}"
        host.say(f"Decided: {decided.decision}, {what}, by {decided.by}.")


def _remove_rule(host: PlainHost, text: str) -> None:
    """Take back a rule that was made by answering a question.

    Raises:
        ConfigError: It cannot be taken out of the project's rules.
    """
    approvals = host.runtime.conversation.approvals
    made = [rule for rule in approvals.rules if rule.source in ("session", "project")]
    meant = [rule for rule in made if str(rule) == text]
    if not meant:
        known = ", ".join(map(str, made)) or "none"
        host.say(f"There is no rule {text or 'named'}. Those that can be removed: {known}.")
        return
    for rule in meant:
        approvals.remove_rule(rule)
    host.say(f"Removed: {text}")


@command()
def tools(host: PlainHost, _argument: str) -> None:
    """List the tools the model has."""
    for spec in host.runtime.conversation.tools:
        sentence, dot, _ = one_line(spec.description).partition(". ")
        host.say(f"{spec.name}: {sentence}{dot.strip()}")


@command()
def memory(host: PlainHost, _argument: str) -> None:
    """List the AGENTS.md files the model is given, and those it is not."""
    runtime = host.runtime
    for file in runtime.conversation.context_files:
        host.say(f"In force: {file.path}")
    for withheld in runtime.conversation.withheld_files:
        host.say(f"Not in force, as {withheld.why}: {withheld.path}")
    if not runtime.conversation.context_files and not runtime.conversation.withheld_files:
        host.say("None. Write AGENTS.md in this folder to tell the model how to work here.")


@command()
def cost(host: PlainHost, _argument: str) -> None:
    """Say how many tokens and dollars this session took."""
    totals, info = host.runtime.conversation.totals, host.runtime.conversation.model_info
    text = f"{totals.input_tokens:,} tokens in, {totals.output_tokens:,} out"
    if totals.cost_usd or info.input_price is not None:
        host.say(f"{text}, {totals.cost_usd:.4f} dollars.")
    else:
        host.say(f"{text}; the price is not known.")


@command(aliases=("continue",))
def retry(host: PlainHost, _argument: str) -> None:
    """Go on after an error, an interruption or a reply that was cut off."""
    if host.has_model():
        host.run(host.runtime.continue_turn)


@command("<N | over a,b,c> [compress] <prompt>")
def loop(host: PlainHost, argument: str) -> None:
    """Run a prompt N times, or once for each item."""
    plan = parse_loop(argument)
    if host.has_model():
        host.run(partial(host.runtime.loop, plan))


@command()
def output(host: PlainHost, _argument: str) -> None:
    """Print the whole output of the last tool or command."""
    host.say(safe_output(host.narrator.last_output).rstrip() or "There was no output.")


@command(aliases=("quit",))
def exit_(host: PlainHost, _argument: str) -> None:
    """Leave; the session can be resumed."""
    host.leaves = True
