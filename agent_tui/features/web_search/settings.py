"""The settings of web search."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from agent_tui.config.addresses import check_address
from agent_tui.config.section import AT_ONCE, SettingsSection


def _check_url(text: str) -> str:
    return check_address(text) if text else text


class SearchSettings(SettingsSection):
    """``[search]``: where `web_search` sends its queries."""

    url: Annotated[str, AfterValidator(_check_url)] = Field(
        default="",
        description="SearXNG server that web_search asks, such as http://localhost:8080; empty: "
        "the provider of the model",
    )


class SearchSection(BaseModel):
    """The section of the settings."""

    search: Annotated[SearchSettings, AT_ONCE] = Field(
        default=SearchSettings(), description="Web search: who is asked"
    )
