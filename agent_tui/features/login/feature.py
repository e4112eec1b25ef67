"""``agent-tui login``, ``agent-tui logout`` and ``/account``. Stored keys count without it, too."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "login",
    subcommands=(
        Subcommand(
            "login",
            "sign in to an account or store a provider's key",
            "agent_tui.features.login.login",
        ),
        Subcommand(
            "logout",
            "sign out of an account or delete a stored key",
            "agent_tui.features.login.logout",
        ),
    ),
    options_module="agent_tui.features.login.options",
    settings="agent_tui.features.login.settings:AccountSettings",
    account_switch="agent_tui.features.login.named:make_switch",
    part="agent_tui.features.login.part:AccountPart",
    brings={"agent_tui.commands": ("agent_tui.features.login.command:account",)},
    stores={"accounts": "sign-ins of named accounts; you sign in again"},
)
