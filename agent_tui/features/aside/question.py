"""Ask the model something beside the conversation."""

from dataclasses import replace

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.messages import UserMessage
from agent_tui.providers.client import RequestTracker, ignore_usage, unseen
from agent_tui.safe_text import printable_line
from agent_tui.secret_text import mask_values
from agent_tui.sessions.replay.notes import AgentRun

_ASKED = """\
A side question; the work continues as if it had not been asked. Answer briefly, in text only, from
what you already know. You cannot call tools for it.

{question}"""
_PHASE = "answering a side question"


async def ask_aside(runtime: AgentRuntime, question: str) -> str:
    """Ask a question beside the conversation, also during a turn; returns the model's answer.

    Raises:
        AgentTuiError: There is no answer, it was stopped, or the session is read-only.
    """
    runtime.sessions.require_writable()
    answer = await runtime.run_beside(_answer(runtime.conversation, question))
    if answer is None:
        raise AgentTuiError(f"Stopped before this was answered: {printable_line(question)}")
    return answer


async def _answer(conversation: Conversation, question: str) -> str:
    """Ask a question with all that the model sees of `conversation`; returns its answer.

    Question and answer stay out of the context. This also works during a turn; the usage is
    recorded in the session and counted.

    Raises:
        ProviderError: The request failed for good.
        AgentTuiError: The answer has no text.
    """
    client, request = conversation.services.client, conversation.request()
    asked = UserMessage(content=_ASKED.format(question=question))
    tracker = RequestTracker(unseen, ignore_usage)
    try:
        aside = replace(request, messages=(*request.messages, asked))
        reply = await client.ask(aside, _PHASE, tracker)
    finally:
        if tracker.total is not None:
            model = conversation.model.name
            conversation.count_run(
                AgentRun(session="", model=model, requests=1, usage=tracker.total)
            )
    if not reply.text.strip():
        raise AgentTuiError(
            "The model gave no answer.", "If it needs tools, ask in the conversation."
        )
    return mask_values(reply.text.strip(), conversation.services.secrets)
