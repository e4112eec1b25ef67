"""Commands about the running conversation: its turn, its model, what it may do."""

from typing import get_args

from agent_tui.config import PermissionMode
from agent_tui.errors import AgentTuiError
from agent_tui.messages import ThinkingLevel
from agent_tui.providers.base import ModelRef
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import command

THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
PERMISSION_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


@command()
async def abort(host: CommandHost, _argument: str) -> None:
    """Stop what runs; the partial reply is kept."""
    if not host.interrupt():
        host.say("Nothing is running.")


@command("<text>")
async def queue(host: CommandHost, argument: str) -> None:
    """Deliver a message before the next request of the running turn."""
    if argument:
        host.queue(argument)
    else:
        host.say("What should be queued? Write /queue and the message.", "warning")


@command(aliases=("continue",), refusal="A turn is running already. Use /queue to add to it.")
async def retry(host: CommandHost, _argument: str) -> None:
    """Go on after an error, an interruption or a reply that was cut off."""
    host.start(host.runtime.continue_turn())


@command(
    "[name]",
    refusal="Cannot change the model while responding. Use /abort first.",
    choices=lambda host: (host.runtime.model.name,),
)
async def model(host: CommandHost, argument: str) -> None:
    """Choose the model of the next requests."""
    if argument:
        try:
            chosen = await _model_named(host, argument)
        except AgentTuiError as error:
            host.say(str(error), "error")
            return
    elif not host.runtime.model.name and await host.set_up_model():
        return
    else:
        from agent_tui.ui.screens.model_picker import ModelPicker

        picked = await host.ask(ModelPicker(host.models, host.runtime.model))
        if picked is None:
            return
        chosen = picked
    host.show_events(host.runtime.set_model(chosen))
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


@command("[level]", choices=lambda _host: THINKING_LEVELS)
async def thinking(host: CommandHost, argument: str) -> None:
    """Let the model think more or less before it answers."""
    if not argument:
        host.say(f"Thinking is {host.runtime.thinking}. Use /thinking {'|'.join(THINKING_LEVELS)}.")
        return
    for level in THINKING_LEVELS:
        if level == argument.lower():
            host.show_events(host.runtime.set_thinking(level))
            return
    host.say(f"No level {argument}: use one of {', '.join(THINKING_LEVELS)}.", "warning")


@command("[mode|remove RULE]", choices=lambda host: (*PERMISSION_MODES, *_removals(host)))
async def permissions(host: CommandHost, argument: str) -> None:
    """Show what asks for approval and what was decided, or change it."""
    if not argument:
        from agent_tui.ui.pages import permissions_page
        from agent_tui.ui.screens.page import PageScreen

        await host.ask(PageScreen(permissions_page(host.runtime.approvals)))
        return
    verb, _, rule_text = argument.partition(" ")
    if verb == "remove":
        _remove_rule(host, rule_text.strip())
        return
    for mode in PERMISSION_MODES:
        if mode == argument.lower():
            host.runtime.set_permission_mode(mode)
            host.show_events(())
            host.say(f"Permissions: {mode}")
            return
    host.say(f"No mode {argument}: use one of {', '.join(PERMISSION_MODES)}.", "warning")


def _removals(host: CommandHost) -> tuple[str, ...]:
    """What would take back each rule that was made by answering an approval."""
    rules = host.runtime.approvals.rules
    return tuple(f"remove {rule}" for rule in rules if rule.source in ("session", "project"))


def _remove_rule(host: CommandHost, text: str) -> None:
    approvals = host.runtime.approvals
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

    await host.ask(
        PageScreen(tools_page(host.runtime.conversation.tools, host.runtime.toolbox.specs))
    )


@command()
async def memory(host: CommandHost, _argument: str) -> None:
    """List the AGENTS.md files the model is given, and those it is not."""
    from agent_tui.ui.pages import memory_page
    from agent_tui.ui.screens.page import PageScreen

    runtime = host.runtime
    page = memory_page(runtime.context_files, runtime.withheld_files, runtime.cwd)
    await host.ask(PageScreen(page))


@command()
async def cost(host: CommandHost, _argument: str) -> None:
    """Say how many tokens and dollars this session took."""
    totals, info = host.runtime.totals, host.runtime.model_info
    text = f"{totals.input_tokens:,} tokens in, {totals.output_tokens:,} out"
    if totals.cost_usd or info.input_price is not None:
        text += f", ${totals.cost_usd:.4f}"
    else:
        text += f"; the price of {host.runtime.model.name} is not known"
    host.say(text + ".")
