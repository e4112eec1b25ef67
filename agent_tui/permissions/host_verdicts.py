"""The verdict on what leaves the machine: to a host, a service, or another program's tool."""

from agent_tui.permissions.policy import (
    ALLOWED,
    ALLOWED_BY_RULE,
    FULL_NEEDS_RULE,
    Policy,
    rule_hint,
)
from agent_tui.permissions.rules import (
    PLUGIN_TOOL,
    Rule,
    host_rule,
    outside_rule,
    rule_for_host,
    strongest_rule,
)
from agent_tui.permissions.verdict import Verdict
from agent_tui.tool_names import is_remote
from agent_tui.tools.base import Intent


def judge_outside(policy: Policy, tool_name: str) -> Verdict:
    """A call of another program's tool: its effect is unknown, so only rules allow it."""
    rule = outside_rule(tool_name, policy.rules)
    if rule is not None and rule.decision == "deny":
        return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
    if policy.mode == "plan":
        return Verdict("deny", policy.only_reading)
    if rule is not None and rule.decision == "allow":
        return ALLOWED_BY_RULE
    whose, kept = "an MCP tool", tool_name
    if not is_remote(tool_name):
        whose, kept = "a plugin's tool", f"{PLUGIN_TOOL}({tool_name})"
    if rule is None:
        return Verdict("ask", f"runs {whose}, whose effect is unknown", kept)
    return Verdict("ask", f"the ask rule {rule} applies", kept, by="rule")


def judge_host(policy: Policy, host: str, port: int = 443) -> Verdict:
    """Whether a sandboxed command may connect to `host` (lowercase)."""
    rule = host_rule(host, policy.rules, port)
    kept = rule_for_host(host, port, may_be_bundle=True)
    why = f"a command in the sandbox wants to connect to {host}"
    return _by_host_rule(policy, rule, kept) or _by_gate(policy, why, kept)


def judge_network(policy: Policy, intent: Intent) -> Verdict:
    """The verdict on a `fetch` request, which can send data out as well as bring it in."""
    rule = host_rule(intent.host, policy.rules)
    kept = rule_for_host(intent.host)
    if (verdict := _by_host_rule(policy, rule, kept)) is not None:
        return verdict
    if policy.mode == "full" and not intent.leaves_sandbox:
        return ALLOWED
    return _by_gate(policy, f"sends a request to {intent.host}", kept)


def judge_query(policy: Policy, tool_name: str, intent: Intent) -> Verdict:
    """The verdict on a text for a service that the user set up: it goes out, and changes nothing.

    Every mode but full asks; the answer "for this session" allows every later text.
    """
    named = (rule for rule in policy.rules if rule.tool == tool_name)
    rule = strongest_rule(rule for rule in named if rule.matches_text(intent.body))
    if rule is None:
        why = f"sends this text to {intent.host}"
        asking = Verdict("ask", why, tool_name, wanted_rules=(tool_name,))
        return ALLOWED if policy.mode == "full" else asking
    match rule.decision:
        case "deny":
            return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
        case "ask":
            return Verdict("ask", f"the ask rule {rule} applies", tool_name, by="rule")
        case "allow":
            return ALLOWED_BY_RULE


def _by_gate(policy: Policy, why: str, kept: str) -> Verdict:
    """The mode's verdict on a host that no rule names."""
    if policy.mode == "full":
        refusal = FULL_NEEDS_RULE.format(why=why) + rule_hint((kept,))
        return Verdict("deny", refusal, unapproved=why, wanted_rules=(kept,))
    return Verdict("ask", why, kept, wanted_rules=(kept,))


def _by_host_rule(policy: Policy, rule: Rule | None, kept: str) -> Verdict | None:
    """What `rule` and plan mode say about a host; None if the other modes decide."""
    if rule is not None and rule.decision == "deny":
        return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
    if rule is not None and rule.decision == "allow":
        return ALLOWED_BY_RULE
    if policy.mode == "plan":
        return Verdict("deny", f"{policy.only_reading} Only hosts that a rule allows are asked.")
    if rule is not None:
        return Verdict("ask", f"the ask rule {rule} applies", kept, by="rule")
    return None
