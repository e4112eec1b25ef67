"""Who is asked what stays: whom a feature brings, or nobody."""

from typing import cast

import pytest

from agent_tui.compaction.candidates import ModelLookup
from agent_tui.compaction.curation import choosing
from agent_tui.feature import Feature
from agent_tui.providers.client import ModelClient
from agent_tui.tokens import TokenCounter


@pytest.fixture
def client() -> ModelClient:
    return cast(ModelClient, object())


@pytest.fixture
def models() -> ModelLookup:
    return cast(ModelLookup, object())


def test_a_feature_brings_who_asks(client: ModelClient, models: ModelLookup):
    counter = TokenCounter()
    assert choosing.own_curator(client, counter, models) is not None
    assert choosing.own_curator(None, counter, models) is None


def test_without_the_feature_code_decides_alone(
    client: ModelClient, models: ModelLookup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(choosing, "own_features", lambda: (Feature("other"),))
    assert choosing.own_curator(client, TokenCounter(), models) is None
