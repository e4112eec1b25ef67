"""The question whether a tool may run, docked above the prompt.

Keys go on into the prompt until nothing was typed for a while; only then does the panel take
the focus. A key or a click that was meant for something else can so never answer it.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.errors import ConfigError
from agent_tui.events import ApprovalRequest
from agent_tui.key_actions import keys_in_force
from agent_tui.permissions.rules import parse_rule
from agent_tui.safe_text import safe_text
from agent_tui.ui.approval.body import ApprovalBody
from agent_tui.ui.keys_line import keys_line

Choice = Literal["once", "session", "project", "rule", "edit", "no", "words"]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer.

    `makes_rule`: only offered where a rule may be made. `of_plan` is what it says of a plan; empty
    where it is no answer to one. Without a `label` it is an answer to nothing else.
    """

    key: str
    choice: Choice
    label: str
    makes_rule: bool = False
    of_plan: str = ""

    def label_for(self, request: ApprovalRequest) -> str:
        """What it says of `request`; empty where it is not offered."""
        if request.body_kind == "plan":
            return self.of_plan
        return self.label if request.session_rule or not self.makes_rule else ""


OPTIONS = (
    Option("y", "once", "Yes, once", of_plan="Yes, and ask before each change"),
    Option(
        "a",
        "session",
        "Yes, for this session",
        makes_rule=True,
        of_plan="Yes, and accept edits",
    ),
    Option("p", "project", "Yes, always in this project", makes_rule=True),
    Option("r", "rule", "Yes, by a rule for this session", makes_rule=True),
    Option("g", "edit", "", of_plan="Change it in the editor first"),
    Option("n", "no", "No", of_plan="No, not yet"),
    Option(
        "e",
        "words",
        "No, and say what to do instead",
        of_plan="No, and say what is missing",
    ),
)
_QUESTIONS = {
    "command": "Run this command?",
    "diff": "Make this change?",
    "text": "Allow this?",
    "plan": "Go by this plan?",
}


class OptionLine(Static):
    """One answer, clickable."""

    class Clicked(Message):
        """The line was clicked."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice: Choice = choice

    def __init__(self, option: Option) -> None:
        super().__init__(classes="approval-option", markup=False)
        self.option = option
        self._label = ""
        self._rest = ""
        self._is_marked = False

    def show(self, request: ApprovalRequest) -> None:
        """Draw the line, with what would be allowed from then on, whole."""
        self._label = self.option.label_for(request)
        self.display = bool(self._label)
        self._rest = f"   {safe_text(self._granted(request), keep_newlines=False)}"
        self._draw()

    def mark(self, is_marked: bool) -> None:
        """Show whether Enter gives this answer."""
        self.set_class(is_marked, "-marked")
        self._is_marked = is_marked
        self._draw()

    def _draw(self) -> None:
        sign = "›" if self._is_marked else " "
        key, label = f"{sign}{self.option.key} ", f" {self._label}"
        self.update(
            Content.assemble((key, "bold $primary"), label, (self._rest, "$foreground-muted"))
        )

    def _granted(self, request: ApprovalRequest) -> str:
        if request.body_kind == "plan":
            return ""
        match self.option.choice:
            case "session" | "project" if request.session_rule.startswith("bash(= "):
                return "exactly this command"
            case "session" | "project":
                return request.session_rule
            case "rule" if request.wider_rule:
                return f"{request.wider_rule}, to be edited"
            case "rule":
                return "to be written"
            case _:
                return ""

    def on_click(self, event: events.Click) -> None:
        """Tell the panel."""
        event.stop()
        self.post_message(self.Clicked(self.option.choice))


class ApprovalPanel(Vertical, can_focus=True):
    """Shows one request at a time; others wait behind it.

    Args:
        quiet_s: Seconds without a key before the panel takes keys and clicks.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(o.key, f"answer('{o.choice}')", o.label, show=False) for o in OPTIONS),
        Binding("up", "mark(-1)", "The answer above", show=False),
        Binding("down", "mark(1)", "The answer below", show=False),
        Binding("enter", "answer_marked", "Give the marked answer", show=False),
        *(Binding(f"{n}", f"answer_number({n})", show=False) for n in range(1, 7)),
        Binding("k", "scroll_body(-1)", "Scroll up", show=False),
        Binding("j", "scroll_body(1)", "Scroll down", show=False),
    ]

    class Answered(Message):
        """The person answered."""

        def __init__(self, request_id: str, answer: ApprovalAnswer) -> None:
            super().__init__()
            self.request_id = request_id
            self.answer = answer

    class PlanToEdit(Message):
        """The person wants to change a plan before they answer; see `change_plan`."""

        def __init__(self, plan: str) -> None:
            super().__init__()
            self.plan = plan

    class UnboundLetter(Message):
        """A key was typed that answers nothing; it belongs to the prompt."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    class Closed(Message):
        """No request is open any more."""

    def __init__(self, quiet_s: float) -> None:
        super().__init__(id="approval")
        self._quiet_s = quiet_s
        self._requests: list[ApprovalRequest] = []
        self._timer: Timer | None = None
        self._drop_next_click = False
        self._marked: int | None = None
        self._writes_rule = False
        self.is_armed = False
        self.display = False

    def compose(self) -> ComposeResult:
        """The question, what would happen, why it is asked, the answers."""
        yield Static(id="approval-title", markup=False)
        with VerticalScroll(id="approval-scroll", can_focus=False):
            yield ApprovalBody()
        yield Static(id="approval-reason", markup=False)
        for option in OPTIONS:
            yield OptionLine(option)
        yield Input(id="approval-words", placeholder="What should be done instead? (esc: back)")

    @property
    def request(self) -> ApprovalRequest | None:
        """The request that is shown."""
        return self._requests[0] if self._requests else None

    @property
    def asks_about_plan(self) -> bool:
        """Whether keys answer the question whether to go by a plan."""
        return self.is_armed and self.request is not None and self.request.body_kind == "plan"

    def open(self, request: ApprovalRequest) -> None:
        """Show `request`, or let it wait behind the one that is shown."""
        self._requests.append(request)
        if len(self._requests) == 1:
            self._show(request)

    def resolve(self, request_id: str) -> None:
        """Take a request away: answered, or its turn was aborted."""
        shown = self.request
        self._requests = [request for request in self._requests if request.id != request_id]
        if self.request is None:
            self._disarm()
            self.display = False
            self.post_message(self.Closed())
        elif self.request is not shown:
            self._show(self.request)

    def postpone(self) -> None:
        """Something was typed, or the terminal was looked at again: wait anew."""
        if self.request is None or self._words.display:
            return
        self._disarm()
        if self.is_mounted:
            self._timer = self.set_timer(self._quiet_s, self.arm)

    def ignore_focus_click(self) -> None:
        """The terminal window got the focus: the click that did it is no answer."""
        self._drop_next_click = True
        self.postpone()

    def arm(self) -> None:
        """Take keys and clicks from now on, unless a screen or a search has them."""
        if self.request is None:
            return
        if not self.screen.is_current or self._is_typed_elsewhere:
            self.postpone()
            return
        self.is_armed = True
        self.add_class("-armed")
        stops = keys_in_force().hint("interrupt", "stops")
        self._hint(f"{stops} · ↑↓ move · enter answers · j/k scroll")
        self.focus(scroll_visible=False)

    def action_answer(self, choice: Choice) -> None:
        """Answer the request that is shown."""
        request = self.request
        if not self.is_armed or request is None:
            return
        is_plan = request.body_kind == "plan"
        match choice:
            case "edit":
                if is_plan:
                    self.post_message(self.PlanToEdit(request.body))
            case "words":
                asked = "What is missing?" if is_plan else "What should be done instead?"
                self._write("", f"{asked} (esc: back)")
            case "rule":
                if request.session_rule:
                    rule = request.wider_rule or request.session_rule
                    self._write(rule, "bash(pytest *)", is_rule=True)
            case "once" | "no":
                self._answer(request, choice)
            case "session" | "project":
                if request.session_rule or (is_plan and choice == "session"):
                    self._answer(request, choice)

    def _answer(
        self, request: ApprovalRequest, choice: Literal["once", "session", "project", "no"]
    ) -> None:
        plan = request.body if request.body_kind == "plan" else ""
        self.post_message(self.Answered(request.id, ApprovalAnswer(choice, plan=plan)))

    def change_plan(self, plan: str) -> None:
        """Ask about `plan` instead, which the person made of the one that is shown."""
        if (request := self.request) is not None and request.body_kind == "plan" and plan.strip():
            self._requests[0] = replace(request, body=plan)
            self._show(self._requests[0])

    def action_mark(self, step: int) -> None:
        """Mark the next answer; nothing is marked until then, so that Enter answers nothing."""
        if not self.is_armed:
            return
        lines = self._offered
        at = self._marked
        at = (0 if step > 0 else len(lines) - 1) if at is None else (at + step) % len(lines)
        self._mark(at)

    def action_answer_marked(self) -> None:
        """Enter: the marked answer, where one is."""
        if self._marked is not None:
            self.action_answer(self._offered[self._marked].option.choice)

    def action_answer_number(self, number: int) -> None:
        """A digit: the answer in that line."""
        if number <= len(self._offered):
            self.action_answer(self._offered[number - 1].option.choice)

    @property
    def _offered(self) -> list[OptionLine]:
        return [line for line in self.query(OptionLine) if line.display]

    def _mark(self, at: int | None) -> None:
        self._marked = at
        for number, line in enumerate(self._offered):
            line.mark(number == at)

    def _write(self, text: str, placeholder: str, *, is_rule: bool = False) -> None:
        """Let the person write words, or a rule."""
        self._writes_rule = is_rule
        self._words.placeholder = placeholder
        self._words.value = text
        self._words.display = True
        self._words.focus()
        self.call_after_refresh(self.scroll_end, animate=False)
        self._hint("enter allows by this rule · esc back" if is_rule else "enter sends · esc back")

    def action_scroll_body(self, step: int) -> None:
        """Scroll what would happen, or all of the panel where there is no room for it."""
        body = self.query_one("#approval-scroll")
        moved = self if self.max_scroll_y else body
        moved.scroll_relative(y=step, animate=False)

    @on(OptionLine.Clicked)
    def _clicked(self, event: OptionLine.Clicked) -> None:
        event.stop()
        if self._drop_next_click:
            self._drop_next_click = False
        elif self.is_armed:
            self.action_answer(event.choice)

    @on(Input.Submitted)
    def _words_written(self, event: Input.Submitted) -> None:
        event.stop()
        request, words = self.request, event.value.strip()
        if request is None:
            return
        if not self._writes_rule:
            self.post_message(self.Answered(request.id, ApprovalAnswer("no", words)))
        elif why := _why_no_rule(words):
            self._hint(why)
        else:
            self.post_message(self.Answered(request.id, ApprovalAnswer("session", rule=words)))

    def on_key(self, event: events.Key) -> None:
        """Esc leaves the words; a letter that answers nothing goes on to the prompt."""
        self._drop_next_click = False
        if self._words.display:
            if event.key == "escape":
                event.stop()
                self._hide_words()
                self.arm()
        elif event.character and event.is_printable and not self._answers(event.key):
            # Disarm at once: the rest of the word may be here before the prompt has the focus.
            event.stop()
            self.postpone()
            self.post_message(self.UnboundLetter(event.character))

    def _answers(self, key: str) -> bool:
        is_plan = self.request is not None and self.request.body_kind == "plan"
        answers = (option.key for option in OPTIONS if option.label or is_plan)
        letters = {*answers, "j", "k", *"123456"}
        return self.is_armed and key in letters

    @property
    def _is_typed_elsewhere(self) -> bool:
        """Whether another line than the prompt has the keys: the search of the chat."""
        focused = self.screen.focused
        return isinstance(focused, Input) and focused is not self._words

    @property
    def _words(self) -> Input:
        return self.query_one("#approval-words", Input)

    def _show(self, request: ApprovalRequest) -> None:
        question = _QUESTIONS[request.body_kind]
        # A command is shown whole below; what a change is made to is not.
        title = request.title if request.body_kind in ("diff", "text") else ""
        self.query_one("#approval-title", Static).update(
            Content.assemble(
                (question, "bold $text-warning"),
                (f"  {safe_text(title, keep_newlines=False)}", "$foreground"),
            )
        )
        self.query_one(ApprovalBody).show(request)
        why = self.query_one("#approval-reason", Static)
        why.display = bool(request.reason)
        why.update(f"Why it asks: {safe_text(request.reason, keep_newlines=False)}")
        self.set_class(request.body_kind == "plan", "-plan")
        for line in self.query(OptionLine):
            line.show(request)
        self._mark(None)
        self.query_one("#approval-scroll").scroll_home(animate=False)
        self._hide_words()
        self.display = True
        self.postpone()

    def _hide_words(self) -> None:
        self._words.clear()
        self._words.display = False

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.is_armed = False
        self.remove_class("-armed")
        self.border_subtitle = "keys work once you pause typing"

    def _hint(self, keys: str) -> None:
        self.border_subtitle = keys_line(keys).markup


def _why_no_rule(text: str) -> str:
    try:
        parse_rule(text, "allow")
    except ConfigError as error:
        return str(error)
    return ""
