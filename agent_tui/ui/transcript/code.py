"""Source code as styled lines, coloured by Pygments in the colours of the theme."""

from collections.abc import Callable

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound
from rich.segment import Segment
from rich.style import Style

from agent_tui.ui.styled_lines import BLANK, Line, clip, pad_line, prefix_lines, wrap
from agent_tui.ui.theme.palette import Palette

_TokenType = type(Token)

_PIECE_LINES = 40
"""Lines coloured at one go: while a code block streams, only its last piece is redone.

A string or comment that spans two pieces loses its colour in the second; in return no code
block, however long, costs more than its last lines at each step.
"""

_CACHED_PIECES = 24
CODE_EDGE = "▏ "
"""Precedes each row of a code block."""

_NO_INK = Style()


class CodePainter:
    """Draws code blocks; remembers the pieces it drew last."""

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._styles: dict[object, Style] = {}
        self._inks: dict[object, Style] = {}
        self._inked: dict[Style, Style] = {}
        self._lexers: dict[str, Lexer | None] = {}
        self._file_lexers: dict[str, Lexer | None] = {}
        self._pieces: dict[tuple[str, str, int, bool], list[Line]] = {}

    def block(self, code: str, language: str, width: int) -> list[Line]:
        """Rows of a code block on its own quiet surface, filled to `width` cells."""
        rows: list[Line] = []
        source = clip(code).split("\n")
        for start in range(0, len(source), _PIECE_LINES):
            piece = "\n".join(source[start : start + _PIECE_LINES])
            rows.extend(self._piece(piece, language, width, is_first=start == 0))
        return rows

    def _piece(self, code: str, language: str, width: int, *, is_first: bool) -> list[Line]:
        key = (code, language, width, is_first)
        rows = self._pieces.get(key)
        if rows is None:
            if len(self._pieces) >= _CACHED_PIECES:
                del self._pieces[next(iter(self._pieces))]
            rows = self._pieces[key] = self._draw(code, language, width, is_first=is_first)
        return rows

    def _draw(self, code: str, language: str, width: int, *, is_first: bool) -> list[Line]:
        edge = (Segment(CODE_EDGE, self._palette.code_edge),)
        surface = self._palette.code
        rows: list[Line] = []
        for number, runs in enumerate(self.highlight(code, language)):
            inner = wrap(runs, width - 3, words=False) if runs else [BLANK]
            label = language if is_first and number == 0 else ""
            rows.extend(
                pad_line(row, width, self._palette.code_edge if label else surface, label)
                for row in prefix_lines(inner, edge)
            )
        return rows

    def highlight(self, code: str, language: str) -> list[list[Segment]]:
        """The coloured runs of each line; plain if the language is unknown."""
        return _colour_code(code, self._lexer(language), self._style, self._palette.code)

    def inks(self, code: str, file_name: str) -> list[list[Segment]]:
        """The runs of each line of a file in their colours alone, without a surface."""
        return _colour_code(code, self._file_lexer(file_name), self._ink, _NO_INK)

    def _lexer(self, language: str) -> Lexer | None:
        if language not in self._lexers:
            try:
                lexer = find_lexer_class_by_name(language)
                self._lexers[language] = lexer(stripnl=False, ensurenl=True)
            except ClassNotFound:
                self._lexers[language] = None
        return self._lexers[language]

    def _file_lexer(self, file_name: str) -> Lexer | None:
        if file_name not in self._file_lexers:
            found = find_lexer_class_for_filename(file_name)
            self._file_lexers[file_name] = found and found(stripnl=False, ensurenl=True)
        return self._file_lexers[file_name]

    def _style(self, token: object) -> Style:
        style = self._styles.get(token)
        if style is None:
            ink = self._ink(token)
            style = self._inked.setdefault(ink, self._palette.code + ink)
            self._styles[token] = style
        return style

    def _ink(self, token: object) -> Style:
        ink = self._inks.get(token)
        if ink is None:
            ink = self._inks[token] = self._nearest_ink(token)
        return ink

    def _nearest_ink(self, token: object) -> Style:
        """The palette's colour for a Pygments token: that of the nearest kind that has one."""
        palette = self._palette
        inks = (
            (Token.Comment, palette.comment),
            (Token.Keyword.Type, palette.type_name),
            (Token.Keyword, palette.keyword),
            (Token.Operator.Word, palette.keyword),
            (Token.Literal.String, palette.string),
            (Token.Literal.Number, palette.number),
            (Token.Literal, palette.string),
            (Token.Name.Function, palette.name),
            (Token.Name.Decorator, palette.name),
            (Token.Name.Class, palette.type_name),
            (Token.Name.Builtin, palette.type_name),
            (Token.Name.Exception, palette.type_name),
            (Token.Name.Tag, palette.keyword),
            (Token.Name.Attribute, palette.name),
            (Token.Generic.Deleted, palette.error),
            (Token.Generic.Inserted, palette.success),
            (Token.Generic.Heading, palette.strong),
        )
        for kind, ink in inks:
            if isinstance(token, _TokenType) and token in kind:
                return ink
        return _NO_INK


def _colour_code(
    code: str, lexer: Lexer | None, style_of: Callable[[object], Style], plain: Style
) -> list[list[Segment]]:
    """The runs of each line of `code`, all `plain` without a lexer."""
    if lexer is None:
        return [[Segment(line, plain)] if line else [] for line in code.split("\n")]
    lines: list[list[Segment]] = [[]]
    for token, text in lexer.get_tokens(code):
        style = style_of(token)
        for number, piece in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if piece:
                _add(lines[-1], piece, style)
    return lines[: code.count("\n") + 1]


def _add(runs: list[Segment], text: str, style: Style) -> None:
    """Put text at the end of a line; what looks alike stays one piece."""
    if runs and runs[-1].style is style:
        runs[-1] = Segment(runs[-1].text + text, style)
    else:
        runs.append(Segment(text, style))
