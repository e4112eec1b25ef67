"""The setting of accounts. A project cannot set it: where code goes is the user's decision."""

from pydantic import BaseModel, Field


class AccountSettings(BaseModel):
    """The account to begin with."""

    account: str = Field(
        default="",
        description="Name of the accounts to begin with, as given to agent-tui login --as; "
        "empty: default",
    )
