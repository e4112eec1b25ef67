"""What is said of ``local/NAME`` if no feature brings models on this machine."""

import pytest

from agent_tui.config import Settings
from agent_tui.errors import ConfigError
from agent_tui.messages import UserMessage
from agent_tui.providers import access
from agent_tui.providers.access import open_models
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.local_models import NoLocalModels
from agent_tui.providers.table import ModelTable

REF = ModelRef("local/smollm2")


async def test_without_local_models_their_provider_is_unknown() -> None:
    catalog = ModelCatalog(Settings(), {}, table=ModelTable({}), server_ports={})
    with pytest.raises(ConfigError, match="provider 'local' is unknown"):
        catalog.resolve(REF.name)
    assert catalog.local.default() is None
    assert catalog.default_model() is None
    assert await catalog.list_models() == ()
    assert (await catalog.learn(REF)).source == "guess"


async def test_a_session_with_a_local_model_is_told_so_too(monkeypatch) -> None:
    monkeypatch.setattr(access, "own_local_models", lambda *_: NoLocalModels())
    models = open_models(Settings(), {})
    with pytest.raises(ProviderError, match="provider 'local' is unknown"):
        async for _ in models.provider.stream(ModelRequest(REF, "", (UserMessage(content="hi"),))):
            pass
    await models.provider.aclose()
