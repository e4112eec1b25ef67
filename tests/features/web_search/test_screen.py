"""A search on the screen: a question, then a row with links."""

from pathlib import Path

import pytest

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.web_search.settings import SearchSettings
from tests.support.search_server import PAGE, SearchServer
from tests.ui.app_support import running_app


@pytest.mark.thorough
async def test_after_a_yes_the_row_counts_the_links_and_unfolds_them(
    tmp_path: Path, server: SearchServer
):
    search = call("c1", "web_search", query="what is new?")
    replies = (Reply(tool_calls=(search,)), Reply(text="Read it."))
    async with running_app(tmp_path, *replies, approval_quiet_s=3_600.0) as ui:
        services = ui.runtime.conversation.services
        section = {"search": SearchSettings(url=server.url)}
        services.settings = services.settings.model_copy(update=section)
        await ui.write("What is new?")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.approval.display, "nothing is asked")
        ui.approval.arm()
        await ui.pilot.press("a")
        await ui.until(lambda: not ui.is_running, "the turn goes on")
        await ui.pilot.pause()
        assert "web_search what is new?  2 links" in ui.drawn_chat
        await ui.pilot.press("ctrl+o")
        await ui.until(lambda: PAGE in ui.drawn_chat, "the links are not shown")
