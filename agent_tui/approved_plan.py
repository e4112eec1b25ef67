"""The person's message by which a plan is approved, and the plan in it."""

_WORK_BY_PLAN = "I approve this plan. Work by it:\n\n"


def approving_message(plan: str) -> str:
    """What the person is taken to say by approving `plan`."""
    return f"{_WORK_BY_PLAN}{plan}"


def approved_plan(message: str) -> str:
    """The plan that `message` approves; empty where it approves none."""
    plan = message.removeprefix(_WORK_BY_PLAN)
    return plan if plan != message else ""
