"""The curated context that the page on compaction shows is what the answer beside it makes."""

import re
from pathlib import Path

from agent_tui.compaction.request import Asking, CompactionRequest, ContextSizes
from agent_tui.config import CompactionSettings
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.sessions.context import build_context
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import Writer, compact
from tests.support.talk import Talk

_PAGE = Path(__file__).parents[3] / "docs/pages/compaction.md"
_BLOCK = re.compile(r"^```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_MODEL = ModelRef("scripted/one")
_ORDERS = '''\
"""Orders and what they cost."""

from dataclasses import dataclass
from decimal import Decimal

RATES = {"DE": Decimal("0.19"), "FR": Decimal("0.20")}


@dataclass(frozen=True)
class Order:
    country: str
    amounts: tuple[Decimal, ...]
    coupon: Decimal = Decimal(0)


def net(order: Order) -> Decimal:
    return sum(order.amounts, Decimal(0)) - order.coupon


def total(order: Order) -> Decimal:
    return net(order) * (1 + RATES[order.country])
'''
_TESTS = """\
from decimal import Decimal

from orders import Order, total


def test_a_coupon_lowers_the_total():
    order = Order("DE", (Decimal(100),), coupon=Decimal(50))
    assert total(order) == Decimal("59.50")
"""


_OLD = "sum(order.amounts, Decimal(0)) - order.coupon"
_NEW = f"max({_OLD}, Decimal(0))"


def _numbered(text: str) -> str:
    return "".join(f"{number:>6}\t{line}\n" for number, line in enumerate(text.splitlines(), 1))


def _session() -> Talk:
    talk = Talk()
    talk.user("A coupon above the price must not make the total negative. Never round amounts.")
    talk.tool("ls", {"path": "."}, "\n".join(f"module_{number}.py" for number in range(150)))
    talk.tool("read", {"path": "orders.py"}, _numbered(_ORDERS))
    talk.tool("read", {"path": "test_orders.py"}, _numbered(_TESTS))
    talk.tool("bash", {"command": "pytest -q"}, ".\n1 passed in 0.02s")
    talk.tool(
        "edit",
        {
            "path": "orders.py",
            "edits": [
                {"old": _OLD, "new": _NEW},
            ],
        },
        "Edited orders.py (1 replacement).",
    )
    talk.tool("bash", {"command": "pip list"}, "\n".join(f"package-{n}  1.{n}" for n in range(300)))
    talk.reply("A net price below zero is zero now. Next I write the test for it.")
    return talk


async def test_the_page_shows_what_becomes_of_the_answer(counter: TokenCounter) -> None:
    blocks = [found["text"] for found in _BLOCK.finditer(_PAGE.read_text("utf-8"))]
    answer = next(block for block in blocks if block.startswith("<notes>"))
    talk = _session()
    request = CompactionRequest(
        path=talk.path,
        previous=None,
        model=_MODEL,
        cwd=Path("/project"),
        settings=CompactionSettings(),
        on_disk={"orders.py": _ORDERS.replace(_OLD, _NEW), "test_orders.py": _TESTS}.get,
        sizes=ContextSizes(window=100_000, used=6_000, target=1_200),
        asking=Asking(
            live=ModelRequest(
                model=_MODEL,
                system="",
                messages=tuple(item.message for item in build_context(talk.path).messages),
            )
        ),
        occasion="new session",
    )
    writer = Writer([answer])
    result = await compact(writer, counter, request)
    asked = writer.requests[0].messages[-1].text
    inventory = asked[asked.index("#1 ") :]
    assert f"{inventory}\n" in blocks
    assert f"{result.summary}\n" in blocks
