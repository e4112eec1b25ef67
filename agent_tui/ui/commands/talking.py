"""Commands about the running conversation: its turn, its model, what it may do."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

from agent_tui.config import PermissionMode
from agent_tui.errors import AgentTuiError
from agent_tui.messages import ThinkingLevel
from agent_tui.providers.base import ModelRef
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.offers import model_choices
from agent_tui.ui.commands.registry import Choice, command

THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
PERMISSION_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


@command()
async def abort(host: CommandHost, _argument: str) -> None:
    """Stop what runs; what came is kept."""
    if not host.interrupt():
        host.say("Nothing is running.")


@command("<text>")
async def queue(host: CommandHost, argument: str) -> None:
    """Say something to the running turn."""
    if argument:
        host.queue(argument)
    else:
        host.say("What should be queued? Write /queue and the message.", "warning")


@command(aliases=("continue",), refusal="A turn is running already. Use /queue to add to it.")
async def retry(host: CommandHost, _argument: str) -> None:
    """Go on after an error or an interruption."""
    if not host.runtime.conversation.log.entries:
        host.say("There is nothing to go on with yet.", "warning")
        return
    if not host.runtime.conversation.model.name and not await host.set_up_model():
        return
    host.start(host.runtime.continue_turn())


@command(
    "[name]",
    refusal="Cannot change the model while responding. Use /abort first.",
    choices=model_choices,
)
async def model(host: CommandHost, argument: str) -> None:
    """Choose the model of the next requests."""
    if argument:
        try:
            chosen = await _model_named(host, argument)
        except AgentTuiError as error:
            host.say(str(error), "error")
            return
    elif not host.runtime.conversation.model.name and await host.set_up_model():
        return
    else:
        from agent_tui.ui.screens.model_picker import ModelPicker

        picked = await host.ask(
            ModelPicker(host.models, host.runtime.conversation.model, host.known_models)
        )
        if picked is None:
            return
        chosen = picked
    host.show_events(host.runtime.set_model(chosen))
    await asyncio.to_thread(host.known_models.chose, chosen)
    host.say(f"Model: {chosen.name}")
    host.show_events(await host.runtime.refresh_usage())


async def _model_named(host: CommandHost, name: str) -> ModelRef:
    """The model that `name` means; running servers are asked before it is taken for unknown.

    Raises:
        AgentTuiError: there is none.
    """
    try:
        return host.models.resolve(name)
    except AgentTuiError:
        await host.models.found()
        return host.models.resolve(name)


@command(
    "[level]", choices=lambda host: _marked(THINKING_LEVELS, host.runtime.conversation.thinking)
)
async def thinking(host: CommandHost, argument: str) -> None:
    """Let the model think more or less."""
    if not argument:
        present, levels = host.runtime.conversation.thinking, "|".join(THINKING_LEVELS)
        host.say(f"Thinking is {present}. Use /thinking {levels}.")
        return
    for level in THINKING_LEVELS:
        if level == argument.lower():
            host.show_events(host.runtime.set_thinking(level))
            return
    host.say(f"No level {argument}: use one of {', '.join(THINKING_LEVELS)}.", "warning")


@command(
    "[mode|remove RULE]",
    choices=lambda host: (
        *_marked(PERMISSION_MODES, host.runtime.conversation.approvals.mode),
        *_removals(host),
    ),
)
async def permissions(host: CommandHost, argument: str) -> None:
    """Show or change what asks for approval."""
    if not argument:
        from agent_tui.ui.pages import permissions_page
        from agent_tui.ui.screens.page import PageScreen

        await host.ask(PageScreen(permissions_page(host.runtime.conversation.approvals)))
        return
    verb, _, rule_text = argument.partition(" ")
    if verb == "remove":
        _remove_rule(host, rule_text.strip())
        return
    for mode in PERMISSION_MODES:
        if mode == argument.lower():
            host.runtime.conversation.approvals.mode = mode
            host.show_events(())
            host.say(f"Permissions: {mode}")
            return
    host.say(f"No mode {argument}: use one of {', '.join(PERMISSION_MODES)}.", "warning")


def _marked(names: Iterable[str], present: str) -> tuple[Choice, ...]:
    """`names`, the present one said to be so."""
    return tuple(Choice(name, "in use" if name == present else "") for name in names)


def _removals(host: CommandHost) -> tuple[str, ...]:
    """What would take back each rule that was made by answering an approval."""
    rules = host.runtime.conversation.approvals.rules
    return tuple(f"remove {rule}" for rule in rules if rule.source in ("session", "project"))


def _remove_rule(host: CommandHost, text: str) -> None:
    approvals = host.runtime.conversation.approvals
    meant = [rule for rule in approvals.rules if str(rule) == text]
    if not meant:
        known = ", ".join(removal.removeprefix("remove ") for removal in _removals(host))
        host.say(f"No rule {text or 'named'}. Those that can be removed: {known or 'none'}.")
        return
    try:
        for rule in meant:
            approvals.remove_rule(rule)
    except AgentTuiError as error:
        host.say(str(error), "error")
        return
    host.say(f"Removed: {text}")


@command()
async def tools(host: CommandHost, _argument: str) -> None:
    """List the tools the model has."""
    from agent_tui.ui.pages import tools_page
    from agent_tui.ui.screens.page import PageScreen

    conversation = host.runtime.conversation
    page = tools_page(conversation.tools, host.runtime.services.toolbox.specs)
    tokens = conversation.services.counter.count_tools(conversation.tools)
    title = f"{page.title} · about {tokens:,} tokens of every request"
    await host.ask(PageScreen(replace(page, title=title)))


@command()
async def cost(host: CommandHost, _argument: str) -> None:
    """Say what this session took and cost."""
    from agent_tui.agent.spending import spending_of
    from agent_tui.ui.cost_lines import cost_lines

    runtime = host.runtime

    def has_price(name: str) -> bool:
        ref = ModelRef(name)
        runs_here = ref.provider in ("local", "scripted")
        return runs_here or host.models.info(ref).input_price is not None

    spending = spending_of(runtime.conversation.log)
    host.say(
        "\n".join(
            cost_lines(
                spending, runtime.conversation.totals, runtime.conversation.model.name, has_price
            )
        )
    )
