"""The reason why a custom call does not run without a handler, if there is one."""

from __future__ import annotations

from vhlo_tools.execution.custom_calls.call_forms import CallForm
from vhlo_tools.execution.custom_calls.known_targets import RESERVED, RULES
from vhlo_tools.execution.handlers import handler_advice


def reason_against(form: CallForm) -> str | None:
    """Return what is wrong with a call of a known target; ``None`` if it may run.

    Args:
        form: The call.

    Raises:
        KeyError: If the target is not known.
    """
    rule = RULES[form.target]
    reason = rule.reason_against(form)
    if reason is None:
        return None
    advice = handler_advice(form.target)
    return f"{form.target} requires {rule.requires}: {reason}; to compute something else, give {advice}"


def reserved_reason(target: str) -> str | None:
    """Return why a target that is not known is none, as far as that follows from its name."""
    return next((reason for pattern, reason in RESERVED if pattern.fullmatch(target)), None)
