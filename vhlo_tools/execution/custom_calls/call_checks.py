"""Check of a custom call that has no handler against the rules."""

from __future__ import annotations

from vhlo_tools.execution.custom_calls.call_forms import CallForm
from vhlo_tools.execution.custom_calls.known_targets import RESERVED, RULES
from vhlo_tools.execution.handlers import handler_advice


def reason_against(form: CallForm) -> str | None:
    rule = RULES[form.target]
    reason = rule.reason_against(form)
    if reason is None:
        return None
    advice = handler_advice(form.target)
    return f"{form.target} requires {rule.requires}: {reason}; to compute something else, give {advice}"


def reserved_reason(target: str) -> str | None:
    return next((reason for pattern, reason in RESERVED if pattern.fullmatch(target)), None)
