"""Rules for custom calls that run without a handler; all other calls are refused.

XLA checks little of a custom call: on a wrong number of operands, a wrong type or a wrong attribute it crashes or reads
memory that is not the call's. Therefore :data:`RULES` lists the targets that are known, with their operands, results
and attributes. Both engines check a call by the same rules.
"""

from vhlo_tools.execution.custom_calls.call_checks import reason_against, reserved_reason
from vhlo_tools.execution.custom_calls.call_forms import CallForm, form_of_call, form_of_op
from vhlo_tools.execution.custom_calls.known_targets import RULES

__all__ = ["RULES", "CallForm", "form_of_call", "form_of_op", "reason_against", "reserved_reason"]
