"""A question beside the conversation: answered from what the model knows, and not kept there."""

from dataclasses import replace

from agent_tui.agent.conversation import Conversation
from agent_tui.compaction.model_client import RequestTracker, uncounted
from agent_tui.errors import AgentTuiError
from agent_tui.messages import UserMessage
from agent_tui.secret_text import mask_values
from agent_tui.sessions.replay.usage import AgentRun

_ASKED = """\
A side question; the work continues as if it had not been asked. Answer briefly, in text only, from
what you already know. You cannot call tools for it.

{question}"""
_PHASE = "answering a side question"


async def answer_aside(conversation: Conversation, question: str) -> str:
    """The model's answer to `question`, with all that it sees of `conversation`.

    Nothing of it joins the context. It may be asked while a turn runs; what it took is recorded
    in the session and counted.

    Raises:
        ProviderError: the request failed for good.
        AgentTuiError: there was no answer in words.
    """
    client, request = conversation.services.client, conversation.request()
    asked = UserMessage(content=_ASKED.format(question=question))
    tracker = RequestTracker(lambda _phase, _chars: None, uncounted)
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
