"""What the scripted tour answers to what a person types after it."""

import re

_REMARK = "*(This answer is scripted; no model was called.)*"

_ANSWERS: tuple[tuple[str, str], ...] = (
    (
        r"\bcompact|\bsummar|\bcontext\b",
        "`/compact` turns the conversation into a structured summary and goes on in a new "
        "session; `/compact focus on the tests` tells the summary what matters, `/compact "
        "--preview` shows beforehand what would go and what stays, and `/uncompact` takes it "
        "back. `/context` shows what fills the window, and the bar at the bottom right how full "
        "it is.",
    ),
    (
        r"\bresume|\bsession|\bcontinue\b|\bhistory",
        "Every message is in a session file. `/resume` lists the sessions of this folder, "
        "`agent-tui -c` opens the newest one, and `/name` gives this one a name.",
    ),
    (
        r"\bmodel|\bkey\b|\bclaude|\bgpt|\bgemini|\bollama|\blocal\b",
        "`/model` lists every model whose key is in the environment (such as "
        "`ANTHROPIC_API_KEY` or `OPENAI_API_KEY`) and the servers that run on this machine "
        "(Ollama, LM Studio, llama.cpp, vLLM). Any server that speaks OpenAI's protocol works "
        "with `--base-url`. Choose one, and I am real.",
    ),
    (
        r"\bapprov|\bpermission|\bsafe|\ballow",
        "Reading is free; writing files and running commands ask first. You can allow a call "
        "once, for the session, or always in this project. `/permissions` shows the rules.",
    ),
    (
        r"\bhelp\b|\bcommands?\b|what can|\?$",
        "Type `/` for all commands: `/compact`, `/context`, `/resume`, `/model`, `/export` and "
        "more. `!ls` runs a command, `@` names a file, Shift+Enter makes a new line and Esc "
        "interrupts me.",
    ),
    (
        r"\bthank|\bgreat\b|\bnice\b|\bcool\b",
        "You are welcome. Try `/compact` next, or choose a real model with `/model`.",
    ),
    (
        r"\bhello\b|\bhi\b|\bhey\b",
        "Hello again! Type `help` to see what can be tried here.",
    ),
)

_WOULD_DO = (
    "With a model behind me I would now look for the files this concerns, make a plan, change "
    "the code and run the tests, asking you before anything is written or run. Here I can only "
    "talk about it. `/model` chooses a real model; `help` lists what can be tried without one."
)


def answer_to(text: str) -> str:
    """The answer to `text`, found by its words; always says that it is scripted."""
    lowered = text.strip().lower()
    answers = (answer for pattern, answer in _ANSWERS if re.search(pattern, lowered))
    return f"{next(answers, _WOULD_DO)}\n\n{_REMARK}"
