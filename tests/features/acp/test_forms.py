"""What is asked in forms of an editor."""

from typing import Any, cast

import pytest
from acp import RequestError
from acp.schema import AcceptElicitationResponse, DeclineElicitationResponse

from agent_tui.commands.core.front import Choice, Listing, TextQuestion
from agent_tui.features.acp.editor import Outbox
from agent_tui.features.acp.questions import MOST_CHOICES, EditorForms
from agent_tui.tools.form import DECLINED, Elicitation, FormField, accept_form


class Client:
    """An editor that fills each form with `content`; with None it is left."""

    def __init__(self, content: dict[str, Any] | None) -> None:
        self.content = content
        self.message = ""
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.told: list[str] = []

    async def create_elicitation(self, message: str, mode: Any) -> Any:
        schema = mode.requested_schema
        self.message, self.properties, self.required = message, schema.properties, schema.required
        if self.content is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content=self.content)

    async def session_update(self, update: Any, **_more: Any) -> None:
        self.told.append(update.content.text.strip())


class Gone(Client):
    """An editor that does not know forms after all."""

    async def create_elicitation(self, message: str, mode: Any) -> Any:
        raise RequestError.method_not_found("elicitation/create")


def forms(client: Client) -> EditorForms:
    return EditorForms(Outbox(cast(Any, client), "s"))


def listing(count: int, typed: str = "") -> Listing[int]:
    choices = tuple(Choice(number, f"model {number}", details="quick") for number in range(count))
    return Listing("Which model?", choices, "none", typed)


@pytest.mark.parametrize("client", [Client(None), Gone({})])
async def test_what_is_left_has_no_answer(client: Client):
    asked = Elicitation("srv", "Who?", (FormField("who", "Who", "text"),))
    assert await forms(client).text(TextQuestion("Title", "", "", "stays")) is None
    assert await forms(client).pick(listing(2)) is None
    assert await forms(client).fill(asked) == DECLINED


async def test_a_text_is_asked_for_with_what_stands_there_and_what_empty_means():
    client = Client({"typed": " new "})
    assert await forms(client).text(TextQuestion("Title", "In the list", "old", "stays")) == "new"
    field = client.properties["typed"]
    assert (field.default, field.description) == ("old", "In the list. If empty: stays")


@pytest.mark.parametrize(
    ("content", "picked"),
    [({"chosen": "1"}, 1), ({"chosen": "0", "typed": "other"}, "other"), ({"chosen": "9"}, None)],
)
async def test_one_is_picked_or_typed(content: dict[str, str], picked: object):
    client = Client(content)
    assert await forms(client).pick(listing(2, "a model's name")) == picked
    assert client.properties["chosen"].one_of[0].title == "model 0: quick"
    assert (client.properties["typed"].title, client.required) == ("or a model's name", [])


async def test_a_long_list_says_what_of_it_is_not_shown():
    client = Client({"chosen": str(MOST_CHOICES - 1)})
    assert await forms(client).pick(listing(MOST_CHOICES + 3)) == MOST_CHOICES - 1
    assert "3 more" in client.message
    assert client.required == ["chosen"]


async def test_a_form_is_sent_as_the_server_takes_it_or_not_at_all():
    age = FormField("age", "Age", "integer", present="many", is_required=True, most=99)
    asked = Elicitation("srv", "How old?", (age, FormField("sure", "Sure", "yes or no")))
    client = Client({"age": 36, "sure": True, "more": "x"})
    assert await forms(client).fill(asked) == accept_form({"age": 36, "sure": True})
    assert (client.properties["age"].maximum, client.properties["age"].default) == (99, None)
    for wrong in ({"age": 100}, {"age": "old"}, {}):
        client = Client(wrong)
        form = forms(client)
        assert await form.fill(asked) == DECLINED
        await form._outbox.flush()  # pyright: ignore[reportPrivateUsage]
        assert client.told == ["Could not send the form to srv."]
