"""What an empty conversation proposes, by what the model in use can do."""

from agent_tui.providers.base import ModelInfo


def trial_note(info: ModelInfo) -> str:
    """What to know of a model that is too small for work; empty for any other."""
    if not info.is_tiny:
        return ""
    return (
        f"{info.name} is only for trying the program: it is too small for real work and makes "
        "things up."
    )


def first_steps(info: ModelInfo, tour: str = "/tour") -> tuple[tuple[str, str], ...]:
    """Things to try, each with what it shows.

    Args:
        info: The model in use.
        tour: How the tour starts here.
    """
    if info.is_tiny:
        return (
            (tour, "five steps with real tools and scripted replies"),
            ("What does @FILE say?", "asks about one short file, attached with @"),
            ("/model", "chooses a model for real work"),
        )
    return (
        ("What does this project do?", "it reads the code to find out"),
        ("@ and a file's name", "attaches the file to your message"),
        ("/help", "lists every command and key"),
    )
