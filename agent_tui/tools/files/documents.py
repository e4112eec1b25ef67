"""Files that contain text without being plain text: PDF documents and notebooks."""

import json
import logging
from io import BytesIO
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject

_PDF = b"%PDF"
_MAX_PAGES = 300
"""The most pages read; a page takes about 50 ms."""
_MAX_OUTPUT_CHARS = 2_000
"""Characters of each output of a notebook cell."""


def is_document(path: Path, beginning: bytes) -> bool:
    """Whether the file at `path`, with this beginning, may be a PDF document or a notebook."""
    return beginning.startswith(_PDF) or path.suffix == ".ipynb"


def document_text(path: Path, content: bytes) -> str | None:
    """The text of a PDF document or a notebook; None for any other file.

    Raises:
        ToolError: It is one, but its text cannot be extracted.
    """
    if content.startswith(_PDF):
        return _pdf_text(path.name, content)
    return _notebook_text(content) if path.suffix == ".ipynb" else None


def _pdf_text(name: str, content: bytes) -> str:
    from pypdf import PdfReader  # 150 ms, and few sessions need it
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports every odd file
    try:
        pages = PdfReader(BytesIO(content)).pages
        count = len(pages)
        texts = [page.extract_text().strip() for page in pages[:_MAX_PAGES]]
    except (PyPdfError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ToolError(f"{name} is a PDF that cannot be read: {error}.") from error
    except (AttributeError, NotImplementedError, OSError, RecursionError) as error:
        raise ToolError(f"{name} is a PDF that cannot be read.") from error
    if not any(texts):
        raise ToolError(f"{name} is a PDF of {count} page{'s' * (count != 1)} without text.")
    shown = [f"[page {number} of {count}]\n{text}" for number, text in enumerate(texts, 1)]
    if count > _MAX_PAGES:
        shown.append(f"[pages {_MAX_PAGES + 1}-{count} are not shown]")
    return "\n\n".join(shown)


def _notebook_text(content: bytes) -> str | None:
    """The cells and their output; None if it is not a notebook."""
    try:
        notebook = cast(JsonValue, json.loads(content))
    except (ValueError, RecursionError):
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return None
    found = [cell for cell in cells if isinstance(cell, dict)]
    return "\n\n".join(_cell_text(number, cell) for number, cell in enumerate(found, 1))


def _cell_text(number: int, cell: JsonObject) -> str:
    outputs = cell.get("outputs")
    listed = outputs if isinstance(outputs, list) else []
    texts = [_output_text(output) for output in listed if isinstance(output, dict)]
    parts = [f"[cell {number}: {cell.get('cell_type')}]", _join_lines(cell.get("source"))]
    return "\n".join([*parts, *(f"[output]\n{text}" for text in texts if text)]).rstrip()


def _output_text(output: JsonObject) -> str:
    data = output.get("data")
    if isinstance(data, dict):
        text = _join_lines(data.get("text/plain"))
    elif "ename" in output:
        text = f"{output['ename']}: {output.get('evalue')}"
    else:
        text = _join_lines(output.get("text"))
    text = text.rstrip()
    left = len(text) - _MAX_OUTPUT_CHARS
    return f"{text[:_MAX_OUTPUT_CHARS]}\n[{left} more characters]" if left > 0 else text


def _join_lines(lines: JsonValue) -> str:
    """The text of a notebook field, which is a string or a list of lines."""
    if isinstance(lines, list):
        return "".join(line for line in lines if isinstance(line, str))
    return lines if isinstance(lines, str) else ""
