import json
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from tests.support.tool_calls import call_tool


def pdf(*pages: str) -> bytes:
    """A document with a line of text on each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids: list[str] = []
    for text in pages:
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        drawn = f"BT /F 12 Tf 20 100 Td ({text}) Tj ET".encode()
        font = b"<< /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font %b >> "
            b"/Contents %d 0 R >>" % (font, number + 1)
        )
        objects.append(b"<< /Length %d >> stream\n%b\nendstream" % (len(drawn), drawn))
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(pages)} >>".encode()
    written, offsets = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%btrailer << /Size %d /Root 1 0 R >>\n" % (
        size, table, size,
    )  # fmt: skip
    return written + end + b"startxref\n%d\n%%%%EOF" % len(written)


async def test_a_pdf_comes_as_the_text_of_its_pages(context: ToolContext, workspace: Path):
    (workspace / "a.pdf").write_bytes(pdf("buy milk", "and bread"))
    output = await call_tool(context, "read", {"path": "a.pdf"})
    assert "1\t[page 1 of 2]\n2\tbuy milk" in output.for_model
    assert "[page 2 of 2]" in output.for_model
    assert "and bread" in output.for_model
    part = await call_tool(context, "read", {"path": "a.pdf", "offset": 2, "limit": 1})
    assert part.for_model.startswith("2\tbuy milk\n[lines 2-2 of 5")


@pytest.mark.parametrize(
    ("content", "why"),
    [(pdf(""), "1 page without text"), (b"%PDF-1.4\nbroken", "cannot be read")],
)
async def test_a_pdf_without_text_says_so(
    context: ToolContext, workspace: Path, content: bytes, why: str
):
    (workspace / "a.pdf").write_bytes(content)
    with pytest.raises(ToolError, match=why):
        await call_tool(context, "read", {"path": "a.pdf"})


async def test_a_notebook_comes_as_its_cells_and_what_they_printed(
    context: ToolContext, workspace: Path
):
    cells = [
        {"cell_type": "markdown", "source": ["# Sums\n", "of two"]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [
                {"data": {"text/plain": ["2"], "image/png": "x" * 9_000}},
                {"text": ["y" * 3_000]},
                {"ename": "ValueError", "evalue": "bad"},
            ],
        },
    ]
    (workspace / "a.ipynb").write_text(json.dumps({"cells": cells}))
    output = await call_tool(context, "read", {"path": "a.ipynb"})
    lines = [line.partition("\t")[2] for line in output.for_model.split("\n")]
    assert lines[:7] == ["[cell 1: markdown]", "# Sums", "of two", "", "[cell 2: code]", "1 + 1",
                         "[output]"]  # fmt: skip
    assert lines[7] == "2"
    assert "[1000 more characters]" in lines
    assert "ValueError: bad" in lines
    assert "xxx" not in output.for_model


async def test_what_is_no_notebook_comes_as_its_text(context: ToolContext, workspace: Path):
    (workspace / "a.ipynb").write_text("{}")
    assert (await call_tool(context, "read", {"path": "a.ipynb"})).for_model == "1\t{}"
