"""The person's message by which a plan is approved, and the plan in it."""

_APPROVED = "I approve this plan. Follow it:\n\n"
_FORMERLY = "I approve this plan. Work by it:\n\n"
"""In sessions of earlier versions."""


def approving_message(plan: str) -> str:
    """What the person is taken to say by approving `plan`."""
    return f"{_APPROVED}{plan}"


def approved_plan(message: str) -> str:
    """The plan that `message` approves; empty where it approves none."""
    openings = (opening for opening in (_APPROVED, _FORMERLY) if message.startswith(opening))
    return message.removeprefix(opening) if (opening := next(openings, "")) else ""
