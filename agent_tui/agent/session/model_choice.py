"""Changing the model of a conversation, or how much it thinks, from the next request on."""

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.opening import model_change, new_log
from agent_tui.events import AgentEvent, ModelChanged, Notice
from agent_tui.messages import ThinkingLevel
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import ThinkingLevelChangeEntry


def choose_model(
    conversation: Conversation, model: ModelRef, services: RuntimeServices
) -> tuple[AgentEvent, ...]:
    """Use `model`; what stopped automatic compaction with another one counts no more."""
    is_begun = bool(conversation.log.entries)
    if model != conversation.model:
        if is_begun:
            conversation.log.append(model_change(model))
        conversation.model = model
        conversation.model_info = services.model_info(model)
        if not is_begun:
            _restart_empty_log(conversation, services)
    conversation.breaker = conversation.breaker.after_success()
    conversation.left_by_compaction = 0
    changed = ModelChanged(model.name, conversation.model_info.window)
    return (changed, conversation.use_window(conversation.usage.used))


_GUESSED = (
    "Context window of {name} unknown; assuming {window:,} tokens. "
    'Set `window` under [models."{name}"] in your settings.'
)


async def learn_model(
    conversation: Conversation, services: RuntimeServices
) -> tuple[AgentEvent, ...]:
    """Take in what the model's own server says of it, its window above all."""
    known = await services.learn_model(conversation.model)
    events: list[AgentEvent] = []
    if known != conversation.model_info:
        conversation.model_info = known
        events.append(ModelChanged(conversation.model.name, known.window))
    if known.source == "guess" and known.window and conversation.told_guess != known.name:
        conversation.told_guess = known.name
        events.append(Notice("info", _GUESSED.format(window=known.window, name=known.name)))
    return tuple(events)


def choose_thinking(
    conversation: Conversation, level: ThinkingLevel, services: RuntimeServices
) -> tuple[AgentEvent, ...]:
    """Ask the model to think more or less."""
    is_begun = bool(conversation.log.entries)
    if level != conversation.thinking:
        if is_begun:
            conversation.log.append(ThinkingLevelChangeEntry(thinking_level=level))
        conversation.thinking = level
        if not is_begun:
            _restart_empty_log(conversation, services)
    return (Notice("info", f"Thinking: {level}"),)


def _restart_empty_log(conversation: Conversation, services: RuntimeServices) -> None:
    """Put the new model or thinking level into the header of a log nothing is in yet."""
    conversation.log.close()
    conversation.log = new_log(
        services, conversation.cwd, conversation.model, conversation.thinking
    )
