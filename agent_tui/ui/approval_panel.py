"""The question whether a tool may run, docked above the prompt.

The panel takes the focus after a pause in typing, so that no key or click meant for something else
answers it. Until then, keys go to the prompt (see `EarlyKeys`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual import events, getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.drafts.draft import Draft
from agent_tui.errors import ConfigError
from agent_tui.events import ApprovalRequest
from agent_tui.key_actions import keys_in_force
from agent_tui.permissions.rules import INSIDE_RULE, describe_grants, parse_rule, split_rules
from agent_tui.safe_text import safe_text
from agent_tui.ui.diff_view import diff_lines, parse_diff
from agent_tui.ui.lines_field import LinesField, new_line_hint
from agent_tui.ui.parts import FieldRow, PaintedLines, any_app, follow_layout, keys_line
from agent_tui.ui.questions import (
    SCROLL_KEYS,
    AnswerBurst,
    AnswerLine,
    AnswerList,
    AnswerRow,
    EarlyKeys,
)
from agent_tui.ui.styled_lines import Line, prefix_lines, wrap
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.blocks import AssistantBlock
from agent_tui.ui.transcript.code import CodePainter
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter

_QUESTIONS = {
    "command": "Run this command?",
    "diff": "Make this change?",
    "text": "Allow this?",
    "plan": "Follow this plan?",
}
_WAITS_BELOW = "You are asked for approval. Close this page to answer."
_TOLD_S = 10.0
_MARGIN_ROWS = 3
"""Around the body, and below the reason."""
_LEAST_TEXT_ROWS = 3
"""What the text keeps in a low window, in which the answers scroll, too."""
_LONG_GRANT = 60
"""Characters of a rule that is not written out if it allows the command shown and no other."""
AnswerKind = Literal[
    "once",
    "edits",
    "session",
    "project",
    "parts",
    "project_parts",
    "rule",
    "comment",
    "edit",
    "no",
    "words",
]


@dataclass(frozen=True, slots=True)
class PanelAnswer:
    """One way to answer.

    Attributes:
        key: The letter that gives it.
        choice: What it does.
        label: What it says.
        grants: What is allowed from then on, for the user; empty for nothing.
    """

    key: str
    choice: AnswerKind
    label: str
    grants: str = ""

    @property
    def row(self) -> AnswerRow:
        """The answer as a row."""
        return AnswerRow(self.key, self.label, self.grants)


def answers_to(request: ApprovalRequest) -> tuple[PanelAnswer, ...]:
    """All answers to `request`; those that make a rule only if that is allowed."""
    if request.body_kind == "plan":
        return (
            PanelAnswer("y", "once", "Yes, and ask before each change"),
            PanelAnswer("a", "session", f"Yes, and accept {request.accepted}"),
            PanelAnswer("g", "edit", "Edit the plan first"),
            PanelAnswer("n", "no", "No, not yet"),
            PanelAnswer("e", "words", "No, and say what is missing"),
        )
    key = keys_in_force().first_key("permission_mode")
    all_edits = PanelAnswer("a", "edits", f"Yes, and all {request.accepted} in this session", key)
    return (
        PanelAnswer("y", "once", "Yes, once"),
        *((all_edits,) if request.is_edit else ()),
        *(_rule_answers(request) if request.session_rule else ()),
        PanelAnswer("c", "comment", "Yes, and say what to do next"),
        PanelAnswer("n", "no", "No, and stop"),
        PanelAnswer("e", "words", "No, and say what to do instead"),
    )


def first_mark(request: ApprovalRequest) -> int:
    """The row marked at first: the smallest yes, or No if something would be lost."""
    choices = [answer.choice for answer in answers_to(request)]
    return choices.index("no" if request.is_loss else "once")


def _rule_answers(request: ApprovalRequest) -> tuple[PanelAnswer, ...]:
    if request.session_rule == INSIDE_RULE:
        return (
            PanelAnswer("a", "session", "Yes, and all sandboxed commands in this session"),
            PanelAnswer("p", "project", "Yes, and all sandboxed commands, always in this project"),
        )
    whole, parts = describe_grants([request.session_rule]), describe_grants(request.part_rules)
    if whole == request.body and ("\n" in whole or len(whole) > _LONG_GRANT):
        whole = "exactly this command"
    by_parts = (
        PanelAnswer("s", "parts", "Yes, with rules for this session", parts),
        PanelAnswer("w", "project_parts", "Yes, with rules in this project", "the same rules"),
    )
    session = PanelAnswer("a", "session", "Yes, for this session", whole)
    return (
        *(() if request.is_edit else (session,)),
        PanelAnswer("p", "project", "Yes, always in this project", whole),
        *(by_parts if parts else ()),
        PanelAnswer("r", "rule", "Yes, with a rule you edit", "for this session"),
    )


def approval_lines(request: ApprovalRequest, width: int, palette: Palette) -> list[Line]:
    """Rows of `width` cells with every byte of the body visible, however it tries to hide."""
    match request.body_kind:
        case "diff":
            rows = parse_diff(request.body, is_whole=True)
            heads = [row for row in rows if row.kind == "file"]
            if len(heads) == 1 and heads[0].text in request.title:  # it would only repeat the name
                rows = rows[1:]
            return diff_lines(rows, width, palette, CodePainter(palette).inks)
        case "command":
            prompt, indent = Segment("$ ", palette.muted), Segment("  ")
            rows = _wrap_body(request.body, palette.strong, width - 2)
            return prefix_lines(rows, [prompt], [indent])
        case "text":
            return _wrap_body(request.body, palette.text, width)
        case "plan":
            painter = BlockPainter(palette, markdown_parser(), width, show_thinking=False)
            return painter.paint(AssistantBlock(request.body), is_expanded=True)


def _wrap_body(text: str, style: Style, width: int) -> list[Line]:
    return [
        row
        for line in safe_text(text).split("\n")
        for row in wrap([Segment(line, style)], width, words=False)
    ]


class ApprovalPanel(Vertical, can_focus=True):
    """Shows one request at a time; others wait behind it.

    Args:
        quiet_s: Seconds without a key before the panel takes keys and clicks.
        early: Tells answers that come too early from writing.
    """

    app = getters.app(any_app)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "mark(-1)", "The answer above", show=False),
        Binding("down", "mark(1)", "The answer below", show=False),
        Binding("k", "scroll_body(-1)", "Scroll up", show=False),
        Binding("j", "scroll_body(1)", "Scroll down", show=False),
    ]

    @dataclass
    class Answered(Message):
        """The user answered, with `key` or by a click; `reason` is what they wrote with it."""

        request_id: str
        answer: ApprovalAnswer
        key: str = ""
        reason: Draft = field(default_factory=Draft)

    @dataclass
    class PlanToEdit(Message):
        """The user wants to edit a plan before answering; see `change_plan`."""

        plan: str

    @dataclass
    class KeyForPrompt(Message):
        """A key was pressed that answers nothing: a letter of the draft, or a deletion in it."""

        event: events.Key

    class SendWanted(Message):
        """Enter was pressed after a message typed while the question was open."""

    class Closed(Message):
        """The last request is closed."""

    def __init__(self, quiet_s: float, early: EarlyKeys) -> None:
        super().__init__(id="approval")
        self._quiet_s = quiet_s
        self._early = early
        self._requests: list[ApprovalRequest] = []
        self._answers: tuple[PanelAnswer, ...] = ()
        self._timer: Timer | None = None
        self._drop_next_click = False
        self._burst = AnswerBurst(self._give_by_key, self.set_timer, lambda: early.burst_s)
        self._words = LinesField(id="approval-words")
        self._rule = Input(id="approval-rule", placeholder="bash(pytest *)", compact=True)
        self._is_comment = False
        self.is_armed = False
        self.display = False

    def compose(self) -> ComposeResult:
        """The question, what would happen, why it is asked, the answers."""
        with VerticalScroll(id="approval-text", can_focus=False):
            yield Static(id="approval-title", markup=False)
            with VerticalScroll(id="approval-scroll", can_focus=False):
                yield PaintedLines(id="approval-body")
            yield Static(id="approval-reason", markup=False)
        yield AnswerList()
        yield FieldRow(self._words)
        yield FieldRow(self._rule)

    @property
    def request(self) -> ApprovalRequest | None:
        """The request that is shown."""
        return self._requests[0] if self._requests else None

    @property
    def asks_about_plan(self) -> bool:
        """Whether keys answer the question whether to go by a plan."""
        return self.is_armed and self.request is not None and self.request.body_kind == "plan"

    def open(self, request: ApprovalRequest) -> None:
        """Show `request`, or queue it after the one shown."""
        self._requests.append(request)
        if len(self._requests) == 1:
            self._show(request)
            if self.app.screen is not self.screen:
                self.notify(_WAITS_BELOW, severity="warning", timeout=_TOLD_S)
                self._show_above(_WAITS_BELOW)

    def _show_above(self, what: str) -> None:
        """Show on the screens above that `what` waits."""
        from agent_tui.ui.screens.modal import show_waiting

        show_waiting(self.app, what)

    def resolve(self, request_id: str) -> None:
        """Remove a request: it was answered, or its turn was aborted."""
        shown = self.request
        self._requests = [request for request in self._requests if request.id != request_id]
        if shown is not self.request:
            self._keep_unsent()
        if self.request is None:
            self._show_above("")
            self._disarm()
            self._early.end()
            self.display = False
            self.post_message(self.Closed())
        elif self.request is not shown:
            self._show(self.request)

    def postpone(self) -> None:
        """Wait again after a key, or after the terminal regained the focus."""
        if self.request is None or self._is_writing:
            return
        self._disarm()
        if self.is_mounted:
            self._timer = self.set_timer(self._quiet_s, self.arm)

    def ignore_focus_click(self) -> None:
        """Ignore the click that gave the terminal window the focus."""
        self._drop_next_click = True
        self.postpone()

    def arm(self) -> None:
        """Accept keys and clicks from now on, unless a screen or a search has them."""
        if self.request is None:
            return
        if not self.screen.is_current or self._is_typed_elsewhere:
            self.postpone()
            return
        self.is_armed = True
        self.add_class("-armed")
        self._early.pause()
        if self._early.is_message_written:
            self._list.mark(None)
        elif self._list.marked is None:
            self._list.mark(first_mark(self.request))
        self._show_keys()
        self.focus(scroll_visible=False)

    def _show_keys(self) -> None:
        does = "sends your message" if self._list.marked is None else "answers"
        stops = keys_in_force().hint("interrupt", "stops")
        self._hint(f"{stops} · ↑↓ move · enter {does} · j/k scroll")

    def holds(self, event: events.Key) -> bool:
        """Whether to use up a key pressed in the prompt; asked before the prompt handles it."""
        if self.request is None or self._is_writing or not self._early.holds(event):
            return False
        self.postpone()
        return True

    def write_held(self) -> None:
        """Write held keys into the prompt, as something else than an answer follows."""
        self._early.write_held()

    def accept_edits(self) -> bool:
        """Answer that all edits may be made; false if no such question takes answers."""
        answer = next((each for each in self._answers if each.choice == "edits"), None)
        if answer is None or not self.is_armed or self.request is None:
            return False
        self._give(answer)
        return True

    def edit_plan(self) -> None:
        """Let the user edit the plan in question in their editor."""
        if self.asks_about_plan and (request := self.request) is not None:
            self.post_message(self.PlanToEdit(request.body))

    def _give(self, answer: PanelAnswer, key: str = "") -> None:
        """Answer the request that is shown, by `key` or a click."""
        request = self.request
        if not self.is_armed or request is None:
            return
        is_plan = request.body_kind == "plan"
        match answer.choice:
            case "edit":
                self.edit_plan()
            case "words" | "comment":
                self._list.mark(self._answers.index(answer))
                self._is_comment = answer.choice == "comment"
                asked = "What is missing?" if is_plan else "What should be done instead?"
                asked = "What should be done next?" if self._is_comment else asked
                self._words.placeholder = f"{asked} (esc: back)"
                self._write_in(self._words, f"enter sends · {new_line_hint()} · esc back")
            case "rule":
                self._list.mark(self._answers.index(answer))
                rules = request.part_rules or (request.session_rule,)
                self._rule.value = " ".join(rules)
                self._write_in(self._rule, "enter allows with this rule · esc back")
            case "parts" | "project_parts":
                lasts = "session" if answer.choice == "parts" else "project"
                self._answer(request, ApprovalAnswer(lasts, rules=request.part_rules), key)
            case "once" | "edits" | "session" | "project" | "no":
                given = ApprovalAnswer(answer.choice, plan=request.body if is_plan else "")
                self._answer(request, given, key)

    def _answer(self, request: ApprovalRequest, given: ApprovalAnswer, key: str) -> None:
        self.is_armed = False  # keys typed before the panel closes belong to the prompt
        self._early.end()
        self.post_message(self.Answered(request.id, given, key))

    def change_plan(self, plan: str) -> None:
        """Ask about `plan`, the user's version of the plan shown."""
        if (request := self.request) is not None and request.body_kind == "plan" and plan.strip():
            self._requests[0] = replace(request, body=plan)
            self._show(self._requests[0])

    def action_mark(self, step: int) -> None:
        """Mark the answer above or below."""
        if self.is_armed:
            self._list.move(step)
            self._list.keep_mark_in_sight()
            self._show_keys()

    def _write_in(self, field: LinesField | Input, keys: str) -> None:
        """Let the user type words or a rule."""
        self._show_field(field)
        field.focus()
        self._hint(keys)

    def on_mount(self) -> None:
        """Divide the rows again whenever the screen is laid out."""
        follow_layout(self, self.screen, self._divide_rows)

    def _divide_rows(self) -> None:
        """Give the answers and the field their rows first; the text has the others, and scrolls.

        A row of the text always stays: what is answered must not be out of sight.
        """
        if not (self.display and isinstance(parent := self.parent, Widget)):
            return
        body, text = self.query_one("#approval-scroll"), self.query_one("#approval-text")
        beside = sum(
            each.outer_size.height
            for each in parent.children[1:]  # the chat, the first, has what is left
            if each.display and each is not self
        )
        rows = max(parent.size.height - beside - self.gutter.height, 2)
        fields = sum(row.outer_size.height + 1 for row in self.query(FieldRow) if row.display)
        answers = sum(line.outer_size.height for line in self.query(AnswerLine) if line.display)
        most = body.styles.base.max_height
        shown = self.query_one(PaintedLines).outer_size.height
        if most is not None:
            shown = min(shown, int(most.resolve(self.screen.size, self.screen.size)))
        title, reason = self.query_one("#approval-title"), self.query_one("#approval-reason")
        wanted = (
            shown
            + max(title.outer_size.height, 1)
            + (reason.outer_size.height if reason.display else 0)
        )
        left = max(rows - fields - answers, min(wanted, _LEAST_TEXT_ROWS, rows // 2))
        self.set_class(is_tight := wanted + _MARGIN_ROWS > left, "-tight")
        title.display = left > 1
        if is_tight and wanted > left:
            body.styles.max_height = "100vh"
        elif body.styles.inline.has_rule("max_height"):  # to clear it lays the screen out again
            body.styles.max_height = None
        text.styles.max_height = left
        self._list.styles.max_height = max(rows - fields - left, 1)
        self.call_after_refresh(self._list.keep_mark_in_sight)

    def action_scroll_body(self, step: int) -> None:
        """Scroll the body, or all of the text if there is no space for the body."""
        text, body = self.query_one("#approval-text"), self.query_one("#approval-scroll")
        moved = text if text.max_scroll_y else body
        moved.scroll_relative(y=step, animate=False)

    @on(AnswerLine.Clicked)
    def _take_click(self, event: AnswerLine.Clicked) -> None:
        event.stop()
        if self._drop_next_click:
            self._drop_next_click = False
        else:
            self._give(self._answers[event.number])

    @on(LinesField.Submitted)
    def _take_words(self, event: LinesField.Submitted) -> None:
        event.stop()
        if (request := self.request) is not None:
            reason = self._words.draft.trim()
            self._words.load(Draft())
            answer = ApprovalAnswer("no", reason.sent_text)
            if self._is_comment:
                answer = ApprovalAnswer("once")
            self.post_message(self.Answered(request.id, answer, "enter", reason))

    @on(Input.Submitted)
    def _take_rule(self, event: Input.Submitted) -> None:
        event.stop()
        if (request := self.request) is None:
            return
        if why := _why_no_rules(rules := split_rules(event.value.strip())):
            self._hint(why)
        else:
            by_rule = ApprovalAnswer("session", rules=rules)
            self.post_message(self.Answered(request.id, by_rule, "enter"))

    def on_key(self, event: events.Key) -> None:
        """Answer by key. Deletions, and letters that are no answer, are passed on."""
        self._drop_next_click = False
        is_taken_back = self._burst.is_holding and event.key == "backspace"
        letters = self._burst.follow(event)
        if letters or is_taken_back:
            event.stop()
            if letters:
                self._write_letters((*letters, event))
        elif self._is_writing:
            self._leave_field(event)
        elif self.is_armed and (number := self._list.number_for(event.key)) is not None:
            event.stop()
            self._list.mark(number)
            give = self._burst.hold if event.is_printable else self._give_by_key
            give(event)
        elif self.is_armed and event.key == "enter":
            event.stop()
            if self._list.marked is None:
                self.post_message(self.SendWanted())
        elif self._scrolls(event.key):
            self._burst.note_scroll(event)
        elif self._belongs_to_prompt(event):
            # Disarm at once: the rest of the word may be here before the prompt has the focus.
            event.stop()
            self.postpone()
            if not self._early.holds(event):
                self.post_message(self.KeyForPrompt(event))

    async def on_paste(self, event: events.Paste) -> None:
        """Pass on a paste to the field that an answer opened; else it goes to the prompt."""
        for letter in self._burst.follow(event):
            await self._early.take(letter)
        if self._is_writing:
            event.stop()
            self._field.post_message(events.Paste(event.text))

    def _leave_field(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self._show_field(None)
            self.arm()
        elif self.has_focus:  # the field will have it in a moment
            event.stop()
            self._field.post_message(events.Key(event.key, event.character))

    def _give_by_key(self, event: events.Key) -> None:
        if (number := self._list.number_for(event.key)) is not None:
            self._give(self._answers[number], event.key)

    def _write_letters(self, letters: Sequence[events.Key]) -> None:
        """Write into the prompt what turned out to be no answer."""
        self.postpone()
        self._early.write_held()
        for letter in letters:
            self.post_message(self.KeyForPrompt(letter))

    def _belongs_to_prompt(self, event: events.Key) -> bool:
        if event.character and event.is_printable:
            return not self._scrolls(event.key)
        return self._early.deletes(event.key)

    def _scrolls(self, key: str) -> bool:
        return self.is_armed and key in SCROLL_KEYS

    @property
    def _is_typed_elsewhere(self) -> bool:
        """Whether another line than the prompt has the keys: the search of the chat."""
        focused = self.screen.focused
        return isinstance(focused, Input) and focused is not self._rule

    @property
    def _is_writing(self) -> bool:
        """Whether a reason or a rule is being written."""
        return self._words.display or self._rule.display

    @property
    def _field(self) -> LinesField | Input:
        return self._words if self._words.display else self._rule

    @property
    def _list(self) -> AnswerList:
        return self.query_one(AnswerList)

    def _show(self, request: ApprovalRequest) -> None:
        question = _QUESTIONS[request.body_kind]
        # A command is shown completely below; the target of a change is not.
        title = request.title if request.body_kind in ("diff", "text") else ""
        self.query_one("#approval-title", Static).update(
            Content.assemble(
                (question, "bold $text-warning"),
                (f"  {safe_text(title, keep_newlines=False)}", "$foreground"),
            )
        )
        self.query_one(PaintedLines).show(partial(approval_lines, request))
        why = self.query_one("#approval-reason", Static)
        why.display = bool(request.reason)
        why.update(f"Why it asks: {safe_text(request.reason, keep_newlines=False)}")
        self.set_class(request.body_kind == "plan", "-plan")
        self._answers = answers_to(request)
        self._list.show([answer.row for answer in self._answers], first_mark(request))
        self._early.begin(self._list.keys)
        for scrolled in ("#approval-text", "#approval-scroll"):
            self.query_one(scrolled).scroll_home(animate=False)
        self._show_field(None)
        self.display = True
        self.postpone()

    def _keep_unsent(self) -> None:
        """Put a reason that was not sent into the prompt, as its question ends."""
        self._early.keep(self._words.unsent)
        self._words.load(Draft())

    def _show_field(self, shown: LinesField | Input | None) -> None:
        """Show the field for a reason or that for a rule; None hides both, with their text."""
        for each in (self._words, self._rule):
            each.display = each is shown
            if each.parent is not None:
                each.parent.display = each is shown

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._burst.drop()
        self.is_armed = False
        self.remove_class("-armed")
        self.border_subtitle = "keys answer once you stop typing"

    def _hint(self, keys: str) -> None:
        self.border_subtitle = keys_line(keys).markup


def _why_no_rules(texts: Sequence[str]) -> str:
    try:
        for text in texts:
            parse_rule(text, "allow")
    except ConfigError as error:
        return str(error)
    return ""
