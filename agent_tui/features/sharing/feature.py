"""Sessions that clones of a project share: ``agent-tui sessions share``, ``push``, ``pull``."""

from agent_tui.feature import Feature, FeatureCheck

FEATURE = Feature(
    "sharing",
    verbs={"sessions": ("agent_tui.features.sharing.parser:add_sharing",)},
    checks=(
        FeatureCheck("sharing", "encryption", "agent_tui.features.sharing.checks:check_encryption"),
    ),
    stores_elsewhere={"git/refs": "agent_tui.features.sharing.stored:list_shared_refs"},
)
