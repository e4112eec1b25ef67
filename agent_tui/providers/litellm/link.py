"""What the provider process lends to wires: HTTP, litellm, the table; only this names litellm."""

import asyncio
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any, Never, Protocol, TypeVar, cast

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.accounts.account import Account
from agent_tui.providers.litellm.listening import Listener, hear_every_client
from agent_tui.providers.table import bundled_entry
from agent_tui.providers.wires.base import Address, InTime, NotSignedInError
from agent_tui.providers.wires.litellm_module import LiteLlm

_T = TypeVar("_T")

_QUIET_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio")


class EventClient(Protocol):
    """See `event_stream.HttpClient`."""

    def events(
        self, address: Address, body: JsonObject, in_time: InTime
    ) -> AsyncGenerator[JsonObject, None]:
        """See `event_stream.HttpClient.events`."""
        ...


class Shared:
    """What all requests of the process share, each made when the first one needs it."""

    def __init__(self) -> None:
        self._loading: asyncio.Future[LiteLlm] | None = None
        self._opening: asyncio.Future[EventClient] | None = None
        self._known: dict[str, Mapping[str, JsonValue]] = {}

    async def litellm(self) -> LiteLlm:
        """The module; its import takes seconds."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(None, _load_litellm)
        return await asyncio.shield(self._loading)

    async def client(self) -> EventClient:
        """The HTTP client; its import and its certificates take half a second."""
        if self._opening is None:
            self._opening = asyncio.get_running_loop().run_in_executor(None, _new_client)
        return await asyncio.shield(self._opening)

    async def known(self, model: str) -> Mapping[str, JsonValue]:
        """What litellm's table says of `model`."""
        if model not in self._known:
            self._known[model] = await asyncio.to_thread(bundled_entry, model)
        return self._known[model]


class RequestLink:
    """The `Link` of one request."""

    def __init__(self, shared: Shared, listener: Listener) -> None:
        self._shared = shared
        self._listener = listener

    @property
    def environ(self) -> Mapping[str, str]:
        """See `Link.environ`."""
        return os.environ

    async def known(self, model: str) -> Mapping[str, JsonValue]:
        """See `Link.known`."""
        return await self._shared.known(model)

    async def litellm(self) -> LiteLlm:
        """See `Link.litellm`."""
        return await self._shared.litellm()

    async def open_http(self) -> None:
        """See `Link.open_http`."""
        await self._shared.client()

    async def events(self, address: Address, body: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """See `Link.events`."""
        client = await self._shared.client()
        self._listener.asking(address.url)
        async with contextlib.aclosing(client.events(address, body, self.in_time)) as events:
            async for event in events:
                yield event

    async def renew_token(self, account: Account) -> None:
        """See `Link.renew_token`. litellm waits for servers, so a thread does it."""
        await self.litellm()
        await asyncio.to_thread(_renew_token, account)

    async def in_time(self, awaitable: Awaitable[_T]) -> _T:
        """See `Link.in_time`.

        Raises:
            IdleTimeoutError: it took longer.
        """
        return await self._listener.in_time(awaitable)


def _load_litellm() -> LiteLlm:
    """Import litellm without its network fetch, its ``.env`` file and its chatter."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Names with llama-2, command-r and others make it count by a tokenizer that it fetches.
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # "DEV" reads a .env file in a folder above litellm
    # A model that draws a table repeats itself; stopping it is the person's decision.
    os.environ["REPEATED_STREAMING_CHUNK_LIMIT"] = str(10**9)
    import litellm

    module = cast(LiteLlm, litellm)
    module.suppress_debug_info = True
    module.disable_hf_tokenizer_download = True
    # Copilot takes instructions as such now; else they stand there as if the model had said them.
    module.disable_copilot_system_to_assistant = True
    _forbid_hidden_retry()
    _forbid_templates_of_a_hub()
    _send_bodies_as_they_are()
    hear_every_client()
    for name in _QUIET_LOGGERS:  # their messages may quote the conversation
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return module


def _forbid_hidden_retry() -> None:
    """Have litellm's own HTTP client raise a lost connection instead of asking once more.

    That second request is paid for and lost: its client is closed before the reply is read.
    """
    http: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")

    async def refuse(*_arguments: object, **_named: object) -> Never:
        error = sys.exception()
        assert error is not None  # it is only called to handle one
        raise error

    http.AsyncHTTPHandler.single_connection_post_request = refuse


def _forbid_templates_of_a_hub() -> None:
    """Have litellm write prompts by its own templates; it would ask a hub for some models'."""
    hub: Any = importlib.import_module(
        "litellm.litellm_core_utils.prompt_templates.huggingface_template_handler"
    )

    def refuse(*_arguments: object, **_named: object) -> Never:
        raise LookupError("templates are not fetched")

    hub._get_httpx_client = hub.get_async_httpx_client = refuse


def _send_bodies_as_they_are() -> None:
    """Have OpenAI's client send a chat request's body without looking through all of it.

    It walks every message for values of its own types, at 600 messages for 100 ms a request.
    Ours are JSON already; what was not given is all it has to leave out.
    """
    chat: Any = importlib.import_module("openai.resources.chat.completions.completions")

    async def given(body: Mapping[str, object], _type: object) -> Mapping[str, object]:
        omitted = (chat.NotGiven, chat.Omit)
        return {name: value for name, value in body.items() if not isinstance(value, omitted)}

    chat.async_maybe_transform = given


def _renew_token(account: Account) -> None:
    """Have litellm renew the token of `account` if it ran out.

    Where it cannot, it would ask the person to sign in: in our log, and wait.

    Raises:
        NotSignedInError: it cannot.
    """
    module: Any = importlib.import_module(f"litellm.llms.{account.provider}.authenticator")

    ended = NotSignedInError(
        f"the {account.title} sign-in has expired, or its server cannot be reached"
    )

    def refuse(*_arguments: object, **_named: object) -> Never:
        raise ended

    for sign_in in ("_login", "_login_device_code", "_wait_for_access_token"):
        setattr(module.Authenticator, sign_in, refuse)
    authenticator = module.Authenticator()
    try:
        getattr(authenticator, "get_api_key", authenticator.get_access_token)()
    except Exception as error:
        if getattr(error, "status_code", None) == 401:
            raise ended from error
        raise


def _new_client() -> EventClient:
    from agent_tui.providers.litellm.event_stream import HttpClient

    return HttpClient()
